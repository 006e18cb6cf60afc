"""Scripts: what they may say, where their faults are shown, and which rule replies."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folkmoot.bootstrap.installation import read_script
from folkmoot.domain.model_calls import (
    FailureClass,
    ModelChoice,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OfferedTool,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    ReplyCall,
    Sampling,
    SystemText,
    Usage,
)
from folkmoot.kernel.errors import BadInput
from folkmoot.llm.script_rules import seconds_of
from folkmoot.llm.scripted import ScriptedModel, parse_script

EXAMPLES = ("docs/spec/examples/panel.script.yaml", "examples/panel.script.yaml")
AGREE = OfferedTool("agree", "", {})
PASS = OfferedTool("pass", "", {})
PANEL = """
rules:
  - when: {participant: Ben, call: 2}
    fail: {class: RateLimited, retryAfter: 1s, times: 1}
  - when: {offered: agree, participant: Cid}
    reply: {calls: [{name: disagree, arguments: {reason: "Not without a budget."}}]}
  - when: {offered: agree}
    reply: {calls: [{name: agree, arguments: {}}]}
  - when: {participant: Ann, turn: 1}
    reply: {text: "Early tests caught three faults last year.", delay: 5ms}
  - when: {participant: Cid, turn: 1, seen: "Tally"}
    reply: {calls: [{name: propose_solution, arguments: {solution: {answer: keep}}}]}
  - reply: {text: "I have nothing to add.", usage: {input: 100, cachedInput: 40, cacheWrite: 3, output: 8, reasoning: 2}}
"""


def a_request(script: Any, **changes: Any) -> ModelRequest:
    request = ModelRequest(
        model=ModelChoice("scripted", "panel", script=script),
        sampling=Sampling(),
        participant="Ann",
        view=[SystemText("You are Ann."), OtherText(None, "The task: decide.")],
        view_length=2,
        instruction=None,
        offered=(PASS,),
        required=False,
        purpose=Purpose.TURN,
        turn=2,
        call=3,
        attempt=1,
    )
    return replace(request, **changes)


async def ask(text: str, **changes: Any) -> ModelReply | ModelFailure:
    return await ScriptedModel().ask(a_request(parse_script(text, "a.yaml"), **changes), lambda piece: None)


async def test_first_rule_that_matches_replies() -> None:
    """B45: the usage's kinds are kept apart."""
    reply = await ask(PANEL)
    assert reply == ModelReply("I have nothing to add.", (), Usage(100, 40, 3, 8, 2))
    vote = await ask(PANEL, offered=(AGREE,), participant="Cid")
    assert isinstance(vote, ModelReply)
    assert [call.name for call in vote.calls] == ["disagree"]


@pytest.mark.parametrize("attempt, fails", [(1, True), (2, False), (3, False)])
async def test_failures_on_demand_depend_on_the_attempt_alone(attempt: int, fails: bool) -> None:
    """A worker that takes over meets the same failures: nothing is counted between calls."""
    for _ in range(2):
        outcome = await ask(PANEL, participant="Ben", call=2, attempt=attempt)
        assert isinstance(outcome, ModelFailure) is fails
        if isinstance(outcome, ModelFailure):
            assert (outcome.failure, outcome.retry_after_seconds) == (FailureClass.RATE_LIMITED, 1.0)


@pytest.mark.parametrize(
    "entry",
    [
        SystemText("a Tally it is"),
        OtherText("Ben", "the Tally: 2"),
        OwnText("my Tally", None),
        OwnCall("c1", "count", "{}", "Tally: 3", False, None),
        OwnCall("c1", "count", '{"what": "Tally"}', "", False, None),
    ],
)
async def test_text_seen_is_looked_for_in_the_view(entry: Any) -> None:
    view = [OtherText(None, "The task: decide."), entry, OtherText("Ben", "more")]
    seen = await ask(PANEL, participant="Cid", turn=1, view=view, view_length=3)
    assert isinstance(seen, ModelReply) and seen.calls
    # The view may have grown since the call began; what came later is not seen.
    unseen = await ask(PANEL, participant="Cid", turn=1, view=view, view_length=1)
    assert isinstance(unseen, ModelReply) and not unseen.calls


async def test_text_seen_is_looked_for_in_the_instruction() -> None:
    seen = await ask(PANEL, participant="Cid", turn=1, instruction="Tally is due.")
    assert isinstance(seen, ModelReply) and seen.calls


async def test_purpose_tells_a_ballot_from_a_turn() -> None:
    script = "rules:\n  - when: {purpose: ballot}\n    reply: {text: ballot}\n  - reply: {text: other}\n"
    ballot, turn = await ask(script, purpose=Purpose.BALLOT), await ask(script, purpose=Purpose.TURN)
    assert isinstance(ballot, ModelReply) and isinstance(turn, ModelReply)
    assert (ballot.text, turn.text) == ("ballot", "other")


async def test_request_without_a_rule_is_a_failure_that_describes_it() -> None:
    failure = await ask("rules:\n  - when: {participant: Ben}\n    reply: {text: x}\n")
    assert isinstance(failure, ModelFailure)
    assert failure.failure is FailureClass.INVALID_REQUEST
    assert "participant Ann, turn 2, call 3, attempt 1, purpose turn, offered pass" in failure.message


async def test_arguments_given_as_text_are_sent_as_they_are() -> None:
    """B43: a script can play a model whose arguments do not parse."""
    reply = await ask("""rules: [{reply: {calls: [{name: look, arguments: '{"city": '}, {name: look}]}}]""")
    assert isinstance(reply, ModelReply)
    assert reply.calls == (ReplyCall("look", '{"city": '), ReplyCall("look", "{}"))


