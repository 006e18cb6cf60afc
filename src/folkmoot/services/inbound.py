"""What comes in over channels: a request to a channel's inbound address, or what its app finds when it looks.

The channel's own app says whether it is genuine and what it says; `consents` says whether it counts. Every sender sees what became of
their answer (B16). Deliberately absent: messages that start runs.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from folkmoot.channels.channel import ChannelDown, ChannelError, ChannelRefused, Forged
from folkmoot.channels.registry import AppUnavailable, ChannelApps
from folkmoot.domain.channels import (
    Answered,
    AnswerOutcome,
    HttpAnswer,
    HttpProblem,
    InboundRequest,
    ReceivedAnswer,
    Reception,
)
from folkmoot.kernel.errors import FolkmootError, NotFound, SecretFault
from folkmoot.services import channel_answers, channel_setups
from folkmoot.services.channel_setups import ReadyChannel
from folkmoot.services.people import Tell
from folkmoot.store.database import FAILURES, Database
from folkmoot.store.walls import walled
from folkmoot.vault.sealing import Vault

ReadRequest = Callable[[], Awaitable[InboundRequest]]

_log = logging.getLogger("folkmoot.channels")


@dataclass(frozen=True, slots=True)
class Taken:
    """`answered`: what the request is answered. `telling`: goes on until each sender of an answer knows over the channel what became of it, which may
    take longer than who sent the request waits; it raises nothing that is expected."""

    answered: Answered
    telling: asyncio.Task[None] | None = None


async def receive(
    database: Database, vault: Vault, apps: ChannelApps, *, channel_id: UUID, read: ReadRequest, tell: Tell
) -> Taken:
    """What a request to a channel's inbound address is answered: what its app says, else what became of each answer in it.

    `database`: of no tenant, since the request has none until its channel is found. `read` gives the request; nothing is read for a channel
    that is not there. Raises NotFound.
    """
    tenant_id = await channel_setups.tenant_of(database, channel_id)
    if tenant_id is None:
        raise _missing(channel_id)
    database = walled(database, tenant_id)
    try:
        channel = await channel_setups.ready(database, vault, tenant_id, channel_id=channel_id)
        app = apps.find(channel.app)
    except (NotFound, SecretFault, AppUnavailable) as error:  # its own words are for its tenant
        _log.info("The channel %s takes nothing in: %s", channel_id, error)
        raise _missing(channel_id) from None
    try:
        reception = await app.receive(channel.setup, await read())
    except Forged as error:
        return Taken(HttpProblem(error.status, str(error)))
    outcomes = [await _outcome(database, channel, received, tell=tell) for received in reception.answers]
    telling = asyncio.create_task(_tell(database, apps, channel, reception, outcomes)) if outcomes else None
    if reception.http is not None:
        return Taken(reception.http, telling)
    told = [{"outcome": outcome.kind.value, "detail": outcome.words} for outcome in outcomes]
    return Taken(HttpAnswer(200, json.dumps({"outcomes": told}, ensure_ascii=False).encode()), telling)


async def look(
    database: Database, vault: Vault, apps: ChannelApps, *, tenant_id: UUID, channel_id: UUID, tell: Tell
) -> int:
    """Take in what an app that polls finds for a channel; how many answers. Raises ChannelDown, ChannelRefused, NotFound, SecretFault."""
    database = walled(database, tenant_id)
    channel = await channel_setups.ready(database, vault, tenant_id, channel_id=channel_id)
    app = apps.find(channel.app)
    reception = await app.receive(channel.setup, None)
    for received in reception.answers:
        outcome = await _outcome(database, channel, received, tell=tell)
        await _tell_one(database, apps, channel, received, outcome)
    if reception.answers:
        await app.taken(channel.setup, reception.answers)
    return len(reception.answers)


async def _outcome(database: Database, channel: ReadyChannel, received: ReceivedAnswer, *, tell: Tell) -> AnswerOutcome:
    return await channel_answers.answer_over_channel(
        database, tenant_id=channel.tenant_id, channel_id=channel.channel_id, app=channel.app, received=received, tell=tell
    )  # fmt: skip


async def _tell(
    database: Database, apps: ChannelApps, channel: ReadyChannel, reception: Reception, outcomes: list[AnswerOutcome]
) -> None:
    for received, outcome in zip(reception.answers, outcomes, strict=True):
        await _tell_one(database, apps, channel, received, outcome)


async def _tell_one(
    database: Database, apps: ChannelApps, channel: ReadyChannel, received: ReceivedAnswer, outcome: AnswerOutcome
) -> None:
    """Whoever gave the answer is told once what became of it. It is tried again where a process died in the middle and the answer comes again, or is
    found again; not where the channel failed, since it may have gone out all the same. What could not be told stands."""
    if outcome.is_told:
        return
    tenant_id, channel_id = channel.tenant_id, channel.channel_id
    try:
        await apps.find(channel.app).tell(channel.setup, received, outcome)
    except (ChannelDown, ChannelRefused) as error:
        _log.warning("The sender of an answer over the channel %s could not be told of it: %s", channel_id, error)
    except ChannelError as error:
        _log.warning("The app of the channel %s failed: %s", channel_id, error)
    try:
        await channel_answers.note_told(database, tenant_id=tenant_id, channel_id=channel_id, received=received)
    except (FolkmootError, *FAILURES) as error:
        _log.warning("That the sender of an answer over the channel %s was told is not noted: %s", channel_id, error)


def _missing(channel_id: UUID) -> NotFound:
    return NotFound(f"There is no channel {channel_id} that takes anything in.")
