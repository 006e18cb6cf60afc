"""The work that is measured: agents talk round-robin, each turn one model call that returns 1 KB of text at once.

Runs are started as the API starts them: a row, then a notification. Their end and their turns are read from the database.
Deliberately absent: a model of our own; replies come from the `scripted` provider, or over HTTP.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import (
    ChatMode,
    HumanSettings,
    Participant,
    ResolvedInteraction,
    SystemPromptMode,
)
from folkmoot.domain.model_calls import ModelChoice, Sampling
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import id_source
from folkmoot.store import runs, tenancy
from folkmoot.store.database import Database, Notifier

REPLY_BYTES = 1024
NAMES = ("Ada", "Bob", "Cyd")
new_id = id_source(lambda: time.time_ns() // 1_000_000, secrets.randbits)


def reply_text() -> str:
    """1 KB that compresses about as well as prose does, so that stored bytes are honest."""
    chance = random.Random(7)
    words = ["".join(chance.choices("etaoinshrdlucmfwypvbgkqjxz", k=chance.randint(2, 9))) for _ in range(3000)]
    return " ".join(chance.choices(words, k=400))[:REPLY_BYTES]


def scripted(*, delay: str = "0ms") -> ModelChoice:
    """One rule that gives every call the same reply."""
    reply: dict[str, Any] = {"text": reply_text(), "usage": {"input": 100, "output": 256}}
    if delay != "0ms":
        reply["delay"] = delay
    return ModelChoice("scripted", "instant", script={"rules": [{"reply": reply}]})


def over_http(url: str) -> ModelChoice:
    return ModelChoice("openai-compatible", "fake", context_window=10_000_000, base_url=url)


def roundtable(model: ModelChoice, *, rounds: int, agents: int = 3, is_observed: bool = False) -> ResolvedInteraction:
    """`is_observed`: a person may write at any time."""
    seats = tuple(
        Participant(name, new_id(), name.lower(), 1, None, (f"You are {name}.",), model, Sampling())
        for name in NAMES[:agents]
    )
    return ResolvedInteraction(
        new_id(), "roundtable", 1, "default", seats, "Discuss the plan.", (), SystemPromptMode.APPEND, maximum_rounds=rounds,
        human_settings=HumanSettings(ChatMode.OBSERVING) if is_observed else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ended:
    """`at`: Unix seconds by the database's clock at the last statement of the last run."""

    at: float
    turns: int


class Driver:
    """Starts runs and waits for them, on connections of its own."""

    def __init__(self, database: Database, notifier: Notifier) -> None:
        self.database = database
        self.notifier = notifier
        self.tenant_id, self.user_id, self.namespace_id = new_id(), new_id(), new_id()

    async def start(self, resolved: ResolvedInteraction, *, count: int = 1, run_ids: Sequence[UUID] = ()) -> list[UUID]:
        ids = list(run_ids) or [new_id() for _ in range(count)]
        async with self.database.writer() as writer:
            for run_id in ids:
                await runs.insert(
                    writer, self.tenant_id, run_id=run_id, namespace_id=self.namespace_id, created_by=self.user_id,
                    resolved=resolved, response_json_schema=None, tags=(), priority=0,
                )  # fmt: skip
        self.notifier.tell({"to": "workers"})
        return ids

    async def ended(self, run_ids: Sequence[UUID], *, turns: int, poll_seconds: float = 0.005) -> Ended:
        """When all have ended. Raises if one did not complete, or has other than `turns` turns of an agent."""
        async with self.database.reader() as reader:
            waiting = await reader.connection.prepare(
                "select count(*) from process where tenant_id = $1 and run_id = any($2) and ended_at is null"
            )
            while await waiting.fetchval(self.tenant_id, run_ids):
                await asyncio.sleep(poll_seconds)
            rows = await reader.connection.fetch(
                "select status::text, failure_details, ended_at, (select count(*) from item i where i.tenant_id = p.tenant_id"
                " and i.run_id = p.run_id and i.kind = 'agentMessage') as turns"
                " from process p where tenant_id = $1 and run_id = any($2)",
                self.tenant_id, run_ids,
            )  # fmt: skip
        for row in rows:
            if row["status"] != "Completed" or row["turns"] != turns:
                raise RuntimeError(f"A run is no use as a figure: {dict(row)}, where {turns} turns were to be taken.")
        return Ended(max(row["ended_at"] for row in rows).timestamp(), turns * len(rows))

    async def turn_times(self, run_id: UUID) -> list[datetime]:
        """When each turn of an agent was committed, by the database's clock."""
        async with self.database.reader() as reader:
            rows = await reader.connection.fetch(
                "select created_at from item where tenant_id = $1 and run_id = $2 and kind = 'agentMessage' order by sequence",
                self.tenant_id, run_id,
            )  # fmt: skip
        return [row["created_at"] for row in rows]

    async def stored_bytes(self) -> int:
        """Bytes of all tables with their indexes and what lies beside them."""
        async with self.database.reader() as reader:
            return int(await reader.connection.fetchval(
                "select sum(pg_total_relation_size(c.oid)) from pg_class c"
                " where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace"
            ))  # fmt: skip

    async def wal_bytes(self) -> int:
        """The server's write-ahead log so far."""
        async with self.database.reader() as reader:
            return int(await reader.connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


@asynccontextmanager
async def driver(dsn: str) -> AsyncIterator[Driver]:
    database = await Database.open(dsn, connections=3)
    notifier = Notifier(database)
    try:
        yield Driver(database, notifier)
    finally:
        await notifier.close()
        await database.close()


async def default_tenant(drive: Driver) -> tuple[Caller, str]:
    """The tenant `default` with its namespace `default`, which the driver then works for: its owner, and the owner's key."""
    async with drive.database.writer() as writer:
        key = await tenancy.ensure_default(writer, new_id=new_id, random_bytes=secrets.token_bytes)
        caller = await tenancy.owner(writer)
        assert key is not None and caller is not None
        namespace = await tenancy.get_or_create_namespace(writer, caller.tenant_id, name="default", new_id=new_id)
    drive.tenant_id, drive.user_id, drive.namespace_id = caller.tenant_id, caller.user_id, namespace.namespace_id
    return caller, key
