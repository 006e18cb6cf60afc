"""Starts a run: everything is checked before it exists, and a start that returned is never lost.

The run, its closure and the Idempotency-Key are written in one transaction (B61). Deliberately absent: work on the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from folkmoot.domain.budgets import Budget
from folkmoot.domain.definitions import DefinitionKind, Reference, ResolvedInteraction, StoredVersion
from folkmoot.domain.rights import Right
from folkmoot.domain.schema_documents import step
from folkmoot.domain.tags import faults_of_tags
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Fault, NotFound, NotYetBuilt
from folkmoot.kernel.ids import NewId
from folkmoot.services import budgets, references, trees
from folkmoot.services.closure import Closure, StartFields, Workbench
from folkmoot.services.start_credentials import StartCredentials, lacks
from folkmoot.store import audit, definitions, idempotency, runs, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.idempotency import Scope

__all__ = ["StartFields", "Workbench", "resolve", "start"]

Json = Any
Tell = Callable[[dict[str, Any]], None]

_MAX_KEY_CHARACTERS = 200
_CONTEXT = "context, time, keys and cost"
_MEMORY = "memory, web and knowledge"
_KERNEL = "lanes, automations and retention"
_PARTS = {
    "webDownloadPartitionId": _MEMORY,
    "webAccessOverrides": _MEMORY,
    "looms": _MEMORY,
    "loomGifts": _MEMORY,
    "lane": _KERNEL,
    "retentionLease": _KERNEL,
}


async def start(
    database: Database, caller: Caller, *, interaction: Reference, request: StartFields, bench: Workbench, new_id: NewId,
    tell: Tell, scope: Scope | None = None,
) -> UUID:  # fmt: skip
    """A new run's id; with `scope` (an Idempotency-Key) that of the run which the first request with it made.

    A whole model is a definition, with a URL, a file and a key to use: giving one takes the right to publish (NotPermitted).
    `interaction` by id or by namespace and name; its `version` null takes the latest enabled one. Raises NotFound (no such
    interaction or parent), RunEnded (the parent), NotYetBuilt (fields of later parts), BadInput (all else that is wrong, each thing a fault), InFlight and
    KeyReused (the Idempotency-Key), BudgetSpent (the tenant's day is used up), NotPermitted (credentials for a server of the start's
    choice, without the right to secrets).
    """
    if any(override.custom_model is not None for override in request.ai_model_overrides):
        caller.require(Right.PUBLISH)
    if scope is not None and not 1 <= len(scope.key) <= _MAX_KEY_CHARACTERS:
        raise BadInput(f"An Idempotency-Key has 1 to {_MAX_KEY_CHARACTERS} characters; use a shorter one.")
    async with database.writer() as writer:
        earlier = await idempotency.earlier(writer, scope) if scope is not None else None
        if earlier is not None:
            return earlier
        day = await budgets.refuse_where_used_up(writer, caller)
        resolved = await resolve(
            writer, caller, interaction=interaction, request=request, bench=bench, day=day, new_id=new_id
        )
        run_id = new_id()
        await _insert(writer, caller, run_id=run_id, resolved=resolved, request=request)
        if scope is not None:
            await idempotency.keep(writer, scope, result_id=run_id)
    tell({"to": "workers"})
    return run_id


async def _insert(
    writer: Writer, caller: Caller, *, run_id: UUID, resolved: ResolvedInteraction, request: StartFields
) -> None:
    namespace = await tenancy.find_namespace(writer, caller.tenant_id, name=resolved.namespace)
    assert namespace is not None
    place = None
    if request.parent_process_id is not None:
        place = await trees.place_under(writer, caller, app_run_id=request.parent_process_id, run_id=run_id)
    await runs.insert(
        writer, caller.tenant_id, run_id=run_id, namespace_id=namespace.namespace_id, created_by=caller.user_id,
        resolved=resolved, response_json_schema=request.response_json_schema, tags=tuple(dict.fromkeys(request.tags)),
        priority=request.priority, place=place,
    )  # fmt: skip
    detail = {
        "namespace": resolved.namespace,
        "name": resolved.interaction_name,
        "version": resolved.interaction_version,
    }
    if place is not None:
        detail["parentId"] = str(place.parent_id)
    await audit.note(writer, caller, action="run.started", subject_kind="run", subject_id=run_id, detail=detail)


async def resolve(
    reader: Reader,
    caller: Caller,
    *,
    interaction: Reference,
    request: StartFields,
    bench: Workbench,
    day: Budget | None,
    new_id: NewId,
) -> ResolvedInteraction:
    """The closure that a start settles, with its keys; raises as `start` does."""
    stored = await _interaction(reader, caller, interaction)
    closure = Closure(reader, caller.tenant_id, interaction=stored, request=request, bench=bench)
    keys = StartCredentials(reader, caller, stored, request, new_id, [])
    resolved = await keys.settled(await closure.resolve())
    lacking = [] if closure.faults or keys.faults else await lacks(reader, caller, resolved=resolved, bench=bench)
    title = f"{stored.definition.namespace}/{stored.definition.name}"
    # Once each: two participants may share an agent, and with it what is wrong with it.
    later = list(dict.fromkeys((*_later_of_request(request.later), *closure.later)))
    unpriced = budgets.unpriced(resolved, day, bench.prices_of)
    faults = list(dict.fromkeys((*closure.faults, *keys.faults, *lacking, *unpriced, *faults_of_tags(request.tags))))
    if later:
        raise NotYetBuilt(_refusal(title, [*later, *faults]), (*later, *faults))
    if faults:
        raise BadInput(_refusal(title, faults), tuple(faults))
    return resolved


async def _interaction(reader: Reader, caller: Caller, reference: Reference) -> StoredVersion:
    kind = DefinitionKind.INTERACTION
    definition = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
    pinned = Reference(definition_id=definition.definition_id, version=reference.version)
    found = await references.enabled(reader, caller.tenant_id, kind=kind, reference=pinned)
    if isinstance(found, StoredVersion):
        return found
    number = reference.version
    if number and await definitions.version(reader, caller.tenant_id, definition=definition, number=number) is None:
        raise NotFound(found)
    raise BadInput(f"The run was not started. {found}", (Fault("/version", found),))


def _later_of_request(later: Mapping[str, Json]) -> list[Fault]:
    return [
        Fault(
            step("", name),
            f"'{name}' comes to work with a later part ({_PARTS.get(name, 'to come')}). Leave it out to start a run now.",
        )
        for name, value in later.items()
        if not _is_unset(value)
    ]


def _is_unset(value: Json) -> bool:
    """An empty object is not: an empty retention lease is still one."""
    return value is None or value is False or value in ((), [], "")


def _refusal(title: str, faults: list[Fault]) -> str:
    more = f" There are {len(faults)} faults." if len(faults) > 1 else ""
    return f"The run of '{title}' was not started. {faults[0].message}{more}"
