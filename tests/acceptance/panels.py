"""Runs for tests of the kernel: scripted panels put into a database, and what became of them.

Deliberately absent: definitions and services; a run is inserted as a start would insert it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import Tool
from folkmoot.domain.definitions import ModelChoice, Participant, ResolvedInteraction, SystemPromptMode
from folkmoot.domain.items import Author, AuthorKind, Item, StoredItem
from folkmoot.domain.model_calls import Sampling
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import ClaimedRun, Place
from folkmoot.kernel.ids import NewId
from folkmoot.store import conversations, runs, workers
from folkmoot.store.database import Database

TALK = {"rules": [{"reply": {"text": "I have nothing to add."}}]}


@dataclass(frozen=True)
class Started:
    tenant_id: UUID
    run_id: UUID


def interaction(
    new_id: NewId,
    script: Mapping[str, Any] | None = None,
    *,
    names: tuple[str, ...] = ("Ann", "Ben", "Cid"),
    tools: Mapping[str, tuple[Tool, ...]] | None = None,
    provider: str = "scripted",
    **settings: Any,
) -> ResolvedInteraction:
    """A closure as a start would resolve it; one round of talk unless `settings` say otherwise."""
    model = ModelChoice(provider, "rules", script=dict(script or TALK))
    participants = tuple(
        Participant(
            name,
            new_id(),
            name.lower(),
            1,
            None,
            (f"You are {name}.",),
            model,
            Sampling(),
            tools=(tools or {}).get(name, ()),
        )
        for name in names
    )
    settings = {"maximum_rounds": 1, **settings}
    return ResolvedInteraction(
        new_id(), "panel", 1, "default", participants, "Talk it over.", (), SystemPromptMode.APPEND, **settings
    )


async def start(
    database: Database,
    new_id: NewId,
    resolved: ResolvedInteraction | None = None,
    *,
    tenant_id: UUID | None = None,
    run_id: UUID | None = None,
    priority: int = 0,
    created_by: UUID | None = None,
    place: Place | None = None,
) -> Started:
    started = Started(tenant_id or new_id(), run_id or new_id())
    async with database.writer() as writer:
        await runs.insert(
            writer, started.tenant_id, run_id=started.run_id, namespace_id=new_id(), created_by=created_by or new_id(),
            resolved=resolved or interaction(new_id), response_json_schema=None, tags=(), priority=priority, place=place,
        )  # fmt: skip
    return started


async def register(database: Database, new_id: NewId, *, lease_seconds: float = 60.0, is_apart: bool = False) -> UUID:
    """A worker's row with a live lease."""
    worker_id = new_id()
    async with database.writer() as writer:
        await workers.register(
            writer, worker_id, host="here", pid=1, version="0", is_apart=is_apart, lease_seconds=lease_seconds
        )
    return worker_id


async def claim(database: Database, worker_id: UUID, *, batch: int = 1, suspects: bool = False) -> list[ClaimedRun]:
    async with database.reader() as reader:
        found = await runs.claim(reader, worker_id, batch=batch, suspects=suspects)
    return [claimed for claimed, _, _ in found]


async def post(database: Database, started: Started, new_id: NewId, text: str = "A word from me.") -> StoredItem | None:
    """A person's message, as the API writes it."""
    async with database.writer() as writer:
        return await conversations.append_message(
            writer, started.tenant_id, run_id=started.run_id, item_id=new_id(), message=text, thread_id="main",
            author=Author(AuthorKind.HUMAN, "Pat", new_id()),
        )  # fmt: skip


async def stop(database: Database, started: Started) -> RunStatus | None:
    async with database.writer() as writer:
        return await runs.request_stop(writer, started.tenant_id, run_id=started.run_id, stopped_by="Pat")


async def is_waited_for(database: Database) -> bool:
    """Whether a transaction waits for another's lock."""
    rows = await fetch(
        database, "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return bool(rows)


async def shift_clock(database: Database, seconds: float) -> None:
    """Moves the database's clock on from where it is now."""
    await execute(database, "update clock_shift set shift = shift + make_interval(secs => $1)", seconds)


async def execute(database: Database, statement: str, *values: Any) -> None:
    async with database.writer() as writer:
        await writer.connection.execute(statement, *values)


async def fetch(database: Database, statement: str, *values: Any) -> list[dict[str, Any]]:
    async with database.reader() as reader:
        return [dict(row) for row in await reader.connection.fetch(statement, *values)]


async def row_of(database: Database, started: Started) -> dict[str, Any]:
    """The run's row in `process`."""
    return (
        await fetch(
            database, "select * from process where tenant_id = $1 and run_id = $2", started.tenant_id, started.run_id
        )
    )[0]


async def rows_of(database: Database, started: Started, table: str) -> list[dict[str, Any]]:
    return await fetch(
        database, f"select * from {table} where tenant_id = $1 and run_id = $2", started.tenant_id, started.run_id
    )


async def items_of(database: Database, started: Started) -> list[StoredItem]:
    async with database.reader() as reader:
        return await conversations.items_after(reader, started.tenant_id, run_id=started.run_id, after=0, limit=100_000)


async def has_ended(database: Database, started: Started) -> bool:
    return RunStatus((await row_of(database, started))["status"]) in FINAL


async def has_open_calls(database: Database) -> bool:
    return bool(await fetch(database, "select from call where ended_at is null"))


def said(new_id: NewId, text: str, name: str = "Ann") -> Item:
    return Item(new_id(), Author(AuthorKind.AGENT, name, new_id()), items.AgentMessage(text))


def texts(conversation: list[StoredItem]) -> list[str]:
    """What agents and people said, in order."""
    return [
        f"{stored.item.author.name}: {stored.item.body.message}"
        for stored in conversation
        if isinstance(stored.item.body, items.AgentMessage | items.HumanMessage)
    ]
