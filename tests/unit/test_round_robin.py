"""Turns and rounds: who speaks when, what ends a turn, what a reply's calls do (conversation.md, Round-robin 1, 2, 4, 9)."""

from __future__ import annotations

import pytest
from engine_harness import (
    AGREE,
    DANA,
    EMPTY,
    PASS,
    Conversation,
    call,
    disagree,
    panel,
    propose,
    raw_call,
    reply,
    seat,
    tool,
)

from folkmoot.domain import items
from folkmoot.domain.model_calls import FailureClass, ModelFailure
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import AskModel, RunCall
from folkmoot.kernel.errors import BadDefinition

LOOK = tool("look", is_read_only=True)
PEEK = tool("peek", is_read_only=True)
WRITE = tool("write")
NOTIFY = tool("notify")
FINISH = tool("finish", is_terminal=True)
SIZE = tool("size", parameters={"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]})


def one(*tools: object, **settings: object) -> Conversation:
    return Conversation(panel(seat("Ann", *tools), "Ben", **settings))  # type: ignore[arg-type]


def results(talk: Conversation) -> list[str]:
    return [body.result for body in talk.bodies(items.ToolResult)]


# 1 and 2: the opening, turns and rounds


def test_prompts_come_first_then_the_task_then_the_first_floor() -> None:
    """Round-robin 1."""
    talk = Conversation(panel("Ann", "Ben", task="Pick one."))
    assert [i.body.kind for i in talk.items] == [
        "systemPrompt",
        "systemPrompt",
        "orchestratorMessage",
        "orchestratorMessage",
    ]
    assert talk.items[2].body == items.OrchestratorMessage("The task: Pick one.")
    assert talk.items[3].detail == items.Floor("Ann", 1)


def test_participants_take_turns_in_order_and_a_full_pass_is_a_round() -> None:
    """Round-robin 2."""
    talk = Conversation(panel("Ann", "Ben", "Cid"))
    for name in ("Ann", "Ben", "Cid", "Ann", "Ben"):
        talk.say(name, "Yes.")
    assert talk.floors() == ["Ann1", "Ben1", "Cid1", "Ann2", "Ben2", "Cid2"]


def test_each_turn_has_an_id_of_its_own_that_all_its_items_carry() -> None:
    """state.md, What items must carry."""
    talk = one(LOOK)
    talk.say("Ann", reply("Let me see.", call("look")))
    talk.give("a door")
    talk.say("Ann", "A door.")
    floor = talk.items[3]
    assert {i.turn_id for i in talk.items[3:8]} == {floor.turn_id}
    assert talk.items[8].turn_id != floor.turn_id


def test_a_step_key_counts_the_turns_distinct_model_calls() -> None:
    """state.md: 'a refused or empty reply makes a new key'."""
    talk = one(LOOK)
    turn_id = talk.step_of("Ann").turn_id
    talk.say("Ann", reply("", call("unknown"), call("unknown")))
    talk.say("Ann", EMPTY)
    talk.say("Ann", reply("Looking.", call("look"), call("look")))
    talk.give("1")
    talk.give("2")
    assert talk.asked == [f"turn:{turn_id}:{n}" for n in (0, 1, 2)]
    assert talk.step_of("Ann").key == f"turn:{turn_id}:3"


def test_a_participant_alone_is_a_valid_conversation() -> None:
    """Round-robin 9: nobody to ask, nobody to outvote it."""
    talk = Conversation(panel("Ann"))
    assert [t.name for t in talk.step_of("Ann").offered] == ["pass", "call_vote", "propose_solution"]
    talk.say("Ann", "Thinking.")
    talk.say("Ann", propose("42"))
    assert talk.end is not None
    assert talk.end.output == "42"


def test_two_participants_can_share_one_agent() -> None:
    """Round-robin 9."""
    first, second = seat("Ann"), seat("Ben")
    shared = type(second)(second.name, first.agent_id, *[getattr(second, f) for f in second.__slots__[2:]])
    talk = Conversation(panel(first, shared))
    talk.say("Ann", "One.")
    talk.say("Ben", "Two.")
    said = [i.author for i in talk.items if isinstance(i.body, items.AgentMessage)]
    assert [a.name for a in said] == ["Ann", "Ben"]
    assert said[0].id == said[1].id


# 2: tool calls


def test_while_the_model_calls_tools_it_is_called_again_with_the_results() -> None:
    """Round-robin 2."""
    talk = one(LOOK)
    talk.say("Ann", reply("", call("look")))
    assert [type(s) for s in talk.steps] == [RunCall]
    talk.give("a door")
    assert talk.lines("Ann")[-1] == "me look({}) -> a door"
    talk.say("Ann", "I see a door.")
    assert talk.floors() == ["Ann1", "Ben1"]


def test_after_the_last_loop_the_tools_are_withheld() -> None:
    """Round-robin 2: 'then the tools are withheld and it is asked to answer with what it has'."""
    talk = one(LOOK, max_tool_call_loops=2)
    for n in (1, 2):
        assert talk.step_of("Ann").offered
        talk.say("Ann", reply("", call("look")))
        talk.give(f"look {n}")
    step = talk.step_of("Ann")
    assert step.offered == ()
    assert step.instruction is not None and "Answer now" in step.instruction
    talk.say("Ann", "Enough seen.")
    assert talk.floors()[-1] == "Ben1"


def test_a_turn_is_given_up_when_it_calls_after_the_tools_were_withheld() -> None:
    """Round-robin 2: 'if it calls still, the turn is given up'; B20: the call has a result."""
    talk = one(LOOK, max_tool_call_loops=1)
    talk.say("Ann", reply("", call("look")))
    talk.give("a door")
    made = talk.say("Ann", reply("Once more.", call("look")))
    assert [i.body.kind for i in made] == ["agentMessage", "toolCall", "toolResult", "orchestratorMessage"]
    assert isinstance(made[-1].detail, items.GivenUp)
    assert talk.floors()[-1] == "Ben1"


def test_where_nothing_is_offered_a_call_gets_an_error_and_the_turn_goes_on() -> None:
    """Tools: 'a model that calls a tool it was not given gets an error result'; only after all loops is the turn given up."""
    talk = Conversation(
        panel("Ann", "Ben", is_no_action_allowed=False, is_voting_allowed=False, is_direct_questioning_allowed=False,
              is_solution_proposal_allowed=False, max_tool_call_loops=2)
    )  # fmt: skip
    talk.say("Ann", reply("", call("search")))
    assert results(talk) == ["There is no tool 'search' here. Offered: none."]
    assert not talk.details(items.GivenUp)
    talk.say("Ann", "Then in words.")
    assert talk.floors()[-1] == "Ben1"


def test_a_question_counts_as_a_loop_so_that_asking_for_ever_ends() -> None:
    """Round-robin 2: `ask` is a tool call like another, and a turn has at most maxToolCallLoops of them."""
    talk = Conversation(panel("Ann", "Ben", max_tool_call_loops=2))
    for n in (1, 2):
        talk.say("Ann", reply("", call("ask", participant="Ben", question=f"Why {n}?")))
        talk.say("Ben", reply("", call("answer", text="Because.")))
    assert talk.step_of("Ann").offered == ()


def test_read_only_calls_go_side_by_side_and_others_in_the_replys_order() -> None:
    """Tools: 'Calls of one reply'; B07."""
    talk = one(LOOK, PEEK, WRITE, NOTIFY)
    talk.say("Ann", reply("", call("write"), call("look"), call("notify"), call("peek")))
    assert [s.call.name for s in talk.steps if isinstance(s, RunCall)] == ["write", "look", "peek"]
    talk.give("seen", of="peek")
    assert [s.call.name for s in talk.steps if isinstance(s, RunCall)] == ["write", "look"]
    talk.give("written", of="write")
    assert [s.call.name for s in talk.steps if isinstance(s, RunCall)] == ["look", "notify"]


def test_the_model_is_not_asked_again_before_every_call_has_its_result() -> None:
    """B20, B02."""
    talk = one(LOOK, PEEK)
    talk.say("Ann", reply("", call("look"), call("peek")))
    talk.give("1")
    assert [type(s) for s in talk.steps] == [RunCall]
    talk.give("2")
    assert [type(s) for s in talk.steps] == [AskModel]


def test_call_ids_are_ours_also_for_two_equal_calls_of_one_reply() -> None:
    """B23, B42."""
    talk = one(WRITE)
    talk.say("Ann", reply("", call("write"), call("write")))
    ids = [body.tool_call_id for body in talk.bodies(items.ToolCall)]
    assert len(set(ids)) == 2
    talk.give("first")
    talk.give("second")
    assert [(b.tool_call_id, b.result) for b in talk.bodies(items.ToolResult)] == [
        (ids[0], "first"),
        (ids[1], "second"),
    ]


def test_a_terminal_tools_success_ends_the_turn() -> None:
    """Round-robin 2; interactions.md, isTerminal."""
    talk = one(FINISH)
    talk.say("Ann", reply("", call("finish")))
    talk.give("done")
    assert talk.items[-2].detail == items.Terminal()
    assert talk.floors() == ["Ann1", "Ben1"]


def test_a_terminal_tools_failure_does_not_end_the_turn() -> None:
    """interactions.md, isTerminal: 'a successful call'."""
    talk = one(FINISH)
    talk.say("Ann", reply("", call("finish")))
    talk.give("no such door", is_error=True)
    assert talk.step_of("Ann").purpose == "turn"


def test_a_terminal_tool_among_others_ends_the_turn_once_all_are_done() -> None:
    """B07: every call of the reply ends with one result; then no further model call."""
    talk = one(FINISH, LOOK, NOTIFY)
    talk.say("Ann", reply("", call("finish"), call("look"), call("notify")))
    talk.give("done", of="finish")
    assert [s.call.name for s in talk.steps if isinstance(s, RunCall)] == ["look", "notify"]
    talk.give("sent", of="notify")
    talk.give("seen", of="look")
    assert len(results(talk)) == 3
    assert talk.floors() == ["Ann1", "Ben1"]


def test_a_protocol_call_beside_a_terminal_tool_still_counts() -> None:
    """Round-robin 2 and 4: both belong to the reply; after it the turn is over, also where `ask` would have gone on."""
    talk = one(FINISH)
    talk.say("Ann", reply("", call("finish"), call("ask", participant="Ben", question="Well?")))
    talk.give("done")
    talk.say("Ben", reply("", call("answer", text="Well.")))
    assert talk.floors() == ["Ann1", "Ben1"]


def test_a_refused_protocol_call_beside_a_terminal_tool_is_recorded_and_the_turn_is_over() -> None:
    """Round-robin 2; B20."""
    talk = one(FINISH)
    talk.say("Ann", reply("", call("finish"), call("call_vote")))
    talk.give("done")
    assert len(talk.bodies(items.ToolResult)) == 2
    assert talk.floors() == ["Ann1", "Ben1"]


def test_a_function_with_a_protocol_tools_name_is_refused_with_what_to_do() -> None:
    """Round-robin 4: which one a model means could not be told."""
    with pytest.raises(BadDefinition, match=r"'pass' of participant Ann .* rename it"):
        one(tool("pass"))


def test_a_disabled_tool_is_neither_offered_nor_run_nor_named() -> None:
    """Tools: `disabledTools`."""
    talk = one(LOOK, WRITE, disabled_tools=("write",))
    names = [t.name for t in talk.step_of("Ann").offered]
    assert "look" in names and "write" not in names
    assert "Your other tools: look." in talk.bodies(items.SystemPrompt)[0].prompt
    talk.say("Ann", reply("", call("write")))
    assert results(talk)[0].startswith("There is no tool 'write' here.")


# B43, 4: what is refused


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", '{"of": NaN}', "of=door"])
def test_arguments_that_do_not_parse_never_run(arguments: str) -> None:
    """B43; the raw text is kept."""
    talk = one(SIZE)
    talk.say("Ann", reply("", raw_call("size", arguments)))
    assert [type(s) for s in talk.steps] == [AskModel]
    assert talk.bodies(items.ToolCall)[0].arguments_json == arguments
    assert results(talk)[0].startswith("The arguments of size do not parse: ")
    assert talk.bodies(items.ToolResult)[0].is_error


def test_arguments_that_do_not_fit_the_schema_never_run() -> None:
    """Tools: 'validated against the tool's schema before anything is sent; a fault is an error result that says what is wrong'."""
    talk = one(SIZE)
    talk.say("Ann", reply("", call("size", of=3)))
    assert [type(s) for s in talk.steps] == [AskModel]
    assert "of" in results(talk)[0] and "string" in results(talk)[0]


@pytest.mark.parametrize("arguments", ["", "  ", '```json\n{"x": 1}\n```'])
def test_arguments_are_read_leniently(arguments: str) -> None:
    """Tools: 'empty means {}'; B33: code fences are read."""
    talk = one(LOOK)
    talk.say("Ann", reply("", raw_call("look", arguments)))
    (step,) = talk.steps
    assert isinstance(step, RunCall)
    assert step.call.arguments_json in ("{}", '{"x": 1}')


def test_text_beside_a_protocol_call_is_recorded_first_as_a_message() -> None:
    """Round-robin 2; state.md: 'text beside a protocol call does not end it'."""
    talk = Conversation(panel("Ann", "Ben"))
    made = talk.say("Ann", reply("I have nothing.", call("pass")))
    assert [(i.body.kind, i.detail) for i in made] == [("agentMessage", None), ("noAction", items.TurnEnd())]
    assert made[0].model_call_id == made[1].model_call_id


def test_of_several_protocol_calls_the_first_counts_and_the_others_get_errors() -> None:
    """Round-robin 4."""
    talk = Conversation(panel("Ann", "Ben"))
    made = talk.say(
        "Ann", reply("", call("call_vote", topic="A?"), call("propose_solution", solution="A"), call("pass"))
    )
    assert [i.body.kind for i in made] == ["toolCall", "toolResult", "toolCall", "toolResult", "voteProposal"]
    assert [body.function_name for body in talk.bodies(items.ToolCall)] == ["propose_solution", "pass"]
    assert all(body.is_error for body in talk.bodies(items.ToolResult))


def test_the_first_protocol_call_counts_also_where_it_is_refused() -> None:
    """Round-robin 4."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", reply("", call("call_vote"), call("pass")))
    assert not talk.bodies(items.NoAction)
    assert talk.step_of("Ann").purpose == "turn"


def test_protocol_tools_are_offered_only_where_the_definition_allows() -> None:
    """Round-robin 4."""
    allowed = {
        "pass": "is_no_action_allowed",
        "call_vote": "is_voting_allowed",
        "ask": "is_direct_questioning_allowed",
        "propose_solution": "is_solution_proposal_allowed",
    }
    for name, setting in allowed.items():
        talk = Conversation(panel("Ann", "Ben", **{setting: False}))
        offered = [t.name for t in talk.step_of("Ann").offered]
        assert offered == [n for n in allowed if n != name]
        talk.say("Ann", reply("", call(name)))
        assert results(talk)[0].startswith(f"There is no tool '{name}' here.")


@pytest.mark.parametrize("name", ["agree", "disagree", "answer"])
def test_ballot_and_answer_tools_are_no_tools_of_a_turn(name: str) -> None:
    """Round-robin 5, 7."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", reply("", call(name, text="x")))
    assert results(talk)[0].startswith(f"There is no tool '{name}' here.")


def test_calls_that_leave_run_before_the_replys_protocol_call_counts() -> None:
    """state.md: 'Calls that leave the process run before the reply's first protocol call counts'."""
    talk = one(LOOK)
    talk.say("Ann", reply("", call("propose_solution", solution="A"), call("look")))
    assert not talk.bodies(items.SolutionProposal)
    talk.give("a door")
    assert [i.body.kind for i in talk.items[-3:]] == ["toolCall", "toolResult", "solutionProposal"]
    assert talk.items[-1].model_call_id == talk.items[-3].model_call_id


@pytest.mark.parametrize(
    "kept",
    [call("call_vote"), call("ask", participant="Nobody", question="?"), call("propose_solution")],
    ids=lambda c: c.name,
)
def test_a_kept_protocol_call_that_is_refused_is_refused_once(kept: object) -> None:
    """The refusal goes back to the model; it is not decided again and again."""
    talk = one(LOOK)
    talk.say("Ann", reply("", call("look"), kept))  # type: ignore[arg-type]
    talk.give("a door")
    assert len(talk.bodies(items.ToolResult)) == 2
    assert talk.step_of("Ann").purpose == "turn"


def test_a_kept_question_is_asked_once() -> None:
    """Round-robin 7: after the answer the asker's turn goes on."""
    talk = one(LOOK)
    talk.say("Ann", reply("", call("look"), call("ask", participant="Ben", question="Well?")))
    talk.give("a door")
    talk.say("Ben", reply("", call("answer", text="Well.")))
    assert len(talk.bodies(items.DirectQuestionAsk)) == 1
    assert talk.step_of("Ann").purpose == "turn"


# 9: empty replies, passes, rounds


def test_an_empty_reply_is_asked_once_more_and_then_counts_as_a_pass() -> None:
    """Round-robin 9."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", EMPTY)
    assert talk.details(items.EmptyReply) == [items.EmptyReply("Ann", ends_turn=False)]
    assert talk.lines("Ann")[-1] == "-: Your reply was empty. Say something, or use one of your tools."
    talk.say("Ann", reply(" \n"))
    assert [i.author.name for i in talk.items if isinstance(i.body, items.NoAction)] == ["Ann"]
    assert talk.floors()[-1] == "Ben1"


def test_where_passing_is_not_allowed_a_second_empty_reply_is_an_empty_turn() -> None:
    """Round-robin 9: 'otherwise as an empty turn noted by an orchestratorMessage'."""
    talk = Conversation(panel("Ann", "Ben", is_no_action_allowed=False))
    talk.say("Ann", EMPTY)
    talk.say("Ann", EMPTY)
    assert talk.details(items.EmptyReply)[-1] == items.EmptyReply("Ann", ends_turn=True)
    assert not talk.bodies(items.NoAction)
    assert "-: Ann said nothing in this turn." in talk.lines("Ben")
    assert talk.floors()[-1] == "Ben1"


def test_an_empty_reply_after_a_tools_result_is_asked_once_more_again() -> None:
    """Round-robin 9: the two empty replies are one after the other."""
    talk = one(LOOK)
    talk.say("Ann", EMPTY)
    talk.say("Ann", reply("", call("look")))
    talk.give("a door")
    talk.say("Ann", EMPTY)
    assert not talk.bodies(items.NoAction)
    assert talk.step_of("Ann").purpose == "turn"


def test_a_reply_of_reasoning_alone_makes_no_older_text_the_answer() -> None:
    """B24: its text is empty, whatever else it held; what was said before stays as it was."""
    talk = one(LOOK)
    talk.say("Ann", reply("Let me look.", call("look")))
    talk.give("a door")
    talk.say("Ann", EMPTY)
    talk.say("Ann", EMPTY)
    assert [b.message for b in talk.bodies(items.AgentMessage)] == ["Let me look."]
    assert talk.items[-2].body == items.NoAction()


def test_nobody_is_nudged_after_a_pass_and_a_pass_is_no_message() -> None:
    """B34."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", PASS)
    assert [i.body.kind for i in talk.items[4:]] == ["noAction", "orchestratorMessage"]
    assert talk.floors() == ["Ann1", "Ben1"]
    assert "-: Ann passes." in talk.lines("Ben")


