"""Agent runs for those who start, read and cancel them. What an agent run does, and for whom, its agent says; nothing here moves it.

Who may read a payload, and decide consents: the owner of the root's agent, and owners and admins of the tenant. Deliberately absent:
writing any of a run's fields, and answers to what it asks (`consents`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, ChatItem, ConsentStatus
from folkmoot.domain.budgets import Budget
from folkmoot.domain.channels import WEB, ChannelVersion
from folkmoot.domain.definitions import AgentVersion, DefinitionKind, Reference, StoredVersion
from folkmoot.domain.items import StoredItem
from folkmoot.domain.rights import Right, Role
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Fault, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_closure, agent_stops, references, trees
from folkmoot.services.agent_stops import Cause
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.services.people import Tell
from folkmoot.store import agent_runs, audit, chats, conversations, idempotency, runs, tenancy
from folkmoot.store.agent_runs import AgentRunFilter, NewAgentRun
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.idempotency import Scope

__all__ = ["AgentRunFilter", "AgentStart"]

_MOST_REPLY_PARAMS = 20_000
_EARLIER = 20  # messages of a conversation that a new run is told of
_EARLIER_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class AgentStart:
    """`channel`: by which its owner is reached, in place of the agent's own. `reply_params`: JSON text for the channel. `conversation_id`:
    the conversation behind it, which begins with it if there is none of this id; null: it has none."""

    goal: str
    channel: str | None = None
    reply_params: str | None = None
    conversation_id: UUID | None = None
    budget: Budget | None = None
    fields: StartFields = field(default_factory=StartFields)


async def start(
    database: Database, caller: Caller, *, agent: Reference, request: AgentStart, bench: Workbench, new_id: NewId,
    new_token: Callable[[], str], tell: Tell, scope: Scope | None = None,
) -> AgentRun:  # fmt: skip
    """A new run, which a worker will take; with `scope` (an Idempotency-Key) the one which the first request with it started.

    Raises NotFound, BadInput, NotPermitted (its owner may not have tools used), RunEnded (the App run above), BudgetSpent, InFlight, KeyReused.
    """
    async with database.writer() as writer:
        earlier = await idempotency.earlier(writer, scope) if scope is not None else None
        if earlier is not None:
            return await _by_run(writer, caller, earlier)
        stored = await _agent(writer, caller, agent)
        assert isinstance(stored.body, AgentVersion)
        _check_reply_params(request.reply_params)
        channel, channel_id = await _channel(writer, caller, stored, request.channel)
        goal = await _with_what_was_said(writer, caller, request)
        resolved = await agent_closure.resolve(
            writer,
            caller,
            agent=stored,
            goal=goal,
            request=request.fields,
            bench=bench,
            new_id=new_id,
            budget=request.budget,
        )
        assert resolved.loop is not None
        run_id = new_id()
        place = None
        if request.fields.parent_process_id is not None:
            place = await trees.place_under(writer, caller, app_run_id=request.fields.parent_process_id, run_id=run_id)
        namespace = await tenancy.find_namespace(writer, caller.tenant_id, name=resolved.namespace)
        assert namespace is not None
        await runs.insert(
            writer, caller.tenant_id, run_id=run_id, namespace_id=namespace.namespace_id, created_by=caller.user_id, resolved=resolved,
            response_json_schema=None, tags=tuple(dict.fromkeys(request.fields.tags)), priority=request.fields.priority, place=place,
        )  # fmt: skip
        await _open_conversation(writer, caller, request, run_id=run_id, new_id=new_id)
        new = NewAgentRun(
            resolved.loop.owner_id, new_token(), channel, channel_id, request.reply_params, request.conversation_id
        )
        await agent_runs.insert(writer, caller.tenant_id, run_id=run_id, new=new)
        detail = {
            "namespace": resolved.namespace,
            "agent": resolved.interaction_name,
            "version": resolved.interaction_version,
        }
        await audit.note(writer, caller, action="run.started", subject_kind="run", subject_id=run_id, detail=detail)
        if scope is not None:
            await idempotency.keep(writer, scope, result_id=run_id)
        made = await _by_run(writer, caller, run_id)
    tell({"to": "workers"})
    return made


async def get(database: Database, caller: Caller, *, id_: int) -> AgentRun:
    """Raises NotFound."""
    async with database.reader() as reader:
        return await found(reader, caller, id_)


async def found(reader: Reader, caller: Caller, id_: int) -> AgentRun:
    """The same within a transaction."""
    run = await agent_runs.get(reader, caller.tenant_id, id_=id_)
    if run is None:
        raise NotFound(
            f"There is no agent run {id_}. GET /agent-runs, or `folkmoot agent list`, shows those there are."
        )
    return run


async def page(
    database: Database, caller: Caller, *, wanted: AgentRunFilter, after: int | None, limit: int
) -> list[AgentRun]:
    """The newest first, after the run with this number."""
    async with database.reader() as reader:
        return await agent_runs.page(reader, caller.tenant_id, wanted=wanted, after=after, limit=limit)


async def items(database: Database, caller: Caller, *, id_: int, after: int, limit: int) -> list[StoredItem]:
    """What the run's own conversation holds, in the order of its sequence."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        return await conversations.items_after(reader, caller.tenant_id, run_id=run.run_id, after=after, limit=limit)


