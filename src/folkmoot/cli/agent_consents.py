"""`folkmoot agent consent`: approve or decline what an agent run asks its owner, by an option or by what is typed.

A decision is a word of its own, and bound to the card that was shown: if what would run is another by now, it is refused (B05). Deliberately
absent: what an answer leads to.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import typer

from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import agent_json, screen
from folkmoot.cli.agent_ids import AgentRunId, id_of
from folkmoot.cli.agent_printer import TYPED, card
from folkmoot.cli.agent_printer import decided as decided_words
from folkmoot.cli.keyboard import is_terminal, typed_lines
from folkmoot.cli.opening import opened
from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, NotWaiting, RunEnded, StaleApproval
from folkmoot.services import agent_runs, consents

_DECLINES = ("decline", "reject")
_CHAT = 200


@dataclass(frozen=True, slots=True)
class Decision:
    approves: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Answering:
    """Whoever answers, and the run that asks or is above the one that does."""

    installation: Installation
    caller: Caller
    id_: int

    async def answer(self, asked: ChatItem | None, line: str) -> None:
        """Take a typed line as the answer to what was shown. Raises BadInput for a line that is none, and what `decide` raises."""
        if asked is None:
            raise NotWaiting("The run asks nothing now, and takes no messages.")
        await self.decide(asked, read(line))

    async def decide(self, asked: ChatItem, decision: Decision) -> ChatItem:
        """The request as it stands then. Raises what `consents.answer` raises."""
        consent = asked.consent
        assert consent is not None
        return await consents.answer(
            self.installation.database, self.caller, id_=self.id_, chat_item_id=asked.chat_item_id, approves=decision.approves,
            arguments_hash=consent.arguments_hash.hex(), reason=decision.reason, tell=self.installation.notifier.tell,
        )  # fmt: skip


def read(line: str) -> Decision:
    """`approve` alone, or `decline` and why. Raises BadInput: nothing else is a decision."""
    word, _, rest = line.strip().partition(" ")
    reason = rest.strip() or None
    if word.lower() == "approve" and reason is None:
        return Decision(True)
    if word.lower() in _DECLINES:
        return Decision(False, reason)
    raise BadInput(f"That is no decision. {TYPED}")


def consent(
    run_id: str = AgentRunId,
    approve: bool = typer.Option(False, "--approve", help="Have the call made, once, exactly as it is shown."),
    decline: bool = typer.Option(False, "--decline", help="Have it not made; the agent is told who declined, and why."),
    reason: str | None = typer.Option(None, "--reason", help="Why it is declined."),
    seen_hash: str | None = typer.Option(
        None, "--hash", help="The hash of the card that was seen: another one is refused."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the decided request as JSON."),
) -> None:
    """Answer what an agent run asks its owner. The call is shown first; without a decision it is asked for at a terminal."""
    if approve and decline:
        raise BadInput("Give --approve or --decline, not both.")
    if reason is not None and not decline:
        raise BadInput("--reason says why a call is declined; give --decline with it, or leave it out.")
    decision = Decision(approve, reason) if approve or decline else None
    asyncio.run(_consent(id_of(run_id), decision, seen_hash, as_json=as_json))


async def _consent(id_: int, decision: Decision | None, seen_hash: str | None, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        asked = await _asked(installation, caller, id_)
        run = await agent_runs.get(installation.database, caller, id_=id_)
        for line in card(asked, run):
            screen.say(screen.printable(line))
        assert asked.consent is not None
        if seen_hash is not None and seen_hash.lower() != asked.consent.arguments_hash.hex():
            raise StaleApproval(
                f"What agent run {id_} asks now is not what you were shown. Read it again, and decide on that."
            )
        if decision is None:
            decision = await _typed()
        decided = await Answering(installation, caller, id_).decide(asked, decision)
    if as_json:
        screen.put_json(agent_json.consent(decided))
    elif (words := decided_words(decided)) is not None:
        screen.say(screen.printable(words))


async def _asked(installation: Installation, caller: Caller, id_: int) -> ChatItem:
    run = await agent_runs.get(installation.database, caller, id_=id_)
    if run.completed_at is not None:
        raise RunEnded(
            f"Agent run {id_} is {run.status} and asks nothing any more.{await _before(installation, caller, run)}"
        )
    asked = await agent_runs.asked(installation.database, caller, id_=id_)
    if asked is None:
        raise NotWaiting(
            f"Agent run {id_} asks nothing now.{await _before(installation, caller, run)} `folkmoot inbox` shows what waits."
        )
    return asked


async def _before(installation: Installation, caller: Caller, run: AgentRun) -> str:
    """What was decided last, for whoever comes later; nothing where nothing was."""
    last = await decided_last(installation, caller, run)
    if last is None or last.consent is None:
        return ""
    return screen.printable(f" Its call of {last.consent.card['functionName']} was {decided_words(last)}")


async def decided_last(installation: Installation, caller: Caller, run: AgentRun) -> ChatItem | None:
    """The newest request of the run, or of one that it delegated and that it still waits for, on which somebody has decided."""
    return next(iter(await decided_before(installation, caller, run)), None)


async def decided_before(installation: Installation, caller: Caller, run: AgentRun) -> list[ChatItem]:
    """All such requests, of the newest parts of the conversation behind the run, the newest first."""
    chat = await agent_runs.chat(installation.database, caller, id_=run.id, before=None, limit=_CHAT)
    return [
        item
        for item in chat
        if (item.agent_run == run.id or item.chat_item_id == run.chat_item_id) and decided_words(item) is not None
    ]


async def _typed() -> Decision:
    """The first line that is a decision. Raises BadInput where nobody can be asked, or nothing was decided."""
    if is_terminal():
        screen.say(f"   {TYPED}")
        async for line in typed_lines():
            try:
                return read(line)
            except BadInput as error:
                screen.say(str(error))
    raise BadInput("Nothing was decided. Give --approve, or --decline and --reason with why.")
