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
