"""What each participant sees (conversation.md, Round-robin 3; B20, B23, B35)."""

from __future__ import annotations

import pytest
from engine_harness import (
    AGREE,
    EMPTY,
    PASS,
    Conversation,
    call,
    disagree,
    line,
    panel,
    propose,
    reply,
    seat,
    tool,
)

from folkmoot.domain import items
from folkmoot.domain.definitions import SystemPromptMode
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import OtherText, OwnCall, OwnText, SystemText

NAMES = ("Ann", "Ben", "Cid")


def rich() -> Conversation:
    """A conversation with every kind of item that needs nobody to wait, each text its own."""
    talk = Conversation(panel(seat("Ann", tool("look"), tool("peek")), "Ben", "Cid", maximum_rounds=6))
    talk.say("Ann", reply("word-1", call("look"), call("peek"), call("unknown")))
    talk.hear("word-2")
    talk.give("word-3", of="look")
    talk.give("word-4", of="peek")
    talk.say("Ann", EMPTY)
    talk.say("Ann", reply("word-5", call("ask", participant="Ben", question="word-6")))
    talk.say("Ben", "word-7 without the call")
    talk.say("Ben", reply("word-8", call("answer", text="word-9")))
    talk.say("Ann", reply("", call("ask", participant="Cid", question="word-10")))
    talk.say("Cid", EMPTY)
    talk.say("Cid", EMPTY)
    talk.say("Ann", "word-11")
    talk.say("Ben", reply("word-12", call("call_vote", topic="word-13")))
    talk.vote(Ann=AGREE, Cid=reply("word-14", call("disagree", reason="word-15")))
    talk.say("Cid", PASS)
    talk.say("Ann", propose("word-16"))
    talk.vote(Ben=EMPTY, Cid=disagree("word-17"))
    talk.say("Ben", EMPTY)
    for _ in range(3):
        talk.say("Ben", propose(""))
    talk.run(lambda _: reply("word again"))
    return talk


def sees(item: Item) -> set[str]:
    """Who sees an item, each once, as an entry of its own or as the call or result of one."""
    everybody = set(NAMES)
    detail, author = item.detail, {item.author.name}
    match item.body:
        case items.SystemPrompt():
            assert isinstance(detail, items.Prompted)
            return {detail.participant}
        case items.ToolCall():
            return author
        case items.ToolResult():
            return set()  # in the entry of its call
        case items.OrchestratorMessage() | items.InjectedSystemMessage():
            match detail:
                case items.Floor(participant=name, question=None):
                    return {name}
                case items.EmptyReply(participant=name, ends_turn=False) | items.StuckWarning(participant=name):
                    return {name}
                case items.Floor() | items.NoVote() | items.Abstained() | items.NoAnswer(closed=False):
                    return set()  # for one call alone, as its instruction; a ballot's come out in the tally's words
                case items.NoAnswer():
                    return everybody - {"Ann"}  # who asked has it as the result of the call
        case items.DirectQuestionAnswer():
            return everybody - {"Ann"}
    return everybody


def test_each_participant_sees_every_item_exactly_once() -> None:
    """B23."""
    talk = rich()
    for name in NAMES:
        expected = sum(name in sees(item) for item in talk.items)
        assert len(talk.view(name)) == expected
        assert not talk.views.of[name].held


@pytest.mark.parametrize("name", NAMES)
def test_no_words_are_lost_or_said_twice(name: str) -> None:
    """B23: but for what other participants called and got, and what was no answer."""
    text = "\n".join(rich().lines(name)) + "\n"
    hidden = {"word-7"} | (set() if name == "Ann" else {"word-3", "word-4"})
    for n in range(1, 18):
        times = text.count(f"word-{n}\n") + text.count(f'word-{n}"') + text.count(f"word-{n} ")
        assert times == (0 if f"word-{n}" in hidden else 1), f"word-{n}"


def test_every_kind_of_item_is_in_the_rich_conversation() -> None:
    """So that the two tests above hold for all that needs nobody to wait."""
    kinds = {item.body.kind for item in rich().items}
    assert kinds == {
        "agentMessage", "agree", "disagree", "directQuestionAsk", "directQuestionAnswer", "humanMessage", "noAction",
        "orchestratorMessage", "solutionProposal", "systemPrompt", "toolCall", "toolResult", "voteProposal",
    }  # fmt: skip


