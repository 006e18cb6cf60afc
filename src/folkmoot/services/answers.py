"""People's answers to what a run asks: a vote, an answer, a pass, a decision on a gated call. The first valid one counts (B03).

The server's record alone decides what is answered and what runs (B04); whoever answers is the authenticated caller (B15). An
attempt that comes too late or against a decision is refused and stays in the audit log. What a run below asks can be answered at
any run above it, and is answered there (B10). Deliberately absent: a message, which may
be a turn (`runs`), and what the answer leads to, which the engine decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.inbox import PendingEntry
from folkmoot.domain.items import Author, Item
from folkmoot.domain.pending import PendingKind, PendingOutcome
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import (
    AlreadyDecided,
    BadInput,
    Conflict,
    Fault,
    NotFound,
    NotWaiting,
    RunEnded,
    StaleApproval,
    TooLate,
    WaitingForApproval,
)
from folkmoot.kernel.ids import NewId
from folkmoot.services.people import Tell, author_of, tell_of_answer
from folkmoot.services.runs import view_of
from folkmoot.store import audit, pending, runs, trees
from folkmoot.store.codecs import safe_json
from folkmoot.store.database import Database, Writer
from folkmoot.store.pending import Answer, Found

_MAX_REASON_CHARACTERS = 10_000
_MAX_ANSWER_CHARACTERS = 1_000_000
_NOUNS = {
    PendingKind.APPROVAL: "approval",
    PendingKind.VOTE: "vote",
    PendingKind.QUESTION: "question",
    PendingKind.TURN: "turn",
}
_AUDITED = (AlreadyDecided, TooLate, StaleApproval)
ItemOf = Callable[[PendingEntry, Author], Item]
Guard = Callable[[Writer], Awaitable[Conflict | None]]


@dataclass(frozen=True, slots=True)
class _Given:
    """An answer as it came. `item_of`: what the conversation gets of it; null: nothing, or not yet."""

    kind: PendingKind
    outcome: PendingOutcome
    content: dict[str, Any]
    action: str
    item_of: ItemOf | None = None


async def vote(
    database: Database, caller: Caller, *, run_id: UUID, ballot_id: UUID, agrees: bool, reason: str | None, new_id: NewId, tell: Tell
) -> PendingEntry:  # fmt: skip
    """People's one vote on a topic or a solution; the receipt. Who disagrees says why. Raises BadInput, NotFound and Conflicts."""
    if agrees and reason:
        raise _bad("/reason", "A vote for it has no reason; leave it out, or send it as a message.")
    if not agrees:
        _check_text(reason, "/reason", "Say why you disagree", _MAX_REASON_CHARACTERS)

    def item_of(asked: PendingEntry, author: Author) -> Item:
        body = items.Agree(ballot_id) if agrees else items.Disagree(ballot_id, reason or "")
        return Item(new_id(), author, body, items.Balloted(ballot_id, 1), _turn_of(asked))

    content = {"agree": True} if agrees else {"agree": False, "reason": reason}
    given = _Given(PendingKind.VOTE, PendingOutcome.ANSWERED, content, "vote.cast", item_of)
    return await _answer(database, caller, run_id=run_id, pending_id=ballot_id, given=given, tell=tell)


async def answer(
    database: Database, caller: Caller, *, run_id: UUID, question_id: UUID, text: str, new_id: NewId, tell: Tell
) -> PendingEntry:
    """The answer to a participant's question; the receipt. Raises BadInput, NotFound and Conflicts."""
    _check_text(text, "/answer", "Write an answer", _MAX_ANSWER_CHARACTERS)

    def item_of(asked: PendingEntry, author: Author) -> Item:
        body = items.DirectQuestionAnswer(question_id, text)
        return Item(new_id(), author, body, items.TurnEnd(), _turn_of(asked))

    given = _Given(PendingKind.QUESTION, PendingOutcome.ANSWERED, {"answer": text}, "question.answered", item_of)
    return await _answer(database, caller, run_id=run_id, pending_id=question_id, given=given, tell=tell)


async def pass_turn(
    database: Database, caller: Caller, *, run_id: UUID, turn_id: UUID | None = None, new_id: NewId, tell: Tell
) -> PendingEntry:
    """Pass the floor on without a word; the receipt. `turn_id` null: the turn that waits now. Raises NotFound and Conflicts."""

    def item_of(asked: PendingEntry, author: Author) -> Item:
        return Item(new_id(), author, items.NoAction(), items.TurnEnd(), asked.pending.pending_id)

    given = _Given(PendingKind.TURN, PendingOutcome.ANSWERED, {"pass": True}, "turn.passed", item_of)
    return await _answer(database, caller, run_id=run_id, pending_id=turn_id, given=given, tell=tell)


