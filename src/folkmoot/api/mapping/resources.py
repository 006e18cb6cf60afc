"""What every definition and every version shows; and fields that are kept for later parts as they came."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import BaseModel

from folkmoot.domain.definitions import StoredVersion


def definition_fields(stored: StoredVersion, tenant_id: UUID) -> dict[str, Any]:
    definition = stored.definition
    return {
        "id": definition.definition_id,
        "tenant_id": tenant_id,
        "user_created_by_id": definition.created_by,
        "date_created": definition.created_at,
        "date_updated": definition.updated_at,
        "namespace_name": definition.namespace,
        "name": definition.name,
    }


def version_fields(stored: StoredVersion) -> dict[str, Any]:
    return {"version": stored.number, "date": stored.created_at, "is_disabled": stored.is_disabled}


def kept(shape: BaseModel, names: tuple[str, ...]) -> dict[str, Any]:
    """The named fields that say something, as JSON by their wire names; what is null or empty is not kept."""
    fields = type(shape).model_fields
    # Without warnings: a link, read by a validator of its own, is dumped twice, and the second time is not what was expected.
    whole = shape.model_dump(mode="json", by_alias=True, include=set(names), warnings="none")
    values = {name: whole[fields[name].alias or name] for name in names}
    return {fields[name].alias or name: value for name, value in values.items() if value not in (None, [], {})}
