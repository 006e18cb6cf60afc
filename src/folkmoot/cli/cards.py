"""What a run asks a person, on a terminal: who asks, what exactly, and how to answer by typing or by a command.

Texts are shown as in an approval: nothing in them hides, reorders or ends early. Deliberately absent: reading what is typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from folkmoot.domain.inbox import InboxEntry
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_text import shown, shown_json

_TEXT_CHARACTERS = 4_000
_SUMMARY_CHARACTERS = 100

CONSENT = "its owner's consent"
TYPED: dict[PendingKind, str] = {
    PendingKind.APPROVAL: "Type approve, or reject and why.",
    PendingKind.VOTE: "Type y to agree, or n and why.",
    PendingKind.QUESTION: "Type your answer.",
    PendingKind.TURN: "Type what you say, or /pass.",
}


def lines(entry: InboxEntry, *, is_below: bool = False) -> Iterator[str]:
    """The card, without how to answer it. `is_below`: another run is looked at, and this is what a sub-run of it asks."""
    asked = entry.entry
    if entry.agent_run is not None:
        yield f"?? Agent run {entry.agent_run} of {_text(entry.namespace)}/{_text(entry.interaction_name)} asks:"
    elif is_below:
        yield f"?? The sub-run {_text(entry.namespace)}/{_text(entry.interaction_name)} {asked.run_id} asks:"
    card = asked.pending.card
    match asked.pending.kind:
        case PendingKind.APPROVAL:
            yield from call(card, needs="an approval" if entry.agent_run is None else CONSENT)
        case PendingKind.VOTE:
            verb = "proposes as the answer" if card["isSolution"] else "puts to the vote"
            yield f"?? {_text(card['proposer'])} {verb}: {_text(card['text'])}"
        case PendingKind.QUESTION:
            yield f"?? {_text(card['asker'])} asks you: {_text(card['question'])}"
        case PendingKind.TURN:
            yield f"?? You have the floor in round {card['round']}."
    if asked.expires_at is not None:
        yield f"   until {asked.expires_at.isoformat(timespec='seconds')}, then the run ends"


def summary(entry: InboxEntry) -> str:
    """On one line, for a table."""
    card = entry.entry.pending.card
    match entry.entry.pending.kind:
        case PendingKind.APPROVAL:
            text = f"{card['agentName']}: {card['functionName']}({shown_json(card['argumentsJson']).text})"
        case PendingKind.VOTE:
            text = f"{card['proposer']}: {card['text']}"
        case PendingKind.QUESTION:
            text = f"{card['asker']}: {card['question']}"
        case PendingKind.TURN:
            text = f"the floor in round {card['round']}"
    # both ends, since whoever shows it leaves out more of the middle
    ends = (
        f"{text[:_SUMMARY_CHARACTERS]} … {text[-_SUMMARY_CHARACTERS:]}" if len(text) > 2 * _SUMMARY_CHARACTERS else text
    )
    return shown(ends).text


def command(shown_entry: InboxEntry) -> str:
    """How to answer it from another terminal."""
    if shown_entry.agent_run is not None:
        return consent_command(shown_entry.agent_run)
    entry = shown_entry.entry
    run, id_ = entry.run_id, entry.pending.pending_id
    match entry.pending.kind:
        case PendingKind.APPROVAL:
            return f"folkmoot runs approve {run} {id_}, or folkmoot runs reject {run} {id_} --reason WHY"
        case PendingKind.VOTE:
            return f"folkmoot runs vote {run} agree --id {id_}, or disagree with --reason WHY"
        case PendingKind.QUESTION:
            return f"folkmoot runs answer {run} TEXT --id {id_}"
        case PendingKind.TURN:
            return f"folkmoot runs say {run} TEXT, or folkmoot runs pass {run}"


def consent_command(agent_run: int) -> str:
    """How to answer what an agent run asks its owner."""
    return f"folkmoot agent consent {agent_run} --approve, or --decline --reason WHY"


def call(card: dict[str, Any], *, needs: str) -> Iterator[str]:
    """A call that is made only once a person has approved it, as its card has it. `needs`: what it waits for."""
    yield f"?? {_text(card['agentName'])} wants to call {_text(card['functionName'])}, which needs {needs}"
    if card.get("connector"):
        yield f"   of {_text(card['connector'])}, version {card.get('operationVersion')}, at {_text(card.get('server') or '')}"
    if card.get("description"):
        yield f"   it says: {_text(card['description'])}"
    yield f"   arguments: {_json(card['argumentsJson'])}"
    yield f"   hash of all this: {card['argumentsHash']}"
    for call in card.get("deferred", ()):
        yield f"   after it: {_text(call['functionName'])}({_json(call['argumentsJson'])})"


def _text(text: str) -> str:
    return shown(text, limit=_TEXT_CHARACTERS).text


def _json(text: str) -> str:
    return shown_json(text, limit=_TEXT_CHARACTERS).text
