"""Managed interactions: a manager sends work to agents, each in a thread of its own, and ends with its answer (conversation.md 'Managed',
traces.md D)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from engine_harness import EMPTY, NOW, Conversation, call, panel, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.contexts import ContextMode, ContextSettings
from folkmoot.domain.definitions import ChatMode, HumanSettings, Participant
from folkmoot.domain.items import DispatchMode, EndReason
from folkmoot.domain.model_calls import ModelChoice, ModelReply, Purpose, Sampling, SystemText
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import AskModel, RunCall
from folkmoot.kernel.errors import BadDefinition

SCHEMA = '{"type": "object", "required": ["choice"], "properties": {"choice": {"type": "string"}}}'
LOOK = tool("look", is_read_only=True)
PAY = tool("pay", is_gated=True)


def team(*agents: str | Participant, **settings: Any) -> Conversation:
    closed = dict.fromkeys(
        ("is_no_action_allowed", "is_voting_allowed", "is_direct_questioning_allowed", "is_solution_proposal_allowed"),
        False,
    )
    return Conversation(panel("Lead", *(agents or ("Writer", "Critic")), manager="Lead", **{**closed, **settings}))


def send(agent: str, message: str, mode: str = "OneTime", **more: str) -> Any:
    return call("dispatch", agent=agent, message=message, mode=mode, **more)


def finish(answer: Any) -> ModelReply:
    return reply("", call("finish", answer=answer))


def thread_of(talk: Conversation, agent: str) -> str:
    """The thread of the agent's newest dispatch."""
    return [sent.thread_id for sent in talk.details(items.Dispatched) if sent.agent == agent][-1]


def in_threads(talk: Conversation) -> list[tuple[str, str]]:
    names = {sent.thread_id: f"{sent.agent}'s" for sent in talk.details(items.Dispatched)}
    return [(names.get(item.thread_id, "main"), item.body.kind) for item in talk.items]


def test_a_dispatch_goes_as_the_worked_example_has_it() -> None:
    """traces.md D: the call, the floor in a thread of its own, the draft, the result in the manager's thread."""
    talk = team("Writer")
    talk.say("Lead", reply("", send("Writer", "Write a line.")))
    talk.say("Writer", "A line.")
    assert in_threads(talk)[3:] == [
        ("main", "orchestratorMessage"),
        ("main", "toolCall"),
        ("Writer's", "orchestratorMessage"),
        ("Writer's", "agentMessage"),
        ("main", "toolResult"),
    ]
    made, floor, _, result = talk.items[-4:]
    assert isinstance(made.body, items.ToolCall) and isinstance(floor.detail, items.Floor)
    assert (floor.detail.participant, floor.detail.dispatch) == ("Writer", made.body.tool_call_id)
    assert isinstance(result.body, items.ToolResult)
    assert (result.body.tool_call_id, result.body.result, result.body.is_error) == (
        made.body.tool_call_id,
        "A line.",
        False,
    )
    talk.say("Lead", finish("A line."))
    assert talk.end is not None and (talk.end.status, talk.end.output) == (RunStatus.COMPLETED, "A line.")
    assert talk.protocol == talk.refolded()


def test_a_one_time_agent_sees_the_message_and_its_own_instructions_and_nothing_else() -> None:
    talk = team(seat("Writer", prompts=("You write.",)), "Critic", task="A secret task.")
    talk.say("Lead", reply("Let me see.", send("Writer", "Write a line.")))
    thread = thread_of(talk, "Writer")
    assert talk.lines(thread)[1:] == ["Lead: Write a line."]
    system = talk.view(thread)[0]
    assert isinstance(system, SystemText) and "You write." in system.text and "A secret task." not in system.text
    talk.say("Writer", "First.")
    assert thread not in talk.views.of  # it is over, and nobody goes on with it
    talk.say("Lead", reply("", send("Writer", "Another.")))
    assert talk.lines(thread_of(talk, "Writer"))[1:] == ["Lead: Another."]
    assert "Critic" not in talk.views.of and "Writer" not in talk.views.of


