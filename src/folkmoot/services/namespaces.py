"""A namespace by its name, for whoever asks about what is in it.

Deliberately absent: making one, which publishing does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from folkmoot.domain.tenancy import Caller, Namespace
from folkmoot.domain.usage import UsageFilter
from folkmoot.kernel.errors import NotFound
from folkmoot.store import tenancy
from folkmoot.store.database import Reader
from folkmoot.store.run_lists import RunFilter

Filter = TypeVar("Filter", RunFilter, UsageFilter)


async def get(reader: Reader, caller: Caller, *, name: str) -> Namespace:
    """Raises NotFound."""
    found = await tenancy.find_namespace(reader, caller.tenant_id, name=name)
    if found is None:
        raise NotFound(f"There is no namespace '{name}'. Publishing something in it makes it.")
    return found


async def narrowed(reader: Reader, caller: Caller, wanted: Filter, *, name: str | None) -> Filter | None:
    """The filter within a namespace by name (null: within all); null where there is none of that name, and so nothing to be found."""
    if name is None:
        return wanted
    found = await tenancy.find_namespace(reader, caller.tenant_id, name=name)
    return replace(wanted, namespace_id=found.namespace_id) if found is not None else None