def pass_all(talk: Conversation) -> None:
    for name in talk.seating.names:
        if talk.steps:
            talk.say(name, PASS)


def test_rounds_of_passes_are_counted_in_a_row() -> None:
    """interactions.md, maximumNoActionLoops: 'rounds in a row in which every participant passed'."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=2))
    pass_all(talk)
    talk.say("Ann", "Wait.")
    talk.say("Ben", PASS)
    pass_all(talk)
    assert talk.end is None
    pass_all(talk)
    assert talk.items[-1].detail == items.Ended(items.EndReason.NO_ACTION)


def test_without_a_limit_passes_never_end_the_run() -> None:
    """interactions.md, maximumNoActionLoops: 'Null: no limit'."""
    talk = Conversation(panel("Ann", "Ben"))
    for _ in range(20):
        pass_all(talk)
    assert talk.end is None
    assert talk.floors()[-1] == "Ann21"


def test_a_round_in_which_a_person_spoke_was_not_passed_by_all() -> None:
    """Round-robin 9: 'only if nobody, a person included, said anything in it'."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=1))
    talk.say("Ann", PASS)
    talk.hear("Are you there?")
    talk.say("Ben", PASS)
    assert talk.end is None
    pass_all(talk)
    assert talk.end is not None


def test_rounds_of_turns_that_came_to_nothing_are_not_rounds_of_passes() -> None:
    """interactions.md, maximumNoActionLoops: 'in which every participant passed'."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=1, is_no_action_allowed=False))
    for name in ("Ann", "Ann", "Ben", "Ben"):
        talk.say(name, EMPTY)
    assert talk.floors()[-1] == "Ann2"
    assert talk.end is None


def test_text_beside_a_pass_was_said() -> None:
    """Round-robin 9."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=1))
    talk.say("Ann", reply("I rest my case.", call("pass")))
    talk.say("Ben", PASS)
    assert talk.end is None


