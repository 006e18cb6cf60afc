"""What comes in over channels: a request to a channel's inbound address, or what its app finds when it looks.

The channel's own app says whether it is genuine and what it says; `consents` says whether it counts. Every sender sees what became of
their answer (B16). Deliberately absent: messages that start runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
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
from folkmoot.kernel.errors import NotFound, SecretFault
from folkmoot.services import channel_answers, channel_setups
from folkmoot.services.channel_setups import ReadyChannel
from folkmoot.services.people import Tell
from folkmoot.store.database import Database
from folkmoot.store.walls import walled
from folkmoot.vault.sealing import Vault

ReadRequest = Callable[[], Awaitable[InboundRequest]]

_log = logging.getLogger("folkmoot.channels")


async def receive(
    database: Database, vault: Vault, apps: ChannelApps, *, channel_id: UUID, read: ReadRequest, tell: Tell
) -> Answered:
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
        return HttpProblem(error.status, str(error))
    outcomes = await _counted(database, apps, channel, reception, tells_again=True, tell=tell)
    if reception.http is not None:
        return reception.http
    told = [{"outcome": outcome.kind.value, "detail": outcome.words} for outcome in outcomes]
    return HttpAnswer(200, json.dumps({"outcomes": told}, ensure_ascii=False).encode())


async def look(
    database: Database, vault: Vault, apps: ChannelApps, *, tenant_id: UUID, channel_id: UUID, tell: Tell
) -> int:
    """Take in what an app that polls finds for a channel; how many answers. Raises ChannelDown, ChannelRefused, NotFound, SecretFault."""
    database = walled(database, tenant_id)
    channel = await channel_setups.ready(database, vault, tenant_id, channel_id=channel_id)
    app = apps.find(channel.app)
    reception = await app.receive(channel.setup, None)
    await _counted(database, apps, channel, reception, tells_again=False, tell=tell)
    if reception.answers:
        await app.taken(channel.setup, reception.answers)
    return len(reception.answers)


async def _counted(
    database: Database, apps: ChannelApps, channel: ReadyChannel, reception: Reception, *, tells_again: bool, tell: Tell
) -> list[AnswerOutcome]:
    """What became of each answer; whoever gave it is told over the channel. One that could not be told stands all the same. `tells_again`: also
    whose answer came before; not where a look may find the same one for ever, since it cannot be marked as read."""
    outcomes: list[AnswerOutcome] = []
    for received in reception.answers:
        outcome = await channel_answers.answer_over_channel(
            database,
            tenant_id=channel.tenant_id,
            channel_id=channel.channel_id,
            app=channel.app,
            received=received,
            tell=tell,
        )
        outcomes.append(outcome)
        if tells_again or not outcome.is_repeat:
            await _tell(apps, channel, received, outcome)
    return outcomes


async def _tell(apps: ChannelApps, channel: ReadyChannel, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
    try:
        await apps.find(channel.app).tell(channel.setup, received, outcome)
    except (ChannelDown, ChannelRefused) as error:
        _log.warning(
            "The sender of an answer over the channel %s could not be told of it: %s", channel.channel_id, error
        )
    except ChannelError as error:
        _log.warning("The app of the channel %s failed: %s", channel.channel_id, error)


def _missing(channel_id: UUID) -> NotFound:
    return NotFound(f"There is no channel {channel_id} that takes anything in.")