async def chat(database: Database, caller: Caller, *, id_: int, before: int | None, limit: int) -> list[ChatItem]:
    """What a person reads of the conversation behind the run, the newest first; nothing while there is none."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        if run.conversation_id is None:
            return []
        return await chats.page(
            reader, caller.tenant_id, conversation_id=run.conversation_id, before=before, limit=limit
        )


async def asked(database: Database, caller: Caller, *, id_: int) -> ChatItem | None:
    """What the run, or one that it delegated, waits for its owner's consent about; null: nothing now. Raises NotFound."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        if run.status is not AgentRunStatus.AWAITING_CONSENT or run.chat_item_id is None:
            return None
        item = await chats.get(reader, caller.tenant_id, chat_item_id=run.chat_item_id)
    is_open = item is not None and item.consent is not None and item.consent.status is ConsentStatus.PENDING
    return item if is_open else None


async def payload(database: Database, caller: Caller, *, id_: int) -> dict[str, Any]:
    """The newest revision; empty before the first step. Raises NotFound, and NotPermitted for whoever is neither its owner nor an admin."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        if not await may_answer(reader, caller, run):
            raise NotPermitted(
                f"The payload of agent run {id_} is for its agent's owner, and for owners and admins of the tenant."
            )
        return await agent_runs.payload(reader, caller.tenant_id, run_id=run.run_id) or {}


async def may_answer(reader: Reader, caller: Caller, run: AgentRun) -> bool:
    """Whether the caller is the owner of the root's agent, or an owner or admin of the tenant. A narrowed key has less."""
    if caller.role in (Role.OWNER, Role.ADMIN) and Right.APPROVE in caller.rights:
        return True
    root = await agent_runs.root(reader, caller.tenant_id, run_id=run.run_id)
    return root is not None and root.owner_id == caller.user_id


async def cancel(database: Database, caller: Caller, *, id_: int, tell: Tell) -> AgentRun:
    """Ask a run to end; what it delegated ends with it. The run as it stands then. Raises NotFound, RunEnded."""
    return await stop(database, caller, run_id=(await get(database, caller, id_=id_)).run_id, tell=tell)


async def stop(database: Database, caller: Caller, *, run_id: UUID, tell: Tell) -> AgentRun:
    """The same by the kernel's id of a run that there is. Raises RunEnded."""
    stopped = await agent_stops.stop(database, caller.tenant_id, run_id=run_id, cause=Cause(caller.user_name, caller))
    for each in stopped:
        tell({"to": "run", "run": str(each)})
    tell({"to": "workers"})
    tell({"to": "inbox", "tenant": str(caller.tenant_id)})
    async with database.reader() as reader:
        return await _by_run(reader, caller, run_id)


