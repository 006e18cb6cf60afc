"""Links between definitions: a name or an id as it came, an id and a version as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import Reference
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.wire.formats import VersionReference, VersionReferenceRequest

NOTHING = UUID(int=0)


def reference(value: str | VersionReferenceRequest, pointer: str, faults: list[Fault]) -> Reference:
    """What is meant; a text that is no reference adds a fault, and means nothing."""
    if isinstance(value, VersionReferenceRequest):
        return Reference(definition_id=value.id, version=value.version or None)
    try:
        return parse_reference(value)
    except BadInput as error:
        faults.append(Fault(pointer, str(error)))
        return Reference(name=value)


def shown(link: Reference) -> VersionReference:
    """A stored link. Publishing settles every link to an id; version 0 is the latest enabled one."""
    return VersionReference(id=link.definition_id or NOTHING, version=link.version or 0)


def refuse(faults: list[Fault]) -> None:
    if faults:
        more = f" There are {len(faults)} faults." if len(faults) > 1 else ""
        raise BadInput(f"{faults[0].message}{more}", tuple(faults))


@contextmanager
def version_at(pointer: str) -> Iterator[None]:
    """Moves the pointers of faults within a version to where the body has that version; the name's own stay."""
    try:
        yield
    except BadInput as error:
        faults = (
            fault if fault.pointer in ("/name", "/namespace") else replace(fault, pointer=pointer + fault.pointer)
            for fault in error.faults
        )
        raise type(error)(str(error), tuple(faults)) from error
