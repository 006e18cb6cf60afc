"""Pages by cursor: `?limit=` (1 to 200, 50 if absent) and `?after=`; an answer's `next` is the cursor of the page after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Query

from folkmoot.wire.formats import Datetime

Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
DEFAULT_LIMIT = 50
_DATE = "RFC 3339, with an offset."
CreatedFrom = Annotated[Datetime | None, Query(alias="createdFrom", description=_DATE)]
CreatedBefore = Annotated[Datetime | None, Query(alias="createdBefore", description=_DATE)]
T = TypeVar("T")


def cut(rows: Sequence[T], limit: int, cursor_of: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Rows were read with one more than `limit`: the page, and the cursor of the next one if that one is there."""
    kept = list(rows[:limit])
    return kept, cursor_of(kept[-1]) if len(rows) > limit and kept else None
