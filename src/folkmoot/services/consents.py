"""Answers to what agent runs ask their owners: by id over the API, or over a channel by token. The first valid one counts.

A token finds the run, and that is all it does. Who answers is known by their key, or by a channel that can prove who speaks; where it
cannot, the request's own secret is needed beside, which is good once and for ten tries. Deliberately absent: what an answer leads to, which the
engine decides, and how messages come and go (`inbound`, `runtime`).
"""

from __future__ import annotations

import hashlib
import hmac
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, ChatItem, ConsentStatus
from folkmoot.domain.channels import WEB, Answer, AnswerOutcome, OutcomeKind, ReceivedAnswer
from folkmoot.domain.rights import Right, rights_of
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import (
    AlreadyDecided,
    Conflict,
    FolkmootError,
    NotFound,
    NotPermitted,
    RunEnded,
    StaleApproval,
    TooLate,
)
from folkmoot.services import agent_runs as agent_run_service
from folkmoot.services import answers
from folkmoot.services.people import Tell
from folkmoot.store import agent_runs, audit, channel_messages, chats, identities, users
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.walls import walled

_DECIDED = {ConsentStatus.APPROVED: "approved", ConsentStatus.DECLINED: "declined"}


async def answer(
    database: Database, caller: Caller, *, id_: int, chat_item_id: UUID, approves: bool, arguments_hash: str, reason: str | None, tell: Tell
) -> ChatItem:  # fmt: skip
    """Approve or decline a call, as its chat item shows it; the item as it stands then. At the run that asks, or at one above it.

    Raises NotFound, NotPermitted, BadInput, and Conflicts: AlreadyDecided, StaleApproval, TooLate.
    """
    async with database.reader() as reader:
        run = await agent_run_service.found(reader, caller, id_)
        item = await _item_of(reader, caller.tenant_id, run, chat_item_id)
        is_allowed = await agent_run_service.may_answer(reader, caller, run)
    if not is_allowed:
        await _note_refusal(database, caller, run, item)
        raise NotPermitted(
            f"What agent run {id_} asks is for its agent's owner to answer, or for an owner or admin of the tenant."
        )
    return await _decide(
        database, caller, item, approves=approves, arguments_hash=arguments_hash, reason=reason, tell=tell
    )


async def _decide(
    database: Database, caller: Caller, item: ChatItem, *, approves: bool, arguments_hash: str, reason: str | None, tell: Tell,
    guard: answers.Guard | None = None,
) -> ChatItem:  # fmt: skip
    assert item.consent is not None and item.run_id is not None
    await answers.decide(
        database, caller, run_id=item.run_id, call_id=UUID(item.consent.call_id), approves=approves, arguments_hash=arguments_hash,
        reason=reason, tell=tell, run_type=ProcessType.AGENT_RUN, guard=guard,
    )  # fmt: skip
    async with database.reader() as reader:
        now = await chats.get(reader, caller.tenant_id, chat_item_id=item.chat_item_id)
    assert now is not None
    return now


async def _item_of(reader: Reader, tenant_id: UUID, run: AgentRun, chat_item_id: UUID) -> ChatItem:
    """A consent that this run's delegation asked for. Raises NotFound."""
    item = await chats.get(reader, tenant_id, chat_item_id=chat_item_id)
    asks = item.run_id if item is not None and item.consent is not None else None
    if asks is None or not await agent_runs.is_within(reader, tenant_id, run_id=asks, top=run.run_id):
        item = None
    if item is None:
        raise NotFound(
            f"Agent run {run.id} has no consent {chat_item_id}. GET /agent-runs/{run.id} shows what it asks now (chatItemId)."
        )
    return item


async def _note_refusal(database: Database, caller: Caller, run: AgentRun, item: ChatItem) -> None:
    async with database.writer() as writer:
        await audit.note(
            writer, caller, action="approval.refused", subject_kind="run", subject_id=run.run_id,
            detail={"chatItemId": str(item.chat_item_id), "code": "not-permitted"},
        )  # fmt: skip


# over a channel


async def answer_over_channel(
    database: Database, *, tenant_id: UUID, channel_id: UUID, app: str, received: ReceivedAnswer, tell: Tell
) -> AnswerOutcome:
    """What became of an answer that came in; never raises for what it says. One that is sent again is told the same, and does nothing."""
    if received.is_automatic:
        return AnswerOutcome(OutcomeKind.IGNORED, "This is an automatic message, and was not read as an answer.")
    async with database.reader() as reader:
        earlier = await channel_messages.earlier_outcome(
            reader, tenant_id, channel_id=channel_id, inbound_id=received.inbound_id
        )
    if earlier is not None:
        return earlier
    outcome = await _outcome(database, tenant_id, channel_id=channel_id, app=app, received=received, tell=tell)
    async with database.writer() as writer:
        await channel_messages.note_inbound(
            writer, tenant_id, channel_id=channel_id, inbound_id=received.inbound_id, outcome=outcome
        )
    return outcome