async def test_reply_without_usage_is_estimated() -> None:
    """B45: it still counts as a call, and says that its tokens are a guess."""
    reply = await ask("rules: [{reply: {text: Twelve chars}}]")
    assert isinstance(reply, ModelReply)
    assert reply.usage == Usage(output=3, estimated=True)


async def test_text_is_passed_on_as_it_comes() -> None:
    pieces: list[str] = []
    await ScriptedModel().ask(a_request(parse_script(PANEL, "a.yaml"), turn=1), pieces.append)
    assert "".join(pieces) == "Early tests caught three faults last year."


async def test_waiting_reply_is_cancelled_cleanly() -> None:
    model = ScriptedModel()
    request = a_request(parse_script("rules: [{reply: {text: late, delay: 1h}}]", "a.yaml"))
    task = asyncio.create_task(model.ask(request, lambda piece: None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_script_that_a_run_carries_is_checked_again() -> None:
    failure = await ScriptedModel().ask(a_request({"rules": [{}]}), lambda piece: None)
    assert isinstance(failure, ModelFailure)
    assert failure.failure is FailureClass.INVALID_REQUEST
    assert "/rules/0" in failure.message


async def test_scripts_of_many_runs_do_not_pile_up() -> None:
    model = ScriptedModel()
    for number in range(1100):
        reply = await model.ask(a_request({"rules": [{"reply": {"text": f"{number}"}}]}), lambda piece: None)
        assert isinstance(reply, ModelReply) and reply.text == f"{number}"
    assert len(model._compiled) <= 1024


def test_script_is_plain_json_data() -> None:
    script = parse_script(
        PANEL + "  - reply: {text: '2026-01-01', calls: [{name: a, arguments: {day: 2026-01-01}}]}\n", "a.yaml"
    )
    assert json.loads(json.dumps(script, allow_nan=False)) == script


@pytest.mark.parametrize(
    "text, line, part",
    [
        ("rules:\n\t- x\n", 2, "no YAML"),
        ("rules:\n  - when: {particpant: Ann}\n    reply: {text: x}\n", 2, "'particpant'"),
        ("rules:\n  - reply:\n      text: 3\n", 3, "'text' is a text"),
        ("rules:\n  - reply: {text: x}\n    fail: {class: Timeout}\n", 2, "either 'reply' or 'fail'"),
        ("rules:\n  - {}\n", 2, "either 'reply' or 'fail'"),
        ("rules:\n  - reply: {text: a}\n  - fail: {class: Tired}\n", 3, "RateLimited"),
        ("rules:\n  - fail: {class: Lost}\n", 2, "one of Authentication"),
        ("rules:\n  - fail: {times: 1}\n", 2, "'class' is missing"),
        ("rules:\n  - fail: {class: Timeout, times: 0}\n", 2, "from 1"),
        ("rules:\n  - fail:\n      class: Timeout\n      retryAfter: soon\n", 4, "'retryAfter' is a time"),
        ("rules:\n  - when: {turn: true}\n    reply: {}\n", 2, "'turn' is a whole number"),
        ("rules:\n  - when: {purpose: nap}\n    reply: {}\n", 2, "one of turn, ballot, answer"),
        ("rules:\n  - reply:\n      calls:\n        - {arguments: {}}\n", 4, "'name'"),
        ("rules:\n  - reply:\n      calls:\n        - {name: a, arguments: [1]}\n", 4, "'arguments'"),
        ("rules:\n  - reply:\n      calls:\n        - {name: a, arguments: {x: .nan}}\n", 1, "only what JSON can say"),
        ("rules:\n  - reply: {usage: {output: -1}}\n", 2, "'output' is a whole number"),
        ("rules: &again [*again]\n", 1, "contains itself"),
        ("[]\n", 1, "a list 'rules'"),
        ("", None, "a list 'rules'"),
        ("rules: []\nrule: []\n", 2, "'rule'"),
    ],
)
def test_fault_of_a_script_names_file_and_line(text: str, line: int | None, part: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_script(text, "panel.script.yaml")
    fault = caught.value.faults[0]
    assert (fault.file, fault.line) == ("panel.script.yaml", line)
    assert part in fault.message
    assert str(fault) in str(caught.value)


def test_all_faults_of_a_script_are_told_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        parse_script("rules:\n  - reply: {txt: a}\n  - fail: {class: Tired}\n", "a.yaml")
    assert [fault.line for fault in caught.value.faults] == [2, 3]


@pytest.mark.parametrize(
    "span, seconds",
    [
        ("50ms", 0.05),
        ("1s", 1.0),
        ("1m30s", 90.0),
        ("1d2h", 93600.0),
        ("00:01:30", 90.0),
        ("1.00:00:00.5", 86400.5),
        (2, 2.0),
        (0.5, 0.5),
    ],
)
def test_times_are_written_in_three_ways(span: Any, seconds: float) -> None:
    assert seconds_of(span) == pytest.approx(seconds)


@pytest.mark.parametrize("span", ["", "5", "-1s", "1x", -1, True, None, float("inf"), "1s "])
def test_what_is_no_time_is_refused(span: Any) -> None:
    assert seconds_of(span) is None


def test_example_script_reads() -> None:
    found = [path for path in map(Path, EXAMPLES) if path.is_file()]
    if not found:
        pytest.skip("no example script in this checkout")
    for path in found:
        assert parse_script(path.read_text(), str(path))["rules"]


@pytest.mark.parametrize("path", ["/dev/zero", "/"])
def test_a_script_is_a_regular_file(path: str) -> None:
    with pytest.raises(BadInput, match="no regular file"):
        read_script(path)