def test_continue_goes_on_in_the_thread_it_had_and_labels_tell_threads_apart() -> None:
    talk = team("Writer")
    talk.say("Lead", reply("", send("Writer", "One.", "Continue")))
    first = thread_of(talk, "Writer")
    talk.say("Writer", "1")
    talk.say("Lead", reply("", send("Writer", "Two.", "Continue"), send("Writer", "Other.", "Continue", thread="b")))
    assert [sent.thread_id == first for sent in talk.details(items.Dispatched)] == [True, True, False]
    assert talk.lines(first)[1:] == ["Lead: One.", "me: 1", "Lead: Two."]
    assert talk.lines(thread_of(talk, "Writer"))[1:] == ["Lead: Other."]
    steps = [step for step in talk.steps if isinstance(step, AskModel)]
    assert [step.view for step in steps] == [first, thread_of(talk, "Writer")]


def test_dispatches_go_side_by_side_up_to_a_limit_and_results_keep_the_order_of_the_calls() -> None:
    talk = team("Ann", "Ben", "Cid", maximum_concurrent_dispatches=2)
    talk.say("Lead", reply("", *(send(name, "Go.") for name in ("Ann", "Ben", "Cid"))))
    assert [step.participant for step in talk.steps if isinstance(step, AskModel)] == ["Ann", "Ben"]
    talk.say("Ben", "B")
    assert [step.participant for step in talk.steps if isinstance(step, AskModel)] == ["Ann", "Cid"]
    assert not talk.bodies(items.ToolResult)
    talk.say("Cid", "C")
    talk.say("Ann", "A")
    assert [result.result for result in talk.bodies(items.ToolResult)] == ["A", "B", "C"]
    assert talk.protocol == talk.refolded()


def test_a_second_dispatch_into_a_thread_at_work_is_an_error_result() -> None:
    talk = team("Writer")
    talk.say("Lead", reply("", send("Writer", "One.", "Continue"), send("Writer", "Two.", "Continue")))
    (refused,) = talk.bodies(items.ToolResult)
    assert refused.is_error and "at work in this thread already" in refused.result
    assert [step.participant for step in talk.steps if isinstance(step, AskModel)] == ["Writer"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"agent": "Nobody", "message": "x", "mode": "OneTime"}, "do not fit"),
        ({"agent": "Lead", "message": "x", "mode": "OneTime"}, "do not fit"),
        ({"agent": "Writer", "message": "", "mode": "OneTime"}, "do not fit"),
        ({"agent": "Writer", "message": "x", "mode": "Later"}, "do not fit"),
        ({"agent": "Writer", "message": "x"}, "do not fit"),
        ({"agent": "Writer", "message": "x", "mode": "OneTime", "thread": "a"}, "OneTime work has no thread"),
    ],
)
def test_a_dispatch_that_cannot_be_carried_out_says_why_and_costs_nothing(arguments: Any, fault: str) -> None:
    talk = team("Writer")
    talk.say("Lead", reply("", call("dispatch", **arguments)))
    (refused,) = talk.bodies(items.ToolResult)
    assert refused.is_error and fault in refused.result
    assert talk.step_of("Lead").offered


def test_an_agent_works_with_its_own_tools_alone() -> None:
    """B38: a delegate runs with its own tools; protocol tools are the manager's."""
    talk = team(seat("Writer", LOOK))
    assert [t.name for t in talk.step_of("Lead").offered] == ["dispatch", "finish"]
    talk.say("Lead", reply("", send("Writer", "Look, then write.")))
    assert [t.name for t in talk.step_of("Writer").offered] == ["look"]
    talk.say("Writer", reply("I look.", call("look")))
    (step,) = talk.steps
    assert isinstance(step, RunCall) and step.thread_id == thread_of(talk, "Writer")
    talk.give("a view")
    talk.say("Writer", "Done.")
    assert [r.result for r in talk.bodies(items.ToolResult)] == ["a view", "Done."]
    assert talk.lines("Lead")[-1].endswith("-> Done.")
    assert talk.protocol == talk.refolded()


def test_what_comes_of_work_that_brings_no_words_is_an_error_result() -> None:
    talk = team("Writer")
    talk.say("Lead", reply("", send("Writer", "Write.")))
    talk.say("Writer", EMPTY)
    talk.say("Writer", EMPTY)
    (result,) = talk.bodies(items.ToolResult)
    assert result.is_error and "Writer said nothing" in result.result
    assert talk.step_of("Lead")


