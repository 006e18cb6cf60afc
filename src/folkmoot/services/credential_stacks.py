"""Which credential stack runs take that name none: a namespace's default, and the tenant's. Stacks themselves are definitions.

Deliberately absent: what a start makes of it (`start_credentials`).
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import Definition, DefinitionKind, Reference
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE, Caller
from folkmoot.kernel.errors import BadInput, Fault, NotFound
from folkmoot.services import namespaces, references
from folkmoot.store import audit, credential_stacks, definitions
from folkmoot.store.database import Database, Reader

_KIND = DefinitionKind.CREDENTIAL_STACK
_POINTER = "/credentialStack"


async def default(database: Database, caller: Caller, *, namespace: str | None = None) -> tuple[UUID, str] | None:
    """The default's id and `namespace/name` ('' where it was deleted); null: none is set. `namespace` null: the tenant's. Raises NotFound."""
    async with database.reader() as reader:
        if namespace is not None:
            await namespaces.get(reader, caller, name=namespace)
        found = await credential_stacks.defaults(reader, caller.tenant_id, namespace=namespace or "")
        stack_id = found.of_namespace if namespace is not None else found.of_tenant
        if stack_id is None:
            return None
        stack = await definitions.get(reader, caller.tenant_id, kind=_KIND, definition_id=stack_id)
        return stack_id, f"{stack.namespace}/{stack.name}" if stack is not None else ""


async def set_default(
    database: Database, caller: Caller, *, stack: str | None, namespace: str | None = None
) -> tuple[UUID, str] | None:
    """Runs that start from now on take it, where nothing nearer names one. Null: none. What is set, as `default` tells it.

    Raises NotFound (the namespace), BadInput.
    """
    async with database.writer() as writer:
        place = await namespaces.get(writer, caller, name=namespace) if namespace is not None else None
        namespace_id = place.namespace_id if place is not None else None
        found = await _stack(writer, caller, stack, namespace) if stack is not None else None
        await credential_stacks.set_default(
            writer, caller.tenant_id, namespace_id=namespace_id, definition_id=found.definition_id if found is not None else None
        )  # fmt: skip
        made = (found.definition_id, f"{found.namespace}/{found.name}") if found is not None else None
        detail = {"namespace": namespace, "stack": made[1] if made is not None else None}
        await audit.note(
            writer, caller, action="credential_stack.default_set", subject_kind="namespace" if namespace is not None else "tenant",
            subject_id=namespace_id or caller.tenant_id, detail=detail,
        )  # fmt: skip
        return made


async def _stack(reader: Reader, caller: Caller, text: str, namespace: str | None) -> Definition:
    try:
        wanted = parse_reference(text)
        if wanted.version is not None:
            raise BadInput("A default takes the latest enabled version: leave out what comes after '@'.")
        place = namespace or DEFAULT_NAMESPACE
        reference = Reference(wanted.name, wanted.namespace or place, wanted.definition_id)
        return await references.find(reader, caller.tenant_id, kind=_KIND, reference=reference)
    except (BadInput, NotFound) as error:
        raise BadInput(f"The default was not set. {error}", (Fault(_POINTER, str(error)),)) from error