async def decide(
    database: Database, caller: Caller, *, run_id: UUID, call_id: UUID, approves: bool, arguments_hash: str, reason: str | None,
    tell: Tell, run_type: ProcessType = ProcessType.INTERACTION, guard: Guard | None = None,
) -> PendingEntry:  # fmt: skip
    """Approve or reject a gated call, as its card shows it: `arguments_hash` (hex) is the card's. The receipt. `guard`: what must hold
    besides, in the same transaction.

    The call is made, or its error result recorded, by whoever claims the run. Raises BadInput, NotFound and Conflicts, among
    them StaleApproval where the card is another.
    """
    if approves and reason:
        raise _bad("/reason", "An approval has no reason; leave it out, or decline the call.")
    if reason is not None and reason != "":
        _check_text(reason, "/reason", "Say why", _MAX_REASON_CHARACTERS)
    content = {"decision": "Approve" if approves else "Reject", "argumentsHash": arguments_hash.lower()}
    if reason:
        content["reason"] = reason
    outcome = PendingOutcome.APPROVED if approves else PendingOutcome.REJECTED
    given = _Given(PendingKind.APPROVAL, outcome, content, f"approval.{outcome.lower()}")
    return await _answer(
        database, caller, run_id=run_id, pending_id=call_id, given=given, tell=tell, run_type=run_type, guard=guard
    )


async def _answer(
    database: Database, caller: Caller, *, run_id: UUID, pending_id: UUID | None, given: _Given, tell: Tell,
    run_type: ProcessType = ProcessType.INTERACTION, guard: Guard | None = None,
) -> PendingEntry:  # fmt: skip
    """One transaction: the run that asks is found and locked, then the answer counts, repeats one, or is refused."""
    sequence = None
    refusal: Conflict | None = None
    async with database.writer() as writer:
        if pending_id is not None:  # before any lock: a child is never locked after its parent
            run_id = await trees.holder(writer, caller.tenant_id, run_id=run_id, pending_id=pending_id) or run_id
        found = await _asked(writer, caller, run_id=run_id, pending_id=pending_id, kind=given.kind, run_type=run_type)
        refusal = _refusal(found, run_id, given)
        if refusal is None and found.entry.settled is None and guard is not None:
            refusal = await guard(writer)
        if refusal is None and found.entry.settled is not None:
            return found.entry
        if refusal is None:
            settled = await _settle(writer, caller, run_id=run_id, asked=found.entry, given=given)
            if settled is None:
                refusal = _too_late(given.kind, found, run_id)
            else:
                entry, sequence = settled
        if refusal is not None:
            await _note_refusal(writer, caller, run_id=run_id, asked=found.entry, given=given, refusal=refusal)
    if refusal is not None:
        raise refusal  # after the commit: the attempt is in the audit log
    tell_of_answer(tell, caller.tenant_id, run_id=run_id, sequence=sequence)
    return entry


async def _settle(
    writer: Writer, caller: Caller, *, run_id: UUID, asked: PendingEntry, given: _Given
) -> tuple[PendingEntry, int | None] | None:
    item = None
    if given.item_of is not None:
        resolved = await runs.resolved(writer, caller.tenant_id, run_id=run_id)
        item = given.item_of(asked, author_of(caller, resolved))
    counted = Answer(
        asked.pending.pending_id,
        given.outcome,
        given.content,
        caller.user_id,
        caller.user_name,
        audit.channel_of(caller),
        item,
    )
    settled = await pending.settle(writer, caller.tenant_id, run_id=run_id, answer=counted)
    if settled is None:
        return None
    entry, stored = settled
    detail = {"pendingId": str(asked.pending.pending_id), **_audited(given)}
    await audit.note(writer, caller, action=given.action, subject_kind="run", subject_id=run_id, detail=detail)
    return entry, stored.sequence if stored is not None else None


async def _note_refusal(
    writer: Writer, caller: Caller, *, run_id: UUID, asked: PendingEntry, given: _Given, refusal: Conflict
) -> None:
    detail = {"pendingId": str(asked.pending.pending_id), "code": refusal.code, **_audited(given)}
    action = f"{given.action.partition('.')[0]}.refused"
    await audit.note(writer, caller, action=action, subject_kind="run", subject_id=run_id, detail=detail)


def _audited(given: _Given) -> dict[str, Any]:
    """The decision and what it was bound to; a text is in the conversation, and not kept twice."""
    return {name: value for name, value in given.content.items() if name in ("agree", "decision", "argumentsHash")}


