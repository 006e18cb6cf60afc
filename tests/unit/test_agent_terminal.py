"""What an agent run shows on a terminal, and which typed lines decide (agent-runs.md, consent; B05, F33)."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from folkmoot.cli import agent_consents, agent_printer, screen
from folkmoot.cli.agent_consents import Decision
from folkmoot.cli.agent_ids import id_of
from folkmoot.cli.agent_printer import AgentPrinter
from folkmoot.domain import items
from folkmoot.domain.agent_runs import (
    AgentRun,
    AgentRunStatus,
    ChatItem,
    ChatItemKind,
    Consent,
    ConsentStatus,
    Finding,
    Phase,
    Plan,
    PlanStep,
)
from folkmoot.domain.items import Author, AuthorKind, Item, StoredItem
from folkmoot.kernel.errors import BadInput
from folkmoot.services.events import Delta

NOW = datetime(2026, 10, 26, 12, tzinfo=UTC)
CLERK = Author(AuthorKind.AGENT, "clerk", UUID(int=9))
PLAN = Plan((PlanStep("Add them.", "add"), PlanStep("Tell Bo.", specialist="herald")), ("Bo was told.",))


def run() -> AgentRun:
    return AgentRun(
        UUID(int=1), "default", 7, UUID(int=2), UUID(int=3), "clerk", 1, UUID(int=4), AgentRunStatus.AWAITING_CONSENT, Phase.ACT, "web",
        None, None, "token", UUID(int=5), UUID(int=6), str(UUID(int=7)), "herald", None, NOW, NOW, NOW, None, None, NOW, NOW, UUID(int=4), 9,
    )  # fmt: skip


def stored(sequence: int, body: items.Body, detail: items.Detail | None = None) -> StoredItem:
    return StoredItem(sequence, NOW, Item(UUID(int=100 + sequence), CLERK, body, detail))


def test_a_card_says_which_specialist_asks_for_whom_and_hides_nothing() -> None:
    """Consent of a delegation: it names the specialist."""
    kept = {
        "functionName": "te\u200bll", "argumentsJson": '{"who": "\u202eBo"}', "argumentsHash": "ab", "description": "Tell\u202e.",
        "agentName": "herald", "connector": None,
    }  # fmt: skip
    consent = Consent(str(UUID(int=7)), kept, b"\xab", "herald", ConsentStatus.PENDING, NOW)
    item = ChatItem(UUID(int=6), UUID(int=5), 1, ChatItemKind.CONSENT, "herald", NOW, consent=consent)
    lines = list(agent_printer.card(item, run()))
    assert lines[0] == r"?? herald wants to call te\u200bll, which needs its owner's consent"
    assert r'   arguments: {"who": "\u202eBo"}' in lines
    assert "   herald works for clerk, which delegated to it" in lines
    assert lines[-1] == "   until 2026-10-26T12:00:00+00:00, then the run expires"


def test_plans_and_verdicts_are_shown_in_place_of_the_calls_that_give_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = AgentPrinter(run())
    unmet = items.Verified(False, (Finding(1, False, "No result shows it."),), missing="Bo knows nothing.")
    for event in (
        stored(1, items.ToolCall("a", "make_plan", "{}"), items.Planned(PLAN)),
        stored(2, items.ToolResult("a", "Noted.", False, 6)),
        stored(3, items.OrchestratorMessage("Step 2 of 2: …"), items.Floor("clerk", 1, phase=Phase.ACT, step=1)),
        stored(4, items.ToolCall("b", "replan", "{}"), items.Replanned("The herald is out.")),
        stored(5, items.ToolCall("c", "verdict", "{}"), unmet),
        stored(6, items.OrchestratorMessage("Plan again …"), items.Floor("clerk", 2, phase=Phase.PLAN)),
    ):
        printer.show(event)
    assert capsys.readouterr().err.splitlines() == [
        "The plan:", "   1. Add them. (add)", "   2. Tell Bo. (herald)", "   It is met if: 1. Bo was told.",
        "-- act, step 2 of 2: Tell Bo. (herald)", "The plan is to be changed: The herald is out.", "The goal is not met yet:",
        "   - 1. No result shows it.", "   missing: Bo knows nothing.", "-- plan again (2)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("approve", Decision(True)),
        (" Approve ", Decision(True)),
        ("decline", Decision(False)),
        ("decline too much", Decision(False, "too much")),
        ("reject approve of nothing", Decision(False, "approve of nothing")),
    ],
)
def test_a_decision_is_a_word_of_its_own(line: str, decision: Decision) -> None:
    assert agent_consents.read(line) == decision


@pytest.mark.parametrize("line", ["", "approve it", "yes", "y", "I decline", "approved", "no"])
def test_nothing_else_decides(line: str) -> None:
    """A decision is never read out of a sentence."""
    with pytest.raises(BadInput, match="That is no decision"):
        agent_consents.read(line)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.0", "³", "one", str(2**63), "9" * 30])
def test_what_is_no_number_of_a_run_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is no agent run's id"):
        id_of(text)


def test_a_piece_of_a_reply_that_is_recorded_is_not_shown_as_thought_now(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces come another way than items, and later: beside a card they would say that the run thinks while it waits."""
    monkeypatch.setattr(screen, "is_capable", lambda _: True)
    printer, call = AgentPrinter(run()), UUID(int=77)
    item = Item(UUID(int=101), CLERK, items.AgentMessage("Two bags."), None, model_call_id=call)
    printer.show(Delta("turn:1:0", str(call), "clerk", 1, 0, "Two"))
    assert "clerk is thinking: Two" in capsys.readouterr().err
    printer.show(StoredItem(1, NOW, item))
    capsys.readouterr()
    printer.show(Delta("turn:1:0", str(call), "clerk", 1, 3, " bags."))
    assert capsys.readouterr().err == ""
    printer.show(Delta("turn:2:0", str(UUID(int=78)), "clerk", 1, 0, "Next"))
    assert "clerk is thinking: Next" in capsys.readouterr().err
