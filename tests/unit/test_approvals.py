"""Gated calls (conversation.md, Tools and approval; traces.md B): what waits, what goes on meanwhile, what a decision does."""

from __future__ import annotations

from uuid import UUID

import pytest
from engine_harness import Conversation, call, panel, raw_call, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.approvals import final_call
from folkmoot.domain.calls import CallResult
from folkmoot.domain.operations import Bound, Http, McpDescriptor, OperationTarget, Place
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import RunCall, Wait

READ = tool("read_file", is_read_only=True)
WRITE = tool("write_file", is_gated=True)
NOTIFY = tool("notify")


def asked() -> Conversation:
    """Trace B: one reply with a read-only call, a gated one, and one after it."""
    talk = Conversation(panel(seat("Ann", READ, WRITE, NOTIFY)))
    talk.say("Ann", reply("", call("read_file"), call("write_file", path="a"), call("notify")))
    return talk


def waiting() -> Conversation:
    talk = asked()
    talk.give("text", of="read_file")
    return talk


def names(talk: Conversation) -> list[str]:
    return [s.call.name for s in talk.steps if isinstance(s, RunCall)]


def results(talk: Conversation) -> list[items.ToolResult]:
    return talk.bodies(items.ToolResult)


def test_read_only_siblings_do_not_wait_for_a_gated_call() -> None:
    """B07: nothing waits while something can go on."""
    talk = asked()
    assert names(talk) == ["read_file"]
    talk.give("text")
    assert talk.wait.status is RunStatus.PENDING_APPROVAL


def test_the_card_shows_the_call_and_what_is_deferred_behind_it() -> None:
    card = waiting().wait.pending.card
    assert (card["functionName"], card["argumentsJson"], card["agentName"]) == ("write_file", '{"path": "a"}', "Ann")
    assert [deferred["functionName"] for deferred in card["deferred"]] == ["notify"]
    assert card["argumentsHash"] == waiting().wait.pending.binding_hash.hex()  # type: ignore[union-attr]


def test_an_approved_call_is_made_and_then_the_deferred_one() -> None:
    """B05, B07."""
    talk = waiting()
    talk.decide(approve=True)
    assert names(talk) == ["write_file"]
    talk.give("written")
    assert names(talk) == ["notify"]
    talk.give("told")
    assert talk.step_of("Ann"), "the model is asked only when every call has its result (B20)"
    assert [r.result for r in results(talk)] == ["text", "written", "told"]


def test_a_rejected_call_is_not_made_and_the_deferred_one_is() -> None:
    """B12: the model is told, with the reason."""
    talk = waiting()
    talk.decide(approve=False, reason="not on a Friday")
    assert names(talk) == ["notify"]
    rejected = results(talk)[-1]
    assert rejected.is_error
    assert rejected.rejection_reason == "not on a Friday"
    assert rejected.result.startswith("Dana rejected this call") and "not on a Friday" in rejected.result


@pytest.mark.parametrize(("hashed", "void", "why"), [(b"other", False, "not what would run"), (None, True, "void")])
def test_an_approval_of_something_else_or_by_somebody_without_the_right_runs_nothing(
    hashed: bytes | None, void: bool, why: str
) -> None:
    """F32, F34, B04."""
    talk = waiting()
    talk.decide(approve=True, hashed=hashed, void=void)
    assert names(talk) == ["notify"]
    assert why in results(talk)[-1].result


def test_each_gated_call_of_a_reply_is_asked_about_on_its_own() -> None:
    """B01, B05: one approval covers one call."""
    talk = Conversation(panel(seat("Ann", WRITE)))
    talk.say("Ann", reply("", call("write_file", path="a"), call("write_file", path="b")))
    first = talk.wait.pending.pending_id
    talk.decide(approve=True)
    talk.give("written")
    assert talk.wait.pending.pending_id != first
    assert talk.wait.pending.card["deferred"] == []


def test_a_gated_call_waits_behind_one_that_keeps_its_order() -> None:
    talk = Conversation(panel(seat("Ann", WRITE, NOTIFY)))
    talk.say("Ann", reply("", call("notify"), call("write_file", path="a")))
    assert names(talk) == ["notify"]
    talk.give("told")
    assert talk.wait.pending.card["functionName"] == "write_file"


def test_a_gated_read_only_call_waits_too() -> None:
    """F53: what is read-only by its annotation is no less gated."""
    talk = Conversation(panel(seat("Ann", tool("peek", is_read_only=True, is_gated=True))))
    talk.say("Ann", reply("", call("peek")))
    assert isinstance(talk.steps[0], Wait)


@pytest.mark.parametrize("end", ["stop", "run_out"])
def test_a_run_that_ends_while_it_waits_makes_no_call_and_closes_each(end: str) -> None:
    """B13, B20, F34: traces.md B, stopped and timed out."""
    talk = waiting()
    getattr(talk, end)()
    assert talk.end is not None
    assert talk.end.status is (RunStatus.STOPPED if end == "stop" else RunStatus.TIMED_OUT)
    assert [r.is_error for r in results(talk)] == [False, True, True]


