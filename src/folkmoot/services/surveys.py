"""What the participants of an interaction could call, and which of it waits for a person, before any run is started.

It is what a start would find now, with what stands in its way. Deliberately absent: inputs; nobody has given any.
"""

from __future__ import annotations

from dataclasses import dataclass

from folkmoot.domain.definitions import DefinitionKind, Participant, Reference, StoredVersion
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import references
from folkmoot.services.closure import Closure, StartFields, Workbench
from folkmoot.store.database import Database


@dataclass(frozen=True, slots=True)
class Survey:
    """`problems`: sentences about what a start would be refused for."""

    participants: tuple[Participant, ...]
    problems: tuple[str, ...]


async def tools_of(database: Database, caller: Caller, *, interaction: Reference, bench: Workbench) -> Survey:
    """Each participant with its tools. Raises NotFound; BadInput where the version is disabled or not there."""
    kind = DefinitionKind.INTERACTION
    async with database.reader() as reader:
        definition = await references.find(reader, caller.tenant_id, kind=kind, reference=interaction)
        pinned = Reference(definition_id=definition.definition_id, version=interaction.version)
        found = await references.enabled(reader, caller.tenant_id, kind=kind, reference=pinned)
        if not isinstance(found, StoredVersion):
            raise BadInput(found, (Fault("/version", found),))
        closure = Closure(
            reader, caller.tenant_id, interaction=found, request=StartFields(), bench=bench, is_survey=True
        )
        resolved = await closure.resolve()
    problems = dict.fromkeys(fault.message for fault in (*closure.later, *closure.faults))
    return Survey(resolved.participants, tuple(problems))
