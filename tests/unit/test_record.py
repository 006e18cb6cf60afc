"""From an outcome to its items: authors, details, ids and sizes (state.md, What items must carry)."""

from __future__ import annotations

from dataclasses import fields

import pytest
from engine_harness import PASS, Conversation, call, panel, propose, raw_call, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.engine.step import RunCall

LOOK = tool("look")
FINISH = tool("finish", is_terminal=True)


def one(*tools: object) -> Conversation:
    return Conversation(panel(seat("Ann", *(tools or (LOOK,))), "Ben"))  # type: ignore[arg-type]


def test_every_item_of_a_reply_carries_its_model_call_and_turn() -> None:
    """state.md: 'every item of a reply carries its `model_call_id`'."""
    talk = one()
    turn_id = talk.step_of("Ann").turn_id
    made = talk.say("Ann", reply("See.", call("look"), call("nothing"), call("pass")))
    assert len(made) == 4
    assert len({i.model_call_id for i in made}) == 1 and made[0].model_call_id is not None
    assert {i.turn_id for i in made} == {turn_id}
    talk.give("a door")
    assert {i.model_call_id for i in talk.items[-3:-1]} == {made[0].model_call_id}


def test_only_the_item_that_ends_the_turn_says_so() -> None:
    """state.md: 'the item that ends a turn says so in its detail'."""
    for said in (reply("Yes."), PASS, propose("A"), reply("", call("call_vote", topic="A?"))):
        made = one().say("Ann", said)
        assert [i.detail for i in made] == [items.TurnEnd()]
    for said in (reply("See.", call("look")), reply("See.", call("ask", participant="Ben", question="?"))):
        assert not any(isinstance(i.detail, items.TurnEnd) for i in one().say("Ann", said))


def test_an_accepted_protocol_call_yields_only_its_typed_item() -> None:
    """state.md, What items must carry."""
    for said in (PASS, propose("A"), reply("", call("ask", participant="Ben", question="?"))):
        made = one().say("Ann", said)
        assert len(made) == 1
        assert not isinstance(made[0].body, items.ToolCall | items.ToolResult)


def test_a_refused_call_yields_call_and_error_result_at_once() -> None:
    """state.md: 'a refused one yields a `toolCall` and an error `toolResult`'."""
    made = one().say("Ann", reply("", raw_call("call_vote", '{"topic": ""}')))
    called, result = made[0].body, made[1].body
    assert isinstance(called, items.ToolCall) and isinstance(result, items.ToolResult)
    assert made[0].detail == items.Called(leaves=False)
    assert (called.function_name, called.arguments_json) == ("call_vote", '{"topic": ""}')
    assert (result.tool_call_id, result.is_error) == (called.tool_call_id, True)
    assert [i.author.name for i in made] == ["Ann", "Orchestrator"]


def test_a_call_that_leaves_keeps_the_replys_protocol_call_on_the_last_of_them() -> None:
    """state.md: the items alone say what is still to be done."""
    talk = one(LOOK, FINISH)
    talk.say("Ann", reply("", call("look"), call("finish"), call("pass")))
    kept = items.ProtocolCall("pass", "{}")
    assert talk.details(items.Called) == [items.Called(leaves=True), items.Called(leaves=True, then=kept)]


def test_arguments_of_a_call_that_leaves_are_recorded_in_the_form_that_is_sent() -> None:
    """Tools: 'parsed leniently'; what runs is what is shown."""
    talk = one()
    talk.say("Ann", reply("", raw_call("look", '```\n{"at": "d\u00f6or", "at": "window"}\n```')))
    (step,) = talk.steps
    assert isinstance(step, RunCall)
    assert step.call.arguments_json == talk.bodies(items.ToolCall)[0].arguments_json == '{"at": "window"}'


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("ä🎉", 6)])
def test_a_results_size_is_in_bytes(text: str, size: int) -> None:
    """Tools: '`resultSize` (bytes)'."""
    talk = one()
    talk.say("Ann", reply("", call("look")))
    talk.give(text)
    assert talk.bodies(items.ToolResult)[0].result_size == size


@pytest.mark.parametrize(
    ("function", "result", "detail"),
    [
        (LOOK, CallResult("ok", False), None),
        (LOOK, CallResult("bad", True), None),
        (LOOK, CallResult("?", True, unknown=True), items.UnknownOutcome()),
        (FINISH, CallResult("ok", False), items.Terminal()),
        (FINISH, CallResult("bad", True), None),
        (FINISH, CallResult("?", True, unknown=True), items.UnknownOutcome()),
    ],
)
def test_a_result_says_what_became_of_the_call(
    function: object, result: CallResult, detail: items.Detail | None
) -> None:
    """interactions.md, isTerminal; F04."""
    talk = one(function)
    talk.say("Ann", reply("", call(function.name)))  # type: ignore[attr-defined]
    (made,) = talk.take(talk.steps[0], result)
    assert made.detail == detail
    assert made.author == items.ORCHESTRATOR
    assert isinstance(made.body, items.ToolResult)
    assert (made.body.result, made.body.is_error) == (result.text, result.is_error)


def test_a_copy_of_the_state_is_equal_and_independent() -> None:
    """state.md: 'Protocol state is small and copied': each field in its place."""
    talk = one(LOOK)
    state = talk.protocol
    mappings = [field.name for field in fields(state) if field.default_factory is dict]
    for number, name in enumerate(type(state).__slots__):
        setattr(state, name, {"Ann": number} if name in mappings else number)
    twin = state.copy()
    assert twin == state and len(mappings) == 5
    for name in mappings:
        getattr(twin, name)["Ann"] = 99
        assert getattr(state, name)["Ann"] != 99
    twin.round = 99
    assert state.round == 2
