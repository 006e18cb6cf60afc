"""`folkmoot runs approve`, `reject`, `vote`, `answer`, `pass` and `say`: what a person has to say to a run that waits, or goes on.

What is meant is named by its id; without one it is what waits, if that is one thing (B01). Deliberately absent: a decision on a call
that was not shown: the card is printed before the decision is made, and it is bound to that card.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import typer

from folkmoot.api.mapping.items import conversation_item
from folkmoot.api.mapping.pending import receipt
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import cards, screen
from folkmoot.cli.agent_ids import hint_of
from folkmoot.cli.opening import opened
from folkmoot.domain.inbox import InboxEntry, PendingEntry
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, NotFound, NotWaiting
from folkmoot.services import answers, consents, inbox, runs, trees

RunId = typer.Argument(help="The run's id, as `inbox` shows it.")
ApprovalId = typer.Argument(None, metavar="ID", help="The approval's id; what waits if left out, where that is one.")
Hash = typer.Option(None, "--hash", help="The arguments' hash that was seen: another card is refused.")
Id = typer.Option(None, "--id", help="What is answered; what waits if left out, where that is one.")
Reason = typer.Option(None, "--reason", help="Why.")
AsJson = typer.Option(False, "--json", help="Print the receipt as JSON.")

Answered = Callable[[Installation, Caller, InboxEntry], Awaitable[PendingEntry]]


def add_to(app: typer.Typer) -> None:
    """Below `folkmoot runs`."""
    for name, command in (
        ("approve", approve), ("reject", reject), ("vote", vote), ("answer", answer), ("pass", pass_turn), ("say", say),
    ):  # fmt: skip
        app.command(name)(command)


def approve(
    run_id: str = RunId, approval_id: str | None = ApprovalId, seen_hash: str | None = Hash, as_json: bool = AsJson
) -> None:
    """Approve a call that waits for it; it is made exactly as its card shows it, once."""
    _decide(run_id, approval_id, seen_hash, approves=True, reason=None, as_json=as_json)


def reject(
    run_id: str = RunId, approval_id: str | None = ApprovalId, reason: str | None = Reason, seen_hash: str | None = Hash,
    as_json: bool = AsJson,
) -> None:  # fmt: skip
    """Reject a call that waits for an approval; the participant is told why."""
    _decide(run_id, approval_id, seen_hash, approves=False, reason=reason, as_json=as_json)


def _decide(
    run_id: str, approval_id: str | None, seen_hash: str | None, *, approves: bool, reason: str | None, as_json: bool
) -> None:
    async def given(installation: Installation, caller: Caller, shown: InboxEntry) -> PendingEntry:
        pending = shown.entry.pending
        if shown.agent_run is not None and shown.chat_item_id is not None:
            await consents.answer(
                installation.database, caller, id_=shown.agent_run, chat_item_id=shown.chat_item_id, approves=approves,
                arguments_hash=seen_hash or (pending.binding_hash or b"").hex(), reason=reason, tell=installation.notifier.tell,
            )  # fmt: skip
            run_id = shown.entry.run_id
            return (await inbox.get(installation.database, caller, run_id=run_id, pending_id=pending.pending_id)).entry
        return await answers.decide(
            installation.database, caller, run_id=shown.entry.run_id, call_id=pending.pending_id, approves=approves,
            arguments_hash=seen_hash or (pending.binding_hash or b"").hex(), reason=reason, tell=installation.notifier.tell,
        )  # fmt: skip

    asyncio.run(_answer(run_id, approval_id, PendingKind.APPROVAL, given, as_json=as_json))


def vote(
    run_id: str = RunId,
    choice: str = typer.Argument(help="agree or disagree."),
    reason: str | None = Reason,
    ballot_id: str | None = Id,
    as_json: bool = AsJson,
) -> None:
    """Vote on a topic or a proposed answer. Whoever disagrees says why."""
    if choice not in ("agree", "disagree"):
        raise BadInput(f"'{choice[:40]}' is no vote; write agree or disagree.")

    async def given(installation: Installation, caller: Caller, shown: InboxEntry) -> PendingEntry:
        return await answers.vote(
            installation.database, caller, run_id=shown.entry.run_id, ballot_id=shown.entry.pending.pending_id, agrees=choice == "agree",
            reason=reason, new_id=installation.new_id, tell=installation.notifier.tell,
        )  # fmt: skip

    asyncio.run(_answer(run_id, ballot_id, PendingKind.VOTE, given, as_json=as_json))


def answer(
    run_id: str = RunId,
    text: str = typer.Argument(help="The answer."),
    question_id: str | None = Id,
    as_json: bool = AsJson,
) -> None:
    """Answer a participant's question."""

    async def given(installation: Installation, caller: Caller, shown: InboxEntry) -> PendingEntry:
        return await answers.answer(
            installation.database, caller, run_id=shown.entry.run_id, question_id=shown.entry.pending.pending_id, text=text,
            new_id=installation.new_id, tell=installation.notifier.tell,
        )  # fmt: skip

    asyncio.run(_answer(run_id, question_id, PendingKind.QUESTION, given, as_json=as_json))