async def _outcome(
    database: Database, tenant_id: UUID, *, channel_id: UUID, app: str, received: ReceivedAnswer, tell: Tell
) -> AnswerOutcome:
    async with database.reader() as reader:
        run = await agent_runs.by_token(reader, tenant_id, token=received.token) if received.token else None
        if run is None or run.channel_id != channel_id:
            return AnswerOutcome(OutcomeKind.NOT_FOUND, "This answers nothing that was asked here.")
        user = await _sender(reader, tenant_id, app=app, run=run, received=received)
        if user is None:
            return AnswerOutcome(OutcomeKind.NOT_YOURS, "This was not asked of you, so your answer was not counted.")
        item = await chats.get(reader, tenant_id, chat_item_id=run.chat_item_id) if run.chat_item_id else None
        caller = Caller(tenant_id, user.user_id, user.name, role=user.role, rights=rights_of(user.role, None), over=app)
        is_allowed = await agent_run_service.may_answer(reader, caller, run) and Right.APPROVE in caller.rights
    if not is_allowed:
        return AnswerOutcome(OutcomeKind.NOT_YOURS, "This was not asked of you, so your answer was not counted.")
    if item is None or item.consent is None:
        return AnswerOutcome(OutcomeKind.NOT_FOUND, "Nothing is asked there at the moment.")
    settled = _settled(item)
    if settled is not None:
        return settled
    if received.answer is None:
        return AnswerOutcome(OutcomeKind.NOT_UNDERSTOOD, _not_understood(received))
    guard = None
    if not received.is_proven:
        refusal = await _try_secret(database, tenant_id, item, received.secret)
        if refusal is not None:
            return refusal
        guard = _use_of(tenant_id, item, received.secret or "")
    return await _counted(database, caller, item, received, guard=guard, tell=tell)


async def _sender(reader: Reader, tenant_id: UUID, *, app: str, run: AgentRun, received: ReceivedAnswer) -> User | None:
    """Who answers, of the people of this tenant. Where an app names no sender, its own signature stands for the owner to whom its
    requests go."""
    if received.sender is not None:
        return await identities.user_of(reader, tenant_id, app=app, address=received.sender)
    root = await agent_runs.root(reader, tenant_id, run_id=run.run_id)
    found = await users.get(reader, tenant_id, user_id=root.owner_id) if root is not None else None
    return found if found is not None and found.removed_at is None else None


async def _try_secret(database: Database, tenant_id: UUID, item: ChatItem, secret: str | None) -> AnswerOutcome | None:
    """Why the secret does not do; null where it does. Each look counts as a try, also one that comes to nothing."""
    if not secret:
        return AnswerOutcome(
            OutcomeKind.NOT_YOURS,
            "The request's own code is missing, so your answer was not counted. Answer the request itself.",
        )
    async with database.writer() as writer:
        tried = await chats.try_secret(writer, tenant_id, chat_item_id=item.chat_item_id)
    if tried is None:
        return AnswerOutcome(
            OutcomeKind.NOT_YOURS,
            "Too many answers with a wrong code came for this request. Answer it on the server's page.",
        )
    if tried.secret_hash is None or not hmac.compare_digest(tried.secret_hash, _digest(secret)):
        return AnswerOutcome(
            OutcomeKind.NOT_YOURS,
            "The request's code is wrong, so your answer was not counted. Answer the request itself.",
        )
    if tried.is_used:
        return AnswerOutcome(OutcomeKind.ALREADY_DECIDED, "This request was answered already.")
    return None


def _use_of(tenant_id: UUID, item: ChatItem, secret: str) -> answers.Guard:
    async def guard(writer: Writer) -> Conflict | None:
        is_first = await chats.use_secret(
            writer, tenant_id, chat_item_id=item.chat_item_id, secret_hash=_digest(secret)
        )
        return None if is_first else AlreadyDecided("This request was answered already.")

    return guard


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.strip().lower().encode("utf-8", "surrogatepass")).digest()


