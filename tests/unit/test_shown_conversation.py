"""A conversation on a terminal: what is not words of somebody is told as what it is."""

from __future__ import annotations

from uuid import UUID

import pytest
from engine_harness import NOW

from folkmoot.cli.conversation import Printer
from folkmoot.domain import items
from folkmoot.domain.credentials import CredentialFailure
from folkmoot.domain.items import Author, AuthorKind, Item, StoredItem


def test_summary_is_told_as_one(capfd: pytest.CaptureFixture[str]) -> None:
    """Context: an item of its own; shown as no words of its participant's."""
    author = Author(AuthorKind.AGENT, "Ann", UUID(int=1))
    body = items.Summary("They compared the road and the bridge.", 17, 900, 300, "small")
    Printer().show(StoredItem(20, NOW, Item(UUID(int=2), author, body)))
    shown = capfd.readouterr()
    assert "Ann: has what was said up to item 17 in short" in (shown.out + shown.err)
    assert "They compared the road" in (shown.out + shown.err)


def test_key_that_failed_is_told_with_its_rest(capfd: pytest.CaptureFixture[str]) -> None:
    """platform.md: failures are recorded with retryAfterSeconds; whoever looks at a run sees them."""
    failure = CredentialFailure("k-1", "openai", "Authentication", "The key was refused.", NOW, 600)
    Printer().key_failed(failure)
    shown = capfd.readouterr()
    assert "k-1 failed (Authentication) and rested for 600 s: The key was refused." in shown.out + shown.err


def test_work_that_is_sent_and_what_its_agent_does_are_told_apart(capfd: pytest.CaptureFixture[str]) -> None:
    lead, writer = (Author(AuthorKind.AGENT, name, UUID(int=n)) for n, name in ((1, "Lead"), (2, "Writer")))
    sent = items.Dispatched("Writer", "Write a line.", items.DispatchMode.ONE_TIME, "t-1")
    printer = Printer()
    printer.show(StoredItem(4, NOW, Item(UUID(int=4), lead, items.ToolCall("c-1", "dispatch", "{}"), sent)))
    said = Item(UUID(int=5), writer, items.AgentMessage("A line."), items.TurnEnd(), thread_id="t-1")
    printer.show(StoredItem(5, NOW, said))
    printed = capfd.readouterr()
    lines = (printed.out + printed.err).splitlines()
    assert lines == ["Lead: sends work to Writer: Write a line.", "    Writer: A line."]


def test_results_of_work_side_by_side_are_told_with_whose_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    printer = Printer()
    for number, name in ((1, "Nora"), (2, "Cal")):
        author, body = Author(AuthorKind.AGENT, name, UUID(int=number)), items.ToolCall(f"c-{number}", "look", "{}")
        printer.show(StoredItem(number, NOW, Item(UUID(int=number), author, body, thread_id=f"t-{number}")))
    for number, thread in ((2, "t-2"), (1, "t-1"), (3, items.MAIN_THREAD)):
        result = items.ToolResult(f"c-{number}", f"seen {number}", number == 1, 6)
        printer.show(StoredItem(number + 2, NOW, Item(UUID(int=9), items.ORCHESTRATOR, result, thread_id=thread)))
    printed = capfd.readouterr()
    lines = (printed.out + printed.err).splitlines()
    assert lines[2:] == ["       => to Cal: seen 2", "       => to Nora: failed: seen 1", "   => seen 3"]


def test_who_was_chosen_for_a_turn_and_why_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    routing = items.Routing(
        UUID(int=1), "desk", 1, UUID(int=2), 1, "coder", "Rule 1: turn 1.", is_fallback=False, depth=1
    )
    printer, words = Printer(), items.OrchestratorMessage("desk chose coder.")
    for detail in (
        items.Routed("Expert", routing, "Expert:1"),
        items.Floor("Expert", 1, (routing,), agent=UUID(int=2)),
    ):
        printer.show(StoredItem(4, NOW, Item(UUID(int=4), items.ORCHESTRATOR, words, detail, UUID(int=9))))
    printed = capfd.readouterr()
    assert (printed.out + printed.err).splitlines() == ["-- desk chose coder (Rule 1: turn 1.)"]