def test_a_decision_after_the_end_does_nothing() -> None:
    """F34."""
    talk = waiting()
    wait = talk.wait
    talk.stop()
    talk.steps = (wait,)
    talk.decide(approve=True)
    assert talk.steps == ()


def test_an_approved_call_that_had_begun_and_was_lost_is_of_unknown_outcome() -> None:
    """F04, trace B: it is neither asked about nor made again."""
    talk = waiting()
    talk.decide(approve=True)
    talk.begin("write_file", lost=True)
    talk.settle()
    assert talk.details(items.UnknownOutcome)
    assert names(talk) == ["notify"]


def test_an_approved_call_that_may_be_repeated_is_made_again_without_asking() -> None:
    """F05, F07, B02."""
    talk = Conversation(panel(seat("Ann", tool("sync", is_gated=True, is_idempotent=True))))
    talk.say("Ann", reply("", call("sync")))
    talk.decide(approve=True)
    talk.begin("sync")
    talk.decisions.clear()
    talk.settle()
    assert names(talk) == ["sync"]


def test_arguments_that_do_not_parse_are_refused_and_nobody_is_asked() -> None:
    """B43: a gated call's too."""
    talk = Conversation(panel(seat("Ann", WRITE)))
    talk.say("Ann", reply("", raw_call("write_file", "{not json")))
    assert results(talk)[0].is_error
    assert talk.step_of("Ann")


def target(version: int = 1, url: str = "https://a.test/mcp", customer: str = "c1") -> OperationTarget:
    bound = (Bound(Place.REQUEST, "customer", customer),)
    return OperationTarget(UUID(int=1), "shop", UUID(int=2), version, Http(url), McpDescriptor("pay", "", {}), bound)


def test_an_approval_covers_one_operation_version_server_and_its_final_arguments() -> None:
    """B05: each of them changes what is approved; the order of the arguments does not."""
    pay = tool("pay", target=target())
    base = final_call(pay, '{"amount": 1, "note": "x"}')
    assert base.arguments["customer"] == "c1", "a bound value is part of what is shown"
    assert final_call(pay, '{"note": "x", "amount": 1}').hash == base.hash
    assert final_call(pay, '{"note": "x", "amount": 1, "customer": "c2"}').hash == base.hash, (
        "the bound value wins (B50)"
    )
    others = [
        final_call(pay, '{"amount": 2, "note": "x"}'),
        final_call(tool("pay", target=target(version=2)), '{"amount": 1, "note": "x"}'),
        final_call(tool("pay", target=target(url="https://b.test/mcp")), '{"amount": 1, "note": "x"}'),
        final_call(tool("pay", target=target(customer="c2")), '{"amount": 1, "note": "x"}'),
        final_call(tool("pay2", target=target()), '{"amount": 1, "note": "x"}'),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == len(others) + 1


def test_whoever_had_a_result_cut_may_read_on_in_it_unless_that_is_disabled() -> None:
    cut = CallResult("head\n…\ntail", is_error=False, content_id=UUID(int=9), size=100_000)
    for disabled, offered in (((), True), (("read_tool_result",), False)):
        talk = Conversation(panel(seat("Ann", READ), seat("Ben"), disabled_tools=disabled))
        assert "read_tool_result" not in [t.name for t in talk.step_of("Ann").offered], "there is nothing to read on in"
        talk.say("Ann", reply("", call("read_file")))
        talk.take(talk.steps[0], cut)
        assert ("read_tool_result" in [t.name for t in talk.step_of("Ann").offered]) is offered
        assert "read_tool_result" not in talk.seating.tools["Ben"]


def test_guidance_of_a_tool_and_its_gate_stand_in_the_instructions() -> None:
    guided = tool("pay", guidance="Only after the customer agreed.", is_gated=True)
    prompt = Conversation(panel(seat("Ann", guided))).items[0].body
    assert isinstance(prompt, items.SystemPrompt)
    assert "pay: Only after the customer agreed." in prompt.prompt
    assert "approves each call before it is made: pay" in prompt.prompt


def test_a_bound_argument_that_a_model_sends_is_dropped_and_not_held_against_it() -> None:
    """B50: the parameter is gone from the schema; what a model sends for it is overridden, and the call goes on."""
    strict = {"type": "object", "additionalProperties": False, "properties": {"amount": {"type": "integer"}}}
    pay = tool("pay", target=target(), parameters=strict)
    talk = Conversation(panel(seat("Ann", pay)))
    talk.say("Ann", reply("", call("pay", amount=1, customer="mine")))
    assert names(talk) == ["pay"]
    asked = talk.bodies(items.ToolCall)[0]
    assert final_call(pay, asked.arguments_json).arguments == {"amount": 1, "customer": "c1"}