def test_a_terminal_tools_result_is_the_work_where_nothing_was_said() -> None:
    talk = team(seat("Writer", tool("send", is_terminal=True)))
    talk.say("Lead", reply("", send("Writer", "Send it."), send("Writer", "Send it with words.")))
    first, second = (sent.thread_id for sent in talk.details(items.Dispatched))
    for thread, text in ((first, ""), (second, "I send it.")):
        step = next(s for s in talk.steps if isinstance(s, AskModel) and s.view == thread)
        talk.take(step, reply(text, call("send")))
    while isinstance(talk.steps[0], RunCall):
        talk.take(talk.steps[0], CallResult("sent", is_error=False))
    assert [r.result for r in talk.bodies(items.ToolResult)][-2:] == ["sent", "I send it."]


def gated_team() -> Conversation:
    talk = team(seat("Ann", PAY), seat("Ben", PAY), seat("Cid"))
    talk.say("Lead", reply("", *(send(name, "Go.") for name in ("Ann", "Ben", "Cid"))))
    talk.say("Ben", reply("", call("pay")))
    return talk


def test_one_gate_is_shown_at_a_time_once_the_others_are_at_their_own_end_or_gate() -> None:
    """The lowest in call order is pending, the rest queue; on resumption that dispatch is finished first."""
    talk = gated_team()
    assert all(isinstance(step, AskModel) for step in talk.steps)  # Ann and Cid go on
    talk.say("Cid", "C")
    talk.say("Ann", reply("", call("pay")))
    card = talk.wait.pending.card if talk.wait.pending else {}
    floor = next(
        i
        for i, item in enumerate(talk.items, 1)
        if isinstance(f := item.detail, items.Floor) and f.participant == "Ann"
    )
    ann = talk.details(items.Dispatched)[0]
    assert talk.wait.status is RunStatus.PENDING_APPROVAL
    assert card["managedDispatch"] == {
        "id": card["managedDispatch"]["id"], "agentName": "Ann", "message": "Go.", "threadId": ann.thread_id,
        "recordThreadId": "main", "mode": DispatchMode.ONE_TIME.value, "floorSequence": floor,
    }  # fmt: skip
    assert card["agentName"] == "Ann" and card["deferred"] == []
    talk.decide(approve=True)
    (step,) = talk.steps
    assert isinstance(step, RunCall) and step.call.participant == "Ann"
    talk.give("paid")
    assert [s.participant for s in talk.steps if isinstance(s, AskModel)] == ["Ann"]
    talk.say("Ann", "A")
    assert talk.wait.pending is not None and talk.wait.pending.card["agentName"] == "Ben"
    talk.decide(approve=False, reason="no")
    talk.say("Ben", "B")
    of_main = [item.body for item in talk.items if item.thread_id == "main"]
    assert [r.result for r in of_main if isinstance(r, items.ToolResult)] == ["A", "B", "C"]
    assert talk.protocol == talk.refolded()


def test_a_stop_closes_the_calls_of_all_threads() -> None:
    """B20, B13: each call has one result, those of dispatched work before the call that sent it."""
    talk = gated_team()
    talk.stop()
    results = {r.tool_call_id for r in talk.bodies(items.ToolResult)}
    assert results == {c.tool_call_id for c in talk.bodies(items.ToolCall)} and len(results) == 4
    results_in = [(i.thread_id, i.body.tool_call_id) for i in talk.items if isinstance(i.body, items.ToolResult)]
    pay = next(c.tool_call_id for c in talk.bodies(items.ToolCall) if c.function_name == "pay")
    of_ben = talk.details(items.Dispatched)[1]
    at = results_in.index((of_ben.thread_id, pay))
    assert results_in[at + 1][0] == "main"  # the call that sent it comes after
    assert talk.end is not None and talk.end.status is RunStatus.STOPPED
    assert talk.protocol == talk.refolded()