async def _counted(
    database: Database,
    caller: Caller,
    item: ChatItem,
    received: ReceivedAnswer,
    *,
    guard: answers.Guard | None,
    tell: Tell,
) -> AnswerOutcome:
    assert item.consent is not None
    approves = received.answer is Answer.APPROVE
    try:
        await _decide(
            database, caller, item, approves=approves, arguments_hash=item.consent.arguments_hash.hex(),
            reason=None if approves else received.reason, tell=tell, guard=guard,
        )  # fmt: skip
    except AlreadyDecided as error:
        return AnswerOutcome(OutcomeKind.ALREADY_DECIDED, await _now(database, caller, item) or str(error))
    except (TooLate, RunEnded, StaleApproval) as error:
        return AnswerOutcome(OutcomeKind.TOO_LATE, str(error))
    except (NotPermitted, NotFound) as error:
        return AnswerOutcome(OutcomeKind.NOT_YOURS, str(error))
    except FolkmootError as error:
        return AnswerOutcome(OutcomeKind.NOT_UNDERSTOOD, str(error))
    words = "approved, and the call is made as it was shown" if approves else "declined, and the call is not made"
    return AnswerOutcome(OutcomeKind.DONE, f"Done: you {words}.")


async def _now(database: Database, caller: Caller, item: ChatItem) -> str | None:
    async with database.reader() as reader:
        now = await chats.get(reader, caller.tenant_id, chat_item_id=item.chat_item_id)
    settled = _settled(now) if now is not None else None
    return settled.words if settled is not None else None


def _settled(item: ChatItem) -> AnswerOutcome | None:
    """What is told of a request that is not open any more; null while it is."""
    consent = item.consent
    assert consent is not None
    at = consent.decided_at.isoformat(timespec="seconds") if consent.decided_at is not None else ""
    match consent.status:
        case ConsentStatus.PENDING:
            return None
        case ConsentStatus.EXPIRED:
            return AnswerOutcome(OutcomeKind.TOO_LATE, f"Too late: the request expired at {at}, and the run has ended.")
        case ConsentStatus.CANCELLED:
            return AnswerOutcome(OutcomeKind.TOO_LATE, f"Too late: the run was cancelled at {at}.")
        case _:
            decided = _DECIDED[consent.status]
            return AnswerOutcome(
                OutcomeKind.ALREADY_DECIDED,
                f"This was {decided} by {consent.decided_by_name} at {at}; your answer changes nothing.",
            )


def _not_understood(received: ReceivedAnswer) -> str:
    seen = f" It begins with: {received.unread[:200]}" if received.unread else ""
    return f"Your answer could not be read, and nothing was decided. Write APPROVE or DECLINE on the first line.{seen}"


# on the server's pages, without signing in: whoever has the request's own code answers for the owner


async def answer_by_code(
    database: Database, *, token: str, code: str, approves: bool, reason: str | None, tell: Tell
) -> AnswerOutcome:
    """What became of it. `database` is of no tenant: the token finds the run wherever it is, and proves nothing.

    Without the right code all is told in the same words, whether there is such a run, a request or a try left. Never raises for what is sent.
    """
    async with database.reader() as reader:
        tenant_id = await agent_runs.tenant_of_token(reader, token=token)
    if tenant_id is None:
        return _NO_CODE
    database = walled(database, tenant_id)
    async with database.reader() as reader:
        run = await agent_runs.by_token(reader, tenant_id, token=token)
        item = await chats.get(reader, tenant_id, chat_item_id=run.chat_item_id) if run and run.chat_item_id else None
    if run is None or item is None or item.consent is None or not code.strip():
        return _NO_CODE
    refusal = await _try_secret(database, tenant_id, item, code)
    if refusal is not None and refusal.kind is not OutcomeKind.ALREADY_DECIDED:
        return _NO_CODE
    received = ReceivedAnswer("", token, code, None, False, Answer.APPROVE if approves else Answer.DECLINE, reason)
    async with database.reader() as reader:
        owner = await _sender(reader, tenant_id, app=WEB, run=run, received=received)
        item = await chats.get(reader, tenant_id, chat_item_id=item.chat_item_id) or item
    settled = _settled(item) or refusal
    if settled is not None:
        return settled
    if owner is None or Right.APPROVE not in rights_of(owner.role, None):
        return AnswerOutcome(
            OutcomeKind.NOT_YOURS, "The agent's owner may not decide this any more, so your answer was not counted."
        )
    caller = Caller(tenant_id, owner.user_id, owner.name, role=owner.role, rights=rights_of(owner.role, None), over=WEB)
    return await _counted(database, caller, item, received, guard=_use_of(tenant_id, item, code), tell=tell)


_NO_CODE = AnswerOutcome(
    OutcomeKind.NOT_YOURS,
    "This code answers nothing here, so nothing was decided. It may be mistyped, used, replaced by a newer one, or tried too often; whoever "
    "may decide can also sign in.",
)