def test_two_equal_messages_are_two_messages() -> None:
    """B23: told apart by id, never by text."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", "Yes.")
    talk.say("Ben", "Yes.")
    talk.say("Ann", "Yes.")
    assert talk.lines("Ben").count("Ann: Yes.") == 2
    assert talk.lines("Ann").count("me: Yes.") == 2
    assert len({i.item_id for i in talk.items}) == len(talk.items)


def test_own_words_are_the_assistants_and_others_are_headed_by_the_speaker() -> None:
    """Round-robin 3."""
    talk = Conversation(panel("Ann", "Ben"))
    made = talk.say("Ann", "Yes.")
    assert OwnText("Yes.", made[0].model_call_id) in talk.view("Ann")
    assert OtherText("Ann", "Yes.") in talk.view("Ben")


def test_other_participants_tool_calls_are_never_shown() -> None:
    """B35."""
    talk = rich()
    for name in ("Ben", "Cid"):
        assert {e.name for e in talk.view(name) if isinstance(e, OwnCall)} <= {
            "answer", "agree", "disagree", "pass", "call_vote", "propose_solution"
        }  # fmt: skip
        assert not any("look" in text or "peek" in text for text in talk.lines(name))


def test_other_participants_tools_are_not_callable() -> None:
    """B35."""
    talk = Conversation(panel(seat("Ann", tool("look")), "Ben"))
    talk.say("Ann", "Yes.")
    talk.say("Ben", reply("", call("look")))
    assert talk.bodies(items.ToolResult)[0].result.startswith("There is no tool 'look' here.")
    assert [s.key.split(":")[0] for s in talk.steps] == ["turn"]


def test_the_floor_is_shown_to_its_participant_alone() -> None:
    """Round-robin 1, 3."""
    talk = Conversation(panel("Ann", "Ben"))
    assert talk.lines("Ann")[-1] == "-: Ann, you have the floor (round 1)."
    assert not any("floor" in text for text in talk.lines("Ben"))


def test_a_call_and_its_result_enter_together() -> None:
    """B20; B21: a call is never without its result in a view."""
    talk = Conversation(panel(seat("Ann", tool("look"), tool("peek")), "Ben"))
    before = talk.lines("Ann")
    talk.say("Ann", reply("Let me see.", call("look"), call("peek")))
    assert talk.lines("Ann") == [*before, "me: Let me see."]
    talk.give("1")
    assert talk.lines("Ann") == [*before, "me: Let me see."]
    talk.give("2")
    assert talk.lines("Ann")[-2:] == ["me look({}) -> 1", "me peek({}) -> 2"]


def test_calls_stand_in_the_order_of_the_reply_whatever_came_first() -> None:
    """state.md: the view restores the reply."""
    talk = Conversation(panel(seat("Ann", tool("look", is_read_only=True), tool("peek", is_read_only=True))))
    talk.say("Ann", reply("", call("look"), call("peek")))
    talk.give("2", of="peek")
    talk.give("1", of="look")
    assert talk.lines("Ann")[-2:] == ["me look({}) -> 1", "me peek({}) -> 2"]
    own = [e for e in talk.view("Ann") if isinstance(e, OwnCall)]
    assert own[0].model_call_id == own[1].model_call_id


def test_what_falls_between_a_call_and_its_result_is_shown_after_it() -> None:
    """state.md: 'An item that falls between a call and its result is shown after the result'."""
    talk = Conversation(panel(seat("Ann", tool("look")), "Ben"))
    talk.say("Ann", reply("", call("look")))
    talk.hear("Hurry.")
    assert "Dana: Hurry." not in talk.lines("Ann")
    assert talk.lines("Ben")[-1] == "Dana: Hurry."
    talk.give("a door")
    assert talk.lines("Ann")[-2:] == ["me look({}) -> a door", "Dana: Hurry."]


@pytest.mark.parametrize(
    ("said", "own"),
    [
        (PASS, "me pass({}) -> You passed."),
        (reply("", call("call_vote", topic="A?")), 'me call_vote({"topic": "A?"}) -> It is put to the vote.'),
        (propose("A"), 'me propose_solution({"solution": "A"}) -> It is put to the vote.'),
    ],
    ids=["pass", "vote", "solution"],
)
def test_an_accepted_protocol_call_is_restored_as_call_and_result(said: object, own: str) -> None:
    """state.md: 'the view for its author restores call and result from the model call'."""
    talk = Conversation(panel("Ann", "Ben"))
    made = talk.say("Ann", said)  # type: ignore[arg-type]
    entry = next(e for e in talk.view("Ann") if isinstance(e, OwnCall))
    assert line(entry) == own
    assert entry.model_call_id == made[0].model_call_id


def test_ballots_are_sealed_from_everybody_until_the_tally() -> None:
    """Round-robin 5; B35's kind: not even the voter's own vote is in its view, since views only grow."""
    talk = Conversation(panel("Ann", "Ben", "Cid", "Dee"))
    talk.say("Ann", propose("A"))
    views = {name: list(talk.view(name)) for name in talk.seating.names}
    talk.say("Ben", reply("Fine.", call("agree")))
    talk.say("Cid", "I agree")
    talk.say("Cid", "I agree, really")
    assert {name: talk.view(name) for name in talk.seating.names} == views
    talk.say("Dee", disagree("too dear"))
    for name in talk.seating.names:
        assert talk.view(name)[: len(views[name])] == views[name]
    assert talk.lines("Ann")[-4:] == ["Ben: Fine.", "Ben: I agree.", "Dee: I disagree: too dear", "-: Tally: 2 for (Ann, Ben); 1 against (Dee); 1 not voting (Cid). The answer is rejected."]  # fmt: skip
    assert 'me disagree({"reason": "too dear"}) -> Your vote was counted.' in talk.lines("Dee")


def test_views_only_grow() -> None:
    """Round-robin 5: 'views only grow'."""
    talk = rich()
    again = type(talk.views)(NAMES)
    seen: dict[str, list[object]] = {name: [] for name in NAMES}
    for item in talk.items:
        again.add(item)
        for name in NAMES:
            now = again.of[name].entries
            assert now[: len(seen[name])] == seen[name]
            seen[name] = list(now)
    assert {name: view.entries for name, view in again.of.items()} == {name: talk.view(name) for name in NAMES}


# what each was given


def test_default_instructions_name_participants_rules_and_tools() -> None:
    """Round-robin 3."""
    ann = seat("Ann", tool("look"), prompts=("Be brief.",), description="who counts")
    talk = Conversation(panel(ann, seat("Ben"), system_prompts=("Be kind.",), maximum_rounds=4))
    given, other = (body.prompt for body in talk.bodies(items.SystemPrompt))
    for words in (
        "You are Ann",
        "Ben",
        "pass",
        "call_vote",
        "ask",
        "propose_solution",
        "more than half",
        "look",
        "4 rounds",
    ):
        assert words in given
    assert given.endswith("\n\nBe kind.\n\nBe brief.")
    assert "Ann (who counts)" in other
    assert "look" not in other


def test_replaced_instructions_stand_alone() -> None:
    """interactions.md: 'ReplaceDefault: these alone'; an empty prompt shows nothing."""
    talk = Conversation(
        panel(
            seat("Ann", prompts=("Be brief.",)), "Ben", system_prompts=(), system_prompt_mode=SystemPromptMode.REPLACE
        )
    )
    assert [body.prompt for body in talk.bodies(items.SystemPrompt)] == ["Be brief.", ""]
    assert talk.view("Ann")[0] == SystemText("Be brief.")
    assert talk.view("Ben") == [OtherText(None, "The task: Choose.")]


def test_each_sees_its_own_prompt_alone() -> None:
    """Round-robin 3."""
    talk = Conversation(panel(seat("Ann", prompts=("secret of Ann",)), seat("Ben", prompts=("secret of Ben",))))
    assert not any("secret of Ann" in text for text in talk.lines("Ben"))
    assert not any("secret of Ben" in text for text in talk.lines("Ann"))