def test_a_lost_call_of_dispatched_work_has_an_unknown_outcome_in_its_thread() -> None:
    """F04 in a thread."""
    talk = team(seat("Ann", tool("write")))
    talk.say("Lead", reply("", send("Ann", "Go.")))
    talk.say("Ann", reply("", call("write")))
    talk.begin("write", lost=True)
    talk.settle()
    result = talk.items[-1]
    assert isinstance(result.detail, items.UnknownOutcome) and result.thread_id == thread_of(talk, "Ann")


def test_plain_text_is_reminded_once_and_then_is_the_answer() -> None:
    talk = team("Writer")
    talk.say("Lead", "I think it is B.")
    assert len(talk.details(items.ManagerReminder)) == 1 and talk.end is None
    talk.say("Lead", "It is B.")
    assert talk.end is not None and talk.end.output == "It is B."


def test_under_a_schema_words_are_the_answer_only_where_they_fit_and_the_fault_is_named() -> None:
    """B33: in a code fence they are read; otherwise asked again with the fault, and then a failure with the raw reply kept."""
    fits = team("Writer", solution_schema=SCHEMA)
    fits.say("Lead", "B, I say.")
    fits.say("Lead", '```json\n{"choice": "B"}\n```')
    assert fits.end is not None and json.loads(fits.end.output or "") == {"choice": "B"}
    talk = team("Writer", solution_schema=SCHEMA)
    for words in ("B.", "B!", "B?"):
        talk.say("Lead", words)
    assert "does not fit its schema" in talk.bodies(items.OrchestratorMessage)[-1].message
    talk.say("Lead", "B?!")
    assert talk.end is not None and talk.end.status is RunStatus.FAILED
    assert [m.message for m in talk.bodies(items.AgentMessage)] == ["B.", "B!", "B?", "B?!"]
    assert "did not stand" in (talk.end.failure or "")


def test_an_answer_under_a_schema_is_checked_and_goes_back_to_the_manager() -> None:
    talk = team("Writer", solution_schema=SCHEMA)
    talk.say("Lead", finish({"choice": 3}))
    (refused,) = talk.bodies(items.ToolResult)
    assert refused.is_error and "does not fit its schema" in refused.result
    talk.say("Lead", finish({"choice": "B"}))
    assert talk.end is not None and talk.end.output == '{"choice":"B"}'


def test_an_answer_beside_dispatches_counts_once_their_results_are_there() -> None:
    talk = team("Writer")
    talk.say("Lead", reply("", send("Writer", "Write."), call("finish", answer="B")))
    assert talk.end is None
    talk.say("Writer", "W")
    assert talk.end is not None and talk.end.output == "B"


def test_without_calls_left_the_manager_can_still_finish_and_else_the_run_fails() -> None:
    talk = team("Writer", max_tool_call_loops=1)
    talk.say("Lead", reply("", send("Writer", "Write.")))
    talk.say("Writer", "W")
    step = talk.step_of("Lead")
    assert [t.name for t in step.offered] == ["finish"] and step.required
    talk.say("Lead", reply("", send("Writer", "Again.")))
    assert (
        talk.end is not None
        and talk.end.status is RunStatus.FAILED
        and "No answer was given" in (talk.end.failure or "")
    )


def test_the_manager_may_ask_the_person_and_people_vote_on_its_answer() -> None:
    people = HumanSettings(ChatMode.ON_QUESTION, include_in_solutions=True)
    talk = team("Writer", human_settings=people)
    talk.say("Lead", reply("", call("ask", participant="Human", question="Which?")))
    assert talk.wait.status is RunStatus.PENDING_HUMAN and talk.wait.pending is not None
    talk.answer(items.DirectQuestionAnswer(talk.wait.pending.pending_id, "B"))
    talk.say("Lead", finish("B"))
    assert talk.wait.pending is not None
    talk.answer(items.Disagree(talk.wait.pending.pending_id, "Not quite."))
    step = talk.step_of("Lead")  # rejected: it has the floor again
    assert step.turn == 2
    talk.say("Lead", finish("C"))
    assert talk.wait.pending is not None
    talk.answer(items.Agree(talk.wait.pending.pending_id))
    assert talk.end is not None and talk.end.output == "C"


