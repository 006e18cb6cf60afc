"""Runs that wait for a person, put into the database as a pause leaves them, without a worker: for tests of what answers them.

Deliberately absent: what makes a run pause; that is the worker's, and tested with workers.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from uuid import UUID

from api_at_hand import NEW_ID

from folkmoot.domain.pending import PendingKind
from folkmoot.store.database import Database

AGENT_ID = str(UUID(int=7))
CARDS: dict[PendingKind, dict[str, Any]] = {
    PendingKind.VOTE: {"proposer": "Ann", "text": "Shall we?", "isSolution": False, "turnId": str(UUID(int=5))},
    PendingKind.QUESTION: {"asker": "Ann", "question": "By when?"},
    PendingKind.TURN: {"round": 1},
}


def hash_of(arguments_json: str) -> bytes:
    return hashlib.sha256(arguments_json.encode("utf-8", "surrogatepass")).digest()


def approval_card(call_id: UUID, arguments_json: str = '{"path": "a.txt"}', **changes: Any) -> dict[str, Any]:
    """The card of a gated call, as the engine makes it."""
    deferred = {
        "toolCallId": str(NEW_ID()),
        "functionName": "notify",
        "argumentsJson": "{}",
        "agentId": AGENT_ID,
        "agentName": "Ann",
    }
    return {
        "toolCallId": str(call_id), "functionName": "write_file", "argumentsJson": arguments_json, "agentId": AGENT_ID,
        "agentName": "Ann", "description": "Writes a file.", "connector": "files", "operation": str(UUID(int=9)), "operationVersion": 3,
        "server": "https://files.example", "argumentsHash": hash_of(arguments_json).hex(), "deferred": [deferred], **changes,
    }  # fmt: skip


async def ask(
    database: Database, run_id: UUID | str, kind: PendingKind, *, card: dict[str, Any] | None = None, expires_in: float | None = None
) -> UUID:  # fmt: skip
    """Let a run wait for a person about something new; its id. `expires_in`: seconds, negative for long ago."""
    pending_id = NEW_ID()
    shown = card or (approval_card(pending_id) if kind is PendingKind.APPROVAL else CARDS[kind])
    bound = bytes.fromhex(shown["argumentsHash"]) if kind is PendingKind.APPROVAL else None
    status = "PendingApproval" if kind is PendingKind.APPROVAL else "PendingHuman"
    async with database.writer() as writer:
        await writer.connection.execute(
            """
            insert into pending (tenant_id, run_id, pending_id, kind, asked_at, expires_at, card, binding_hash)
            select tenant_id, run_id, $2, $3, folkmoot_now(), folkmoot_now() + make_interval(secs => $4::float8), $5, $6
            from process where run_id = $1
            """,
            UUID(str(run_id)), pending_id, kind.value, expires_in, json.dumps(shown), bound,
        )  # fmt: skip
        await writer.connection.execute(
            "update process set status = $2, pending_id = $3, ready_at = null, started_at = folkmoot_now() where run_id = $1",
            UUID(str(run_id)), status, pending_id,
        )  # fmt: skip
    return pending_id


async def copies(database: Database, run_id: UUID | str, count: int) -> list[UUID]:
    """New runs like this one, with its definition."""
    ids = [NEW_ID() for _ in range(count)]
    async with database.writer() as writer:
        await writer.connection.execute(
            """
            insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at,
                                 tree_root_id, swarm_root_id, state_version)
            select tenant_id, u.id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at, u.id, u.id,
                   state_version
            from process, unnest($2::uuid[]) as u(id) where run_id = $1
            """,
            UUID(str(run_id)), ids,
        )  # fmt: skip
        await writer.connection.execute(
            "insert into resolved_definition select tenant_id, u.id, body from resolved_definition, unnest($2::uuid[]) as u(id) where run_id = $1",
            UUID(str(run_id)), ids,
        )  # fmt: skip
    return ids


async def row_of(database: Database, run_id: UUID | str) -> Any:
    """The run's row."""
    async with database.reader() as reader:
        return await reader.connection.fetchrow("select * from process where run_id = $1", UUID(str(run_id)))


async def fetch(database: Database, statement: str, *values: Any) -> list[Any]:
    async with database.reader() as reader:
        return list(await reader.connection.fetch(statement, *values))


async def waits_for_a_lock(database: Database) -> bool:
    """Whether somebody at this database waits for a row or a table that somebody else has locked."""
    waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    return bool(await fetch(database, waiting))


async def ask_consent(
    database: Database, agent_run: int, *, card: dict[str, Any] | None = None, chat_item_id: UUID | None = None, expires_in: float | None = None
) -> tuple[UUID, str]:  # fmt: skip
    """Let an agent run, and those above it, wait for its owner's consent; the chat item and the hash of its call."""
    call_id, item_id = NEW_ID(), chat_item_id or NEW_ID()
    card = card or approval_card(call_id, '{"who": "Bo"}', functionName="tell", agentName="clerk", deferred=[])
    hash_ = bytes.fromhex(card["argumentsHash"])
    async with database.writer() as writer:
        connection = writer.connection
        run_id = await connection.fetchval("select run_id from agent_run where id = $1", agent_run)
        tenant_id = await connection.fetchval("select tenant_id from process where run_id = $1", run_id)
        await connection.execute(
            """
            insert into pending (tenant_id, run_id, pending_id, kind, asked_at, expires_at, card, binding_hash)
            select $1, $2, $3, 'Approval', folkmoot_now(), folkmoot_now() + make_interval(secs => $4::float8), $5, $6
            """,
            tenant_id, run_id, call_id, expires_in, json.dumps({"chatItemId": str(item_id)}), hash_,
        )  # fmt: skip
        await connection.execute(
            "update process set status = 'PendingApproval', pending_id = $2, ready_at = null, started_at = folkmoot_now() where run_id = $1",
            run_id, call_id,
        )  # fmt: skip
        await connection.execute(
            "select folkmoot_await_consent($1, $2, $3, $4, $5, $6, $7, 'clerk', null, null, $8)",
            tenant_id, run_id, call_id, item_id, NEW_ID(), json.dumps(card), hash_, NEW_ID(),
        )  # fmt: skip
    return item_id, hash_.hex()