async def _asked(
    writer: Writer, caller: Caller, *, run_id: UUID, pending_id: UUID | None, kind: PendingKind, run_type: ProcessType
) -> Found:
    """What the answer is to. Raises NotFound, and NotWaiting or WaitingForApproval where nobody was asked that."""
    run = await pending.lock_run(writer, caller.tenant_id, run_id=run_id, run_type=run_type)
    if run is None:
        await view_of(writer, caller, run_id)  # says what there is under this id
        raise NotFound(f"There is no run {run_id}. `folkmoot runs list` shows those there are.")
    found = None
    if pending_id is not None:
        found = await pending.find(writer, caller.tenant_id, run_id=run_id, pending_id=pending_id)
        is_lost = found is not None and found.entry.settled is None and run.has_ended  # its run ended without it
        if found is not None and found.entry.pending.kind is kind and not is_lost:
            return found
    waiting = await pending.open_ones(writer, caller.tenant_id, run_id=run_id) if not run.has_ended else []
    if pending_id is None:
        for one in waiting:
            if one.entry.pending.kind is kind:
                return one
    elif found is None and not await pending.is_of_run(writer, caller.tenant_id, run_id=run_id, pending_id=pending_id):
        raise NotFound(
            f"The run {run_id} has no {_NOUNS[kind]} {pending_id}. `folkmoot inbox`, or GET /approvals?root={run_id}, lists what waits."
        )
    for one in waiting:
        if one.entry.pending.kind is PendingKind.APPROVAL:
            raise WaitingForApproval(
                f"The run {run_id} waits for the approval {one.entry.pending.pending_id}, not for this. Decide that one first."
            )
    if found is not None and found.entry.pending.kind is not kind:
        raise NotFound(
            f"{pending_id} is no {_NOUNS[kind]} but a {_NOUNS[found.entry.pending.kind]}; answer it as such."
        )
    if run.has_ended:
        raise RunEnded(f"The run {run_id} is {run.status} and takes no answer any more.")
    raise NotWaiting(
        f"The run {run_id} is {run.status} and waits for no such answer. Watch it, and answer when it asks."
    )


def _refusal(found: Found, run_id: UUID, given: _Given) -> Conflict | None:
    """Why the answer does not count; null where it does, or is the one that was given."""
    settled = found.entry.settled
    if settled is None and not found.is_due:
        bound = found.entry.pending.binding_hash
        if given.kind is PendingKind.APPROVAL and bound is not None and given.content["argumentsHash"] != bound.hex():
            return StaleApproval(
                f"What the approval {found.entry.pending.pending_id} would run is not what you were shown. Read it again, and decide on what "
                "it shows now."
            )
        return None
    if settled is None or settled.by is None or settled.outcome in (PendingOutcome.EXPIRED, PendingOutcome.STOPPED):
        return _too_late(given.kind, found, run_id)
    if settled.outcome is given.outcome and settled.answer == safe_json(given.content):
        return None
    is_declined = found.chat_item_id is not None and settled.outcome is PendingOutcome.REJECTED
    became = "declined" if is_declined else settled.outcome.lower()
    return AlreadyDecided(
        f"{_what(given.kind, found, run_id)} was {became} by {settled.by_name} at "
        f"{_moment(settled.at)}{_words_of(settled.answer)}; your answer changes nothing."
    )


def _too_late(kind: PendingKind, found: Found, run_id: UUID) -> TooLate:
    asked, what = found.entry, _what(kind, found, run_id)
    settled = asked.settled
    if settled is not None and settled.outcome is PendingOutcome.STOPPED:
        ended = "cancelled" if found.chat_item_id is not None else "stopped"
        return TooLate(f"{what} is closed: {settled.by_name or 'somebody'} {ended} the run at {_moment(settled.at)}.")
    until = asked.expires_at or (settled.at if settled is not None else None)
    return TooLate(f"{what} expired{f' at {_moment(until)}' if until is not None else ''}. Start a new run.")


def _what(kind: PendingKind, found: Found, run_id: UUID) -> str:
    """What was asked, by the id that whoever answers knows."""
    if found.chat_item_id is not None:
        return f"The consent {found.chat_item_id}"
    return f"The {_NOUNS[kind]} {found.entry.pending.pending_id} of run {run_id}"


def _words_of(answer: dict[str, Any] | None) -> str:
    """What was decided, in a few words."""
    match answer or {}:
        case {"agree": True}:
            return " with a vote for it"
        case {"agree": False}:
            return " with a vote against it"
        case {"pass": True}:
            return " with a pass"
        case _:
            return ""


def _turn_of(asked: PendingEntry) -> UUID | None:
    text = asked.pending.card.get("turnId")
    return UUID(text) if text else None


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


def _check_text(text: str | None, pointer: str, what: str, most: int) -> None:
    """Raises BadInput: half an answer is none (B11)."""
    if text is None or not text.strip():
        raise _bad(pointer, f"{what}; nothing was recorded.")
    if len(text) > most:
        raise _bad(pointer, f"{what} in at most {most:,} characters; nothing was recorded.")


def _bad(pointer: str, message: str) -> BadInput:
    return BadInput(message, (Fault(pointer, message),))