def test_agents_that_do_the_same_in_threads_of_their_own_do_not_go_round_in_circles() -> None:
    """B36, F57: what repeats itself repeats itself in one view."""
    talk = team(seat("Ann", LOOK))
    talk.say("Lead", reply("", *(send("Ann", f"Part {n}.") for n in range(4))))
    while any(isinstance(step, AskModel) and step.participant == "Ann" for step in talk.steps):
        step = next(s for s in talk.steps if isinstance(s, AskModel))
        talk.take(step, reply("", call("look")) if not step.turn_id or step.call == 1 else reply("Seen."))
        while any(isinstance(s, RunCall) for s in talk.steps):
            talk.give("the same")
    assert not talk.details(items.StuckWarning) and len(talk.bodies(items.AgentMessage)) == 4


def test_an_agent_that_goes_round_in_circles_is_warned_in_its_thread() -> None:
    talk = team(seat("Ann", LOOK))
    talk.say("Lead", reply("", send("Ann", "Look.")))
    for _ in range(4):
        talk.say("Ann", reply("", call("look")))
        talk.give("the same")
    warned = next(item for item in talk.items if isinstance(item.detail, items.StuckWarning))
    assert warned.thread_id == thread_of(talk, "Ann")
    assert "going round in circles" in talk.lines(thread_of(talk, "Ann"))[-1]


def test_what_is_dispatched_is_cut_for_the_managers_last_turn() -> None:
    """B72: the manager is offered its answer alone."""
    talk = team(
        seat("Ann", LOOK), duration_auto_termination=timedelta(minutes=10), duration_warning_to_ai=timedelta(minutes=6)
    )
    talk.deadline = NOW + timedelta(minutes=10)
    talk.say("Lead", reply("", send("Ann", "Go.")))
    talk.now = NOW + timedelta(minutes=9, seconds=30)
    talk.settle()
    (result,) = talk.bodies(items.ToolResult)
    assert result.is_error
    step = talk.step_of("Lead")
    assert [t.name for t in step.offered] == ["finish"] and step.required
    assert "Call finish now" in talk.bodies(items.InjectedSystemMessage)[-1].message
    talk.say("Lead", finish("B"))
    assert talk.end is not None and talk.end.output == "B"


def test_the_managers_floor_stands_and_ends_are_stated_once() -> None:
    """B30: nothing is produced after the item that ended the run."""
    talk = team("Writer")
    talk.say("Lead", finish("B"))
    assert talk.steps == () and isinstance(talk.items[-1].detail, items.Tally)
    stopped = team("Writer")
    stopped.stop()
    assert stopped.details(items.Ended) == [items.Ended(EndReason.STOPPED)]


def test_a_tool_may_not_have_the_name_of_a_managers_tool() -> None:
    with pytest.raises(BadDefinition, match="finish"):
        team(seat("Writer", tool("finish")))
    Conversation(panel(seat("Ann", tool("finish"))))  # in a round it means nothing


def test_compaction_of_a_thread_covers_its_own_view_alone() -> None:
    """'A summary belongs to its author's view of its thread.'"""
    small = ModelChoice("scripted", "s", context_window=1200)
    base = seat("Ann", LOOK)
    ann = Participant(
        base.name, base.agent_id, base.agent_name, 1, None, (), small, Sampling(max_tokens=100), base.tools
    )
    talk = team(ann, context=ContextSettings(mode=ContextMode.COMPACT))
    words = "What the weather was like in the north of the land on that day. " * 12
    talk.say("Lead", reply("", send("Ann", "One.", "Continue")))
    for n in range(8):
        step = next(s for s in talk.steps if isinstance(s, AskModel))
        if step.purpose is Purpose.COMPACTION:
            talk.take(step, reply("It was cold."))
            break
        talk.say("Ann", f"{words}{n}")
        talk.say("Lead", reply("", send("Ann", f"More {n}.", "Continue")))
    else:
        raise AssertionError("nothing was summarised")
    thread = thread_of(talk, "Ann")
    summary = next(item for item in talk.items if isinstance(item.body, items.Summary))
    assert summary.thread_id == thread and summary.author.name == "Ann"
    assert any("It was cold." in line for line in talk.lines(thread))
    assert not any("It was cold." in line for line in talk.lines("Lead"))