def test_a_person_who_wrote_before_the_run_began_is_heard_after_the_task() -> None:
    """Round-robin 8: 'at any time'; the prompts stay first in every view."""
    talk = Conversation(panel("Ann", "Ben"), heard_before="Hello all.")
    assert [i.body.kind for i in talk.items[:2]] == ["humanMessage", "systemPrompt"]
    assert [line.split(":")[0] for line in talk.lines("Ben")] == ["system", "-", "Dana"]
    talk.say("Ann", PASS)
    assert talk.lines("Ben")[1:3] == ["-: The task: Choose.", "Dana: Hello all."]


def test_a_persons_message_is_not_their_turn_and_nobody_loses_one() -> None:
    """Round-robin 8, 9."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.hear("First.")
    talk.say("Ann", "Yes.")
    talk.hear("Second.")
    talk.say("Ben", "No.")
    assert talk.floors() == ["Ann1", "Ben1", "Ann2"]


def test_a_person_named_like_a_participant_does_not_speak_as_it() -> None:
    """Round-robin 3: 'No participant can speak as another'."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.hear("I am Ann.", items.Author(items.AuthorKind.HUMAN, "ANN", DANA.id))
    assert talk.lines("Ben")[-1] == "ANN (a person): I am Ann."


def test_the_bound_on_rounds_ends_the_run() -> None:
    """interactions.md, maximumRounds: 'ends the run as maximumNoActionLoops does'."""
    talk = Conversation(panel("Ann", "Ben", maximum_rounds=2))
    talk.run(lambda _: reply("Hm."))
    assert talk.items[-1].detail == items.Ended(items.EndReason.ROUNDS)
    assert talk.end is not None
    assert (talk.end.status, talk.end.output) == (RunStatus.COMPLETED, None)
    assert talk.floors() == ["Ann1", "Ben1", "Ann2", "Ben2"]


