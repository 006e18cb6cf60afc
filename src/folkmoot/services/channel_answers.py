"""Answers over channels: matched by token, held against the very request that they are about. The first valid one counts.

A token finds the run, and that is all it does. Where a channel proves who speaks, the answer says which request it is about, and a secret
does not do; where it cannot, the request's own secret is needed beside, which is good once and for ten tries. What was refused is in the audit
log. Deliberately absent: how messages come and go (`inbound`, `runtime`), and answers by id (`consents`).
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, ChatItem, ConsentStatus
from folkmoot.domain.channels import WEB, Answer, AnswerOutcome, OutcomeKind, ReceivedAnswer
from folkmoot.domain.rights import Right, rights_of
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import AlreadyDecided, BadInput, Conflict, NotFound, NotPermitted
from folkmoot.services import agent_runs as agent_run_service
from folkmoot.services import answers, consents
from folkmoot.services.people import Tell
from folkmoot.store import agent_runs, audit, channel_messages, chats, identities, users
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.walls import walled

_DECIDED = {ConsentStatus.APPROVED: "approved", ConsentStatus.DECLINED: "declined"}
_NOT_YOURS = "This was not asked of you, so your answer was not counted."


async def answer_over_channel(
    database: Database, *, tenant_id: UUID, channel_id: UUID, app: str, received: ReceivedAnswer, tell: Tell
) -> AnswerOutcome:
    """What became of an answer that came in. One that is sent again is told the same, and does nothing. Raises only what the database
    raises: then nothing is noted, and the answer may come again."""
    if received.is_automatic:
        return AnswerOutcome(OutcomeKind.IGNORED, "This is an automatic message, and was not read as an answer.")
    key = _key_of(received)
    async with database.reader() as reader:
        earlier = await channel_messages.earlier_outcome(reader, tenant_id, channel_id=channel_id, inbound_id=key)
    if earlier is not None:
        return earlier
    async with database.reader() as reader:
        found = await _found(reader, tenant_id, channel_id=channel_id, app=app, received=received)
    outcome = found if isinstance(found, AnswerOutcome) else await _outcome(database, found, received, tell=tell)
    if isinstance(found, _Found):
        outcome = replace(outcome, is_known=found.user is not None)
    async with database.writer() as writer:
        if isinstance(found, _Found) and outcome.kind is not OutcomeKind.DONE:
            await _note_refusal(writer, found, received, outcome)
        await channel_messages.note_inbound(writer, tenant_id, channel_id=channel_id, inbound_id=key, outcome=outcome)
    return outcome


async def note_told(database: Database, *, tenant_id: UUID, channel_id: UUID, received: ReceivedAnswer) -> None:
    """Whoever gave this answer knows what became of it, and is not told again when it comes again."""
    async with database.writer() as writer:
        await channel_messages.note_told(writer, tenant_id, channel_id=channel_id, inbound_id=_key_of(received))


def _key_of(received: ReceivedAnswer) -> str:
    """By what an answer is known again. An id that its sender chose is one with what it came with: else others could take it first."""
    if received.is_proven:
        return received.inbound_id
    return "\n".join((received.inbound_id, received.token or "", received.secret or "", received.sender or ""))


@dataclass(frozen=True, slots=True)
class _Found:
    """What an answer is about: a request of a run, and of whom it comes; `user` null: of nobody in this tenant."""

    tenant_id: UUID
    app: str
    run: AgentRun
    item: ChatItem
    user: User | None
    may_answer: bool

    @property
    def caller(self) -> Caller:
        assert self.user is not None
        rights = rights_of(self.user.role, None)
        return Caller(
            self.tenant_id, self.user.user_id, self.user.name, role=self.user.role, rights=rights, over=self.app
        )


async def _found(
    reader: Reader, tenant_id: UUID, *, channel_id: UUID, app: str, received: ReceivedAnswer
) -> _Found | AnswerOutcome:
    run = await agent_runs.by_token(reader, tenant_id, token=received.token) if received.token else None
    if run is None or run.channel_id != channel_id or run.channel != app:
        return AnswerOutcome(OutcomeKind.NOT_FOUND, "This answers nothing that was asked here.")
    item = await _item_of(reader, run, received)
    if item is None or item.consent is None:
        return AnswerOutcome(OutcomeKind.NOT_FOUND, "Nothing is asked there at the moment.")
    user = await _sender(reader, tenant_id, app=app, run=run, received=received)
    found = _Found(tenant_id, app, run, item, user, False)
    if user is None:
        return found
    may = await agent_run_service.may_answer(reader, found.caller, run) and Right.APPROVE in found.caller.rights
    return replace(found, may_answer=may)


async def _item_of(reader: Reader, run: AgentRun, received: ReceivedAnswer) -> ChatItem | None:
    """The request that an answer is about: the one that it names, or whose secret it has, which may be an earlier one; with a secret of none it is
    held against the one that is asked now."""
    if received.is_proven:
        wanted = received.about
    else:
        wanted = await _of_secret(reader, run, received.secret) or run.chat_item_id
    item = await chats.get(reader, run.tenant_id, chat_item_id=wanted) if wanted is not None else None
    if item is None or item.run_id is None:
        return None
    is_of_run = await agent_runs.is_within(reader, run.tenant_id, run_id=item.run_id, top=run.run_id)
    return item if is_of_run else None


async def _of_secret(reader: Reader, run: AgentRun, secret: str | None) -> UUID | None:
    if not secret or run.conversation_id is None:
        return None
    return await chats.of_secret(
        reader, run.tenant_id, conversation_id=run.conversation_id, secret_hash=_digest(secret)
    )


async def _outcome(database: Database, found: _Found, received: ReceivedAnswer, *, tell: Tell) -> AnswerOutcome:
    if found.user is None or not found.may_answer:
        return AnswerOutcome(OutcomeKind.NOT_YOURS, _NOT_YOURS)
    settled = _settled(found.item)
    if settled is not None:
        return settled
    if received.answer is None:
        return AnswerOutcome(OutcomeKind.NOT_UNDERSTOOD, _not_understood(received))
    guard = None
    if not received.is_proven:
        refusal = await _try_secret(database, found.tenant_id, found.item, received.secret)
        if refusal is not None:
            return refusal
        guard = _use_of(found.tenant_id, found.item, received.secret or "")
    return await _counted(database, found.caller, found.item, received, guard=guard, tell=tell)


async def _note_refusal(writer: Writer, found: _Found, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
    """An attempt that did not count, with what it was about and by which way it came; by nobody where nobody is known."""
    consent = found.item.consent
    assert consent is not None
    detail = {
        "chatItemId": str(found.item.chat_item_id), "argumentsHash": consent.arguments_hash.hex(), "code": outcome.kind.value,
        "decision": received.answer.value if received.answer is not None else None, "sender": (received.sender or "")[:320],
    }  # fmt: skip
    await audit.note_over(
        writer, found.tenant_id, user=found.user, channel=found.app, action="approval.refused", subject_kind="run",
        subject_id=found.run.run_id, detail=detail,
    )  # fmt: skip


async def _sender(reader: Reader, tenant_id: UUID, *, app: str, run: AgentRun, received: ReceivedAnswer) -> User | None:
    """Who answers, of the people of this tenant. Where an app names no sender, the request's secret stands for the owner to whom it went;
    an app that proves somebody says whom."""
    if received.sender is not None:
        return await identities.user_of(reader, tenant_id, app=app, address=received.sender)
    if received.is_proven:
        return None
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
        await consents.decide(
            database, caller, item, approves=approves, arguments_hash=item.consent.arguments_hash.hex(),
            reason=None if approves else received.reason, tell=tell, guard=guard,
        )  # fmt: skip
    except AlreadyDecided as error:
        return AnswerOutcome(OutcomeKind.ALREADY_DECIDED, await _now(database, caller, item) or str(error))
    except Conflict as error:
        return AnswerOutcome(OutcomeKind.TOO_LATE, str(error))
    except (NotPermitted, NotFound) as error:
        return AnswerOutcome(OutcomeKind.NOT_YOURS, str(error))
    except BadInput as error:
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
    return (
        "Your answer could not be read, and nothing was decided. Write APPROVE or DECLINE alone on the first line. Below APPROVE write "
        f"nothing but your name; to have something changed, DECLINE, and say what below it.{seen}"
    )


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
        received = ReceivedAnswer("", token, code, None, False, Answer.APPROVE if approves else Answer.DECLINE, reason)
        item = await _item_of(reader, run, received) if run is not None else None
    if run is None or item is None or item.consent is None or not code.strip():
        return _NO_CODE
    refusal = await _try_secret(database, tenant_id, item, code)
    if refusal is not None and refusal.kind is not OutcomeKind.ALREADY_DECIDED:
        return _NO_CODE
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