def pass_turn(run_id: str = RunId, as_json: bool = AsJson) -> None:
    """Pass the floor on without a word."""

    async def given(installation: Installation, caller: Caller, shown: InboxEntry) -> PendingEntry:
        return await answers.pass_turn(
            installation.database, caller, run_id=shown.entry.run_id, turn_id=shown.entry.pending.pending_id,
            new_id=installation.new_id, tell=installation.notifier.tell,
        )  # fmt: skip

    asyncio.run(_answer(run_id, None, PendingKind.TURN, given, as_json=as_json))


def say(
    run_id: str = RunId,
    text: str = typer.Argument(help="What to say."),
    as_json: bool = typer.Option(False, "--json", help="Print the item as JSON."),
) -> None:
    """Say something to a run at once; where the person has the floor, it is the turn."""
    asyncio.run(_say(id_of(run_id, "run"), text, as_json=as_json))


async def _say(run_id: UUID, text: str, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        stored = await runs.post_message(
            installation.database, caller, run_id=run_id, message=text, new_id=installation.new_id, tell=installation.notifier.tell
        )  # fmt: skip
    if as_json:
        screen.put(conversation_item(stored).model_dump_json(by_alias=True))
    else:
        screen.say(f"Said, as item {stored.sequence}.")


async def _answer(run_text: str, id_text: str | None, kind: PendingKind, given: Answered, *, as_json: bool) -> None:
    """Show the card, then decide on it; print the receipt."""
    run_id = id_of(run_text, "run")
    async with opened() as (installation, caller):
        shown = await _meant(installation, caller, run_id, id_text, kind)
        for line in cards.lines(shown, is_below=shown.entry.run_id != run_id):
            screen.say(screen.printable(line))
        entry = await given(installation, caller, shown)
    if as_json:
        screen.put(receipt(entry).model_dump_json(by_alias=True))
    elif entry.settled is not None:
        who = screen.printable(entry.settled.by_name or "somebody")
        screen.say(f"{entry.status}, by {who} at {entry.settled.at.isoformat(timespec='seconds')}.")


async def _meant(
    installation: Installation, caller: Caller, run_id: UUID, id_text: str | None, kind: PendingKind
) -> InboxEntry:
    """What is to be answered. Raises BadInput where it is not said which of several."""
    if id_text is not None:
        found = await inbox.get(
            installation.database, caller, run_id=run_id, pending_id=id_of(id_text, "thing that waits")
        )
        if found.entry.pending.kind is not kind:
            raise NotFound(f"{id_text} is no {kind.lower()} but a {found.entry.pending.kind.lower()}.")
        return found
    await trees.type_of(installation.database, caller, run_id=run_id)  # there may be no such run
    waiting = [
        e for e in await inbox.of_run(installation.database, caller, run_id=run_id) if e.entry.pending.kind is kind
    ]
    if not waiting:
        raise NotWaiting(f"The run {run_id} waits for no {kind.lower()} now. `folkmoot inbox` shows what waits.")
    if len(waiting) > 1:
        ids = ", ".join(str(e.entry.pending.pending_id) for e in waiting)
        raise BadInput(f"The run {run_id} waits for {len(waiting)} of these; say which by its id: {ids}.")
    return waiting[0]


def id_of(text: str, what: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"'{text[:80]}' is no {what}'s id; `folkmoot inbox` shows them.{hint_of(text)}") from None