def test_three_rounds_without_a_proposal_get_one_reminder() -> None:
    """interactions.md, maximumRounds."""
    talk = Conversation(panel("Ann", "Ben", maximum_rounds=9))
    talk.run(lambda _: reply("Hm."))
    assert talk.details(items.Reminder) == [items.Reminder(3)]


def test_a_vote_or_proposal_starts_the_count_to_the_reminder_anew() -> None:
    """interactions.md, maximumRounds: 'three rounds in a row without a proposal or a vote'."""
    talk = Conversation(panel("Ann", maximum_rounds=9))
    for n in range(1, 10):
        if n == 3:
            talk.say("Ann", reply("", call("call_vote", topic="A?")))
        else:
            talk.say("Ann", "Hm.")
    assert talk.details(items.Reminder) == [items.Reminder(6)]


def test_after_a_vote_they_may_be_reminded_again() -> None:
    """interactions.md, maximumRounds: one message for each three rounds in a row without a proposal or a vote."""
    talk = Conversation(panel("Ann", maximum_rounds=9))
    for n in range(1, 10):
        talk.say("Ann", reply("", call("call_vote", topic="A?")) if n == 4 else "Hm.")
    assert talk.details(items.Reminder) == [items.Reminder(3), items.Reminder(7)]


def test_nobody_is_reminded_to_propose_where_proposals_are_not_allowed() -> None:
    """interactions.md, maximumRounds: 'Where proposals are allowed'."""
    talk = Conversation(panel("Ann", "Ben", maximum_rounds=5, is_solution_proposal_allowed=False))
    talk.run(lambda _: reply("Hm."))
    assert not talk.details(items.Reminder)


