"""How a definition is addressed: by name below its namespace, or by id at the top; and its versions and pages."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Path, Query

from folkmoot.domain.definitions import Reference

Number = Annotated[int, Path(ge=1, le=2**31 - 1, description="The version's number.")]
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="A version's number; the newest if left out.")]
After = Annotated[str | None, Query(max_length=2000, description="What the page before gave as `next`.")]


def by_name(namespace_name: str, name: str) -> Reference:
    return Reference(name, namespace_name)


def by_id(definition_id: UUID) -> Reference:
    return Reference(definition_id=definition_id)
