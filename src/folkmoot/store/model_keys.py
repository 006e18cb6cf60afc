"""The tenant's keys of models. What a call reads of them is in `credentials`. Deliberately absent: values."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.credentials import CredentialEntry, ModelKey
from folkmoot.store.codecs import json_text, json_value, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("model_keys")
_PAGE = 200


async def insert(writer: Writer, tenant_id: UUID, *, entry: CredentialEntry, created_by: UUID) -> bool:
    """False if there is one of this name."""
    row = await _sql.insert(writer.connection, tenant_id=tenant_id, created_by=created_by, **_columns(entry))
    return row is not None


async def replace(writer: Writer, tenant_id: UUID, *, entry: CredentialEntry) -> bool:
    """False if it is gone, or another one has this name."""
    return await _sql.replace(writer.connection, tenant_id=tenant_id, **_columns(entry)) is not None


async def delete(writer: Writer, tenant_id: UUID, *, model_key_id: UUID) -> bool:
    """False if it was gone."""
    return await _sql.delete(writer.connection, tenant_id=tenant_id, model_key_id=model_key_id) is not None


async def find(reader: Reader, tenant_id: UUID, *, model_key_id: UUID | None = None, name: str = "") -> ModelKey | None:
    """By id, else by name."""
    row = await _sql.find(reader.connection, tenant_id=tenant_id, model_key_id=model_key_id, name=safe(name))
    return _model_key(row) if row is not None else None


async def page(reader: Reader, tenant_id: UUID, *, after: str, limit: int) -> list[ModelKey]:
    """By name, those after the name `after` ('' for the first page)."""
    rows = _sql.page(reader.connection, tenant_id=tenant_id, after=safe(after), limit=limit)
    return [_model_key(row) async for row in rows]


async def everything(reader: Reader, tenant_id: UUID) -> list[ModelKey]:
    found: list[ModelKey] = []
    while batch := await page(reader, tenant_id, after=found[-1].name if found else "", limit=_PAGE):
        found += batch
    return found


def _columns(entry: CredentialEntry) -> dict[str, Any]:
    overrides = {safe(ours): safe(theirs) for ours, theirs in entry.model_name_overrides.items()}
    return {
        "model_key_id": entry.entry_id, "name": safe(entry.name), "provider": safe(entry.provider), "secret_id": entry.secret_id,
        "base_url": safe(entry.base_url) if entry.base_url is not None else None, "overrides": json_text(overrides),
        "is_own_license": entry.is_own_license, "priority": entry.priority,
    }  # fmt: skip


def _model_key(row: Any) -> ModelKey:
    entry = CredentialEntry(
        row["model_key_id"], row["provider"], row["secret_id"], row["base_url"], json_value(row["model_name_overrides"]),
        row["is_own_license"], row["priority"], row["name"],
    )  # fmt: skip
    return ModelKey(
        row["tenant_id"],
        row["name"],
        entry,
        row["created_by"],
        row["created_at"],
        row["updated_at"],
        row["secret_name"],
    )
