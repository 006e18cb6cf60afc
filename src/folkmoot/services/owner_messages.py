"""What a run's owner is told over its channel: a request for consent, what became of one, the end of the run.

Made when it is sent, from what the chat item says then, with hidden characters shown and cuts said (F33). Deliberately absent: sending
(`runtime.channel_sending`), and the words of the apps around it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from folkmoot.domain.agent_runs import AgentRun, ChatItem, Consent, ConsentStatus
from folkmoot.domain.channels import MessageKind, OutgoingMessage
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_cards import shown_card
from folkmoot.domain.shown_text import shown, shown_json
from folkmoot.services import consent_secrets
from folkmoot.store import agent_runs, channel_messages, chats, identities
from folkmoot.store.channel_messages import DueChannelMessage
from folkmoot.store.database import Database
from folkmoot.vault.sealing import Vault

_SHOWN_CHARACTERS = 6_000
_SETTLED = "The request was settled before it was sent."


@dataclass(frozen=True, slots=True)
class Later:
    """The message cannot be sent yet: the request that it is about is being sent, and is changed where it will stand."""


@dataclass(frozen=True, slots=True)
class Obsolete:
    """The message is of no use any more; `why` as a sentence."""

    why: str


async def made(
    database: Database, vault: Vault, due: DueChannelMessage, *, app: str, public_url: str | None
) -> OutgoingMessage | Later | Obsolete:
    """The message as it is sent now."""
    if due.kind is not MessageKind.CONSENT_REQUESTED and due.chat_item_id is not None:
        async with database.writer() as writer:
            await channel_messages.discard_request(writer, due.tenant_id, chat_item_id=due.chat_item_id, error=_SETTLED)
    async with database.reader() as reader:
        run = await agent_runs.by_run(reader, due.tenant_id, run_id=due.run_id)
        if run is None:
            return Obsolete("The run is gone.")
        to = await identities.address_of(reader, due.tenant_id, user_id=run.owner_id, app=app)
        item = request = None
        if due.chat_item_id is not None:
            item = await chats.get(reader, due.tenant_id, chat_item_id=due.chat_item_id)
            request = await channel_messages.request(reader, due.tenant_id, chat_item_id=due.chat_item_id)
    secret = None
    if due.kind is MessageKind.CONSENT_REQUESTED:
        if item is None or item.consent is None or item.consent.status is not ConsentStatus.PENDING:
            return Obsolete(_SETTLED)
        secret = (
            consent_secrets.opened(vault, due.tenant_id, due.message_id, due.sealed_secret)
            if due.sealed_secret
            else None
        )
    elif request is not None and request.is_waiting:
        return Later()
    title, text, data = _told(run, due, item)
    return OutgoingMessage(
        due.message_id, due.kind, run.id, run.correlation_token, title, text, data, secret, _link(run, due, public_url), run.reply_params,
        request.reference if request is not None else None, to,
    )  # fmt: skip


def _link(run: AgentRun, due: DueChannelMessage, public_url: str | None) -> str | None:
    if public_url is None:
        return None
    place = f"consent/{run.correlation_token}" if due.kind is MessageKind.CONSENT_REQUESTED else f"agent-runs/{run.id}"
    return f"{public_url.rstrip('/')}/web/{place}"


def _told(run: AgentRun, due: DueChannelMessage, item: ChatItem | None) -> tuple[str, str, dict[str, Any]]:
    """Title, text, and the same for programs."""
    consent = item.consent if item is not None else None
    if due.kind is MessageKind.RUN_ENDED or consent is None:
        status, text = str(due.body.get("status")), shown(str(due.body.get("text") or ""), limit=_SHOWN_CHARACTERS).text
        title = f"{run.agent_name}: the run {run.id} is {status}"
        return title, text or "There is nothing more to say.", {"status": status, "agent": run.agent_name}
    assert item is not None
    call = _call(consent)
    data = {
        "agent": run.agent_name, "askedBy": consent.asked_by, "chatItemId": str(item.chat_item_id), "tool": consent.card["functionName"],
        "argumentsJson": consent.card["argumentsJson"], "argumentsHash": consent.arguments_hash.hex(), "status": consent.status.value,
        "expiresAt": consent.expires_at.isoformat() if consent.expires_at is not None else None,
    }  # fmt: skip
    if due.kind is MessageKind.CONSENT_REQUESTED:
        return _requested(run, consent, call), _request_text(run, consent, call), data
    return _settled(run, consent, call, data)


def _requested(run: AgentRun, consent: Consent, call: str) -> str:
    return f"{run.agent_name} asks for your consent: {shown(str(consent.card['functionName'])).text}"


def _request_text(run: AgentRun, consent: Consent, call: str) -> str:
    who = (
        run.agent_name
        if consent.asked_by == run.agent_name
        else f"The specialist {consent.asked_by}, working for {run.agent_name},"
    )
    lines = [f"{who} wants to make this call, and will not without your consent:", "", call]
    if consent.expires_at is not None:
        lines += ["", f"It waits until {consent.expires_at:%Y-%m-%d %H:%M} UTC; then the run ends."]
    return "\n".join(lines)


def _settled(run: AgentRun, consent: Consent, call: str, data: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    at = f" at {consent.decided_at:%Y-%m-%d %H:%M} UTC" if consent.decided_at is not None else ""
    if consent.status is ConsentStatus.EXPIRED:
        words = f"Nobody answered in time: the request expired{at}, the call was not made, and the run has ended."
    elif consent.status is ConsentStatus.CANCELLED:
        words = f"The run was cancelled{at}; the call was not made."
    else:
        over = f" over {consent.decided_over}" if consent.decided_over else ""
        words = f"{consent.status.value.capitalize()} by {consent.decided_by_name}{at}{over}."
        if consent.reason:
            words += f" Reason: {shown(consent.reason, limit=_SHOWN_CHARACTERS).text}"
    more = {**data, "decidedBy": consent.decided_by_name, "reason": consent.reason}
    return (
        f"{run.agent_name}: {shown(str(consent.card['functionName'])).text} {consent.status.value}",
        f"{words}\n\n{call}",
        more,
    )


def _call(consent: Consent) -> str:
    """The call as a person is shown it: what cannot be seen is made visible, and what is cut says so."""
    card = shown_card(PendingKind.APPROVAL, consent.card, limit=_SHOWN_CHARACTERS).fields["approval"]
    # laid out first, and then shown: read once more, what was made visible would be hidden again
    laid_out = json.dumps(json.loads(consent.card["argumentsJson"]), ensure_ascii=False, indent=2)
    arguments = shown_json(laid_out, limit=_SHOWN_CHARACTERS).text
    lines = [f"Tool: {card['functionName']}", f"Arguments: {arguments}"]
    if card["server"]:
        lines.append(f"Server: {card['server']}")
    return "\n".join(lines)