@pytest.mark.parametrize(
    "text", ["TERMINATE", '{"name": "pass", "arguments": {}}', "I agree", "pass()", "I'll stay quiet."]
)
def test_text_decides_nothing(text: str) -> None:
    """B31, B34: it is a message like another."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=1))
    talk.say("Ann", text)
    talk.say("Ben", text)
    assert [b.message for b in talk.bodies(items.AgentMessage)] == [text, text]
    assert talk.floors()[-1] == "Ann2"
    assert talk.end is None


def test_text_that_storage_cannot_hold_is_made_visible_in_what_is_folded_too() -> None:
    """B25: what a worker folds is what another one reads again."""
    talk = one(LOOK)
    talk.say("Ann", reply("a\x00b\ud83d", call("look"), raw_call("x\x00", '{"\x00')))
    talk.give("seen\x00")
    for item in talk.items:
        assert "\x00" not in repr(item.body).replace("\\x00", "\x00")
    assert talk.bodies(items.AgentMessage)[0].message == "a\u2400b\\ud83d"
    assert talk.bodies(items.ToolResult)[-1].result == "seen\u2400"


def test_a_failed_model_call_adds_no_item_and_is_asked_again() -> None:
    """platform.md, retries: from recorded facts, with the same key."""
    talk = Conversation(panel("Ann", "Ben"))
    count, key = len(talk.items), talk.step_of("Ann").key
    talk.say("Ann", ModelFailure(FailureClass.OVERLOADED, "Too many."))
    again = talk.step_of("Ann")
    assert (len(talk.items), again.key, again.attempt) == (count, key, 2)


def test_one_unvoted_proposal_does_not_keep_the_round_from_going_on() -> None:
    """Round-robin 6: 'Rejected: … the round goes on'."""
    talk = Conversation(panel("Ann", "Ben", "Cid"))
    talk.say("Ann", propose("A"))
    talk.vote(Ben=disagree("no"), Cid=disagree("no"))
    talk.say("Ben", reply("", call("call_vote", topic="B?")))
    talk.vote(Ann=AGREE, Cid=AGREE)
    assert talk.floors() == ["Ann1", "Ben1", "Cid1"]