async def _agent(reader: Reader, caller: Caller, reference: Reference) -> StoredVersion:
    kind = DefinitionKind.AGENT
    definition = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
    pinned = Reference(definition_id=definition.definition_id, version=reference.version)
    stored = await references.enabled(reader, caller.tenant_id, kind=kind, reference=pinned)
    if isinstance(stored, str):
        raise BadInput(f"The run was not started. {stored}", (Fault("/version", stored),))
    return stored


async def _by_run(reader: Reader, caller: Caller, run_id: UUID) -> AgentRun:
    run = await agent_runs.by_run(reader, caller.tenant_id, run_id=run_id)
    assert run is not None
    return run


async def _channel(reader: Reader, caller: Caller, agent: StoredVersion, wanted: str | None) -> tuple[str, UUID | None]:
    """The app by which the owner is reached, and its definition; the server's own pages need none."""
    assert isinstance(agent.body, AgentVersion)
    namespace = agent.definition.namespace
    own = _whole(agent.body.runs.channel or WEB, namespace)
    name = _whole(wanted, namespace) if wanted else own
    owner_id = agent.body.runs.owner or agent.definition.created_by
    if name != own and caller.user_id != owner_id and caller.role not in (Role.OWNER, Role.ADMIN):
        raise NotPermitted(
            f"The run was not started. By which channel its owner is asked is theirs to say, or an owner's or admin's of the tenant; leave "
            f"'channel' out, and it goes over '{own}'."
        )
    if name == WEB:
        return WEB, None
    place, _, bare = name.rpartition("/")
    link = Reference(name=bare, namespace=place or None)
    stored = await references.enabled(
        reader, caller.tenant_id, kind=DefinitionKind.CHANNEL, reference=link, namespace=namespace
    )
    if isinstance(stored, str):
        raise BadInput(f"The run was not started. {stored}", (Fault("/channel", stored),))
    assert isinstance(stored.body, ChannelVersion)
    return stored.body.app, stored.definition.definition_id


def _whole(channel: str, namespace: str) -> str:
    return channel if channel == WEB or "/" in channel else f"{namespace}/{channel}"


async def _with_what_was_said(reader: Reader, caller: Caller, request: AgentStart) -> str:
    """The goal, with what was said before in the conversation behind it."""
    if request.conversation_id is None:
        return request.goal
    said = await chats.page(
        reader, caller.tenant_id, conversation_id=request.conversation_id, before=None, limit=_EARLIER
    )
    told = [f"{item.author_name}: {item.text}" for item in reversed(said) if item.text]
    if not told:
        return request.goal
    text = "\n".join(f"> {line}" for line in "\n".join(told)[-_EARLIER_CHARACTERS:].splitlines())
    return f"{request.goal}\n\nWhat was said before in this conversation:\n{text}"


async def _open_conversation(
    writer: Writer, caller: Caller, request: AgentStart, *, run_id: UUID, new_id: NewId
) -> None:
    if request.conversation_id is None:
        return
    await chats.open_conversation(
        writer, caller.tenant_id, conversation_id=request.conversation_id, created_by=caller.user_id
    )
    await chats.say(
        writer, caller.tenant_id, chat_item_id=new_id(), conversation_id=request.conversation_id,
        author=(caller.user_id, caller.user_name), text=request.goal, run_id=run_id,
    )  # fmt: skip


def _check_reply_params(text: str | None) -> None:
    if text is None:
        return
    message = None
    if len(text) > _MOST_REPLY_PARAMS:
        message = f"replyParams has at most {_MOST_REPLY_PARAMS:,} characters; shorten it."
    else:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            message = "replyParams is JSON as text, and this is no JSON; correct it, or leave it out."
    if message is not None:
        raise BadInput(f"The run was not started. {message}", (Fault("/replyParams", message),))
