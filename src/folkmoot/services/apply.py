"""Applies a set of definitions: what is new is created, what differs gets a version, the rest stays. All of it, or nothing.

The diff is the change itself, carried out and taken back, so that it can promise nothing that would not happen. Deliberately
absent: files, which become documents elsewhere, and deletion of what the set does not name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from folkmoot.domain.definitions import DefinitionKind, Reference, Version
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import references
from folkmoot.services.definitions import faults_of, kind_of, publish_in
from folkmoot.services.differences import Difference, differences
from folkmoot.store import definitions
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.definitions import Outcome

_ORDER = (DefinitionKind.AI_MODEL, DefinitionKind.AGENT, DefinitionKind.INTERACTION)


@dataclass(frozen=True, slots=True)
class Document:
    """A definition as somebody wrote it. `lines`: where in `file` each part of the version stands, by its JSON pointer."""

    namespace: str
    name: str
    version: Version
    file: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> DefinitionKind:
        return kind_of(self.version)

    def placed(self, fault: Fault) -> Fault:
        return placed(fault, file=self.file, lines=self.lines)


def placed(fault: Fault, *, file: str | None, lines: Mapping[str, int]) -> Fault:
    """The fault with its file, and the line of the deepest part of its pointer that the file has."""
    pointer = fault.pointer
    while pointer and pointer not in lines:
        pointer = pointer.rpartition("/")[0]
    return Fault(fault.pointer, fault.message, file, lines.get(pointer))


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one document. `number`: the version that says what the document says."""

    kind: DefinitionKind
    namespace: str
    name: str
    outcome: Outcome
    number: int
    differences: tuple[Difference, ...]


class _TakenBack(Exception):
    """Ends a transaction without its changes."""


async def diff(
    database: Database, caller: Caller, documents: Sequence[Document], *, new_id: NewId
) -> tuple[Change, ...]:
    """What `apply` would do now. Changes nothing. Raises BadDefinition as `apply` does."""
    changes: tuple[Change, ...] = ()
    try:
        async with database.writer() as writer:
            changes = await _apply(writer, caller, documents, new_id=new_id)
            raise _TakenBack
    except _TakenBack:
        return changes


async def apply(
    database: Database, caller: Caller, documents: Sequence[Document], *, new_id: NewId
) -> tuple[Change, ...]:
    """Publish the documents in one transaction, models first, then agents, then interactions; a second time changes nothing.

    Raises BadDefinition with the faults of all documents, each with its file and line where the document has them.
    """
    async with database.writer() as writer:
        return await _apply(writer, caller, documents, new_id=new_id)


async def _apply(writer: Writer, caller: Caller, documents: Sequence[Document], *, new_id: NewId) -> tuple[Change, ...]:
    _refuse([document.placed(fault) for document in documents for fault in faults_of(document.version)])
    changes = {}
    for kind in _ORDER:
        faults: list[Fault] = []
        # In one order for all, so that two that apply the same set wait for each other and never for ever.
        for document in sorted(documents, key=lambda document: (document.namespace, document.name)):
            if document.kind is kind:
                try:
                    changes[id(document)] = await _publish(writer, caller, document, new_id=new_id)
                except BadDefinition as error:
                    faults += [document.placed(fault) for fault in error.faults]
        _refuse(faults)  # what refers to these would only fail with them
    return tuple(changes[id(document)] for document in documents)


async def _publish(writer: Writer, caller: Caller, document: Document, *, new_id: NewId) -> Change:
    before = await _latest(writer, caller, document)
    published = await publish_in(
        writer, caller, namespace=document.namespace, name=document.name, version=document.version, new_id=new_id
    )
    stored, changed = published.stored, published.outcome is Outcome.CHANGED
    return Change(
        document.kind, document.namespace, document.name, published.outcome, stored.number,
        differences(before, stored.body) if before is not None and changed else (),
    )  # fmt: skip


async def _latest(reader: Reader, caller: Caller, document: Document) -> Version | None:
    reference = Reference(document.name, document.namespace)
    try:
        definition = await references.find(reader, caller.tenant_id, kind=document.kind, reference=reference)
    except NotFound:
        return None
    stored = await definitions.version(
        reader, caller.tenant_id, definition=definition, number=definition.latest_version
    )
    return stored.body if stored is not None else None


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        count = "A fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise BadDefinition(f"{count} in the definitions; nothing was applied. {faults[0]}", tuple(faults))
