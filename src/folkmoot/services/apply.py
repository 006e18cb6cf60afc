"""Applies a set of definitions: what is new is created, what differs gets a version, the rest stays. All of it, or nothing.

The diff is the change itself, carried out and taken back, so that it can promise nothing that would not happen. Servers of
connectors are looked at before, outside of any transaction (`look`). Deliberately absent: files, which become documents elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from folkmoot.domain.channels import NO_APPS, AppShape
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.definitions import (
    AgentVersion,
    DefinitionKind,
    InteractionVersion,
    Reference,
    StoredVersion,
    Version,
)
from folkmoot.domain.routers import RouterVersion
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Conflict, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import connectors, references
from folkmoot.services.connectors import Discoveries
from folkmoot.services.definitions import PublishedVersion, delete_in, faults_of, kind_of, publish_in
from folkmoot.services.differences import Difference, differences
from folkmoot.services.reach import Reach
from folkmoot.store import definitions, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.definitions import Outcome

# what others refer to comes before them
PUBLISH_ORDER = (
    DefinitionKind.CREDENTIAL_STACK,
    DefinitionKind.AI_MODEL,
    DefinitionKind.MCP_CONNECTOR,
    DefinitionKind.OPEN_API_CONNECTOR,
    DefinitionKind.CHANNEL,
    DefinitionKind.AGENT,
    DefinitionKind.ROUTER,
    DefinitionKind.INTERACTION,
)
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Document:
    """A definition as somebody wrote it. `lines`: where in `file` each part of the version stands, by its JSON pointer.

    `content`: the OpenAPI document that the version names by its hash.
    """

    namespace: str
    name: str
    version: Version
    file: str | None = None
    lines: Mapping[str, int] = field(default_factory=dict)
    content: bytes | None = None

    @property
    def kind(self) -> DefinitionKind:
        return kind_of(self.version)

    @property
    def key(self) -> tuple[DefinitionKind, str, str]:
        return self.kind, self.namespace, self.name

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


async def look(database: Database, caller: Caller, reach: Reach, documents: Sequence[Document]) -> Discoveries:
    """What the servers offer of those connectors that are new or differ; `diff` and `apply` take it. Raises ConnectorFault."""
    wanted = [(each.key, each.version, each.content, _where(each)) for each in documents]
    return await connectors.look_at_changed(database, caller, reach, wanted)


def _where(document: Document) -> str:
    place = f"{document.file}:{document.lines.get('', 1)}: " if document.file else ""
    return f"{place}{references.NOUNS[document.kind]} '{document.namespace}/{document.name}'"


async def diff(
    database: Database, caller: Caller, documents: Sequence[Document], *, new_id: NewId, found: Discoveries | None = None,
    prunes: bool = False, channel_apps: Mapping[str, AppShape] = NO_APPS,
) -> tuple[Change, ...]:  # fmt: skip
    """What `apply` would do now. Changes nothing. Raises BadDefinition as `apply` does."""
    changes: tuple[Change, ...] = ()
    try:
        async with database.writer() as writer:
            saving = _Saving(writer, caller, new_id, found or {}, channel_apps)
            changes = await _apply(saving, documents, prunes=prunes)
            raise _TakenBack
    except _TakenBack:
        return changes


async def apply(
    database: Database, caller: Caller, documents: Sequence[Document], *, new_id: NewId, found: Discoveries | None = None,
    prunes: bool = False, channel_apps: Mapping[str, AppShape] = NO_APPS,
) -> tuple[Change, ...]:  # fmt: skip
    """Publish the documents in one transaction, each after what it refers to; a second time changes nothing.

    `found`: what `look` gave. `channel_apps`: what is known of the apps of channels. `prunes`: delete what the namespaces of the documents hold beside them. Raises BadDefinition with
    the faults of all documents, each with its file and line where the document has them; Conflict where a connector was changed
    since its server was looked at.
    """
    async with database.writer() as writer:
        return await _apply(_Saving(writer, caller, new_id, found or {}, channel_apps), documents, prunes=prunes)


@dataclass(frozen=True, slots=True)
class _Saving:
    """What all documents of a set are saved with."""

    writer: Writer
    caller: Caller
    new_id: NewId
    found: Discoveries
    channel_apps: Mapping[str, AppShape]


async def _apply(saving: _Saving, documents: Sequence[Document], *, prunes: bool) -> tuple[Change, ...]:
    _refuse(
        [document.placed(fault) for document in documents for fault in faults_of(document.version, saving.channel_apps)]
    )
    changes = {}
    for kind in PUBLISH_ORDER:
        faults: list[Fault] = []
        for document in _in_order([each for each in documents if each.kind is kind]):
            try:
                changes[id(document)] = await _publish(saving, document)
            except BadDefinition as error:
                faults += [document.placed(fault) for fault in error.faults]
        _refuse(faults)  # what refers to these would only fail with them
    pruned = await _prune(saving.writer, saving.caller, documents) if prunes else []
    return (*(changes[id(document)] for document in documents), *pruned)


def _in_order(documents: Sequence[Document]) -> list[Document]:
    """Documents of one kind, each after those of its kind that it refers to, else by name.

    It is one order for all, so that two that apply the same set wait for each other and never for ever. Those in a circle are last.
    """
    left = sorted(documents, key=lambda each: (each.namespace, each.name))
    ordered: list[Document] = []
    while ready := next((each for each in left if not _needs(each) & {other.key for other in left}), None):
        left.remove(ready)
        ordered.append(ready)
    return [*ordered, *left]


def _needs(document: Document) -> set[tuple[DefinitionKind, str, str]]:
    links = _peers(document.version)
    return {(document.kind, link.namespace or document.namespace, link.name or "") for link in links} - {document.key}


def _peers(version: Version) -> Iterable[Reference]:
    """Links to definitions of the version's own kind."""
    if isinstance(version, RouterVersion):
        return [each.router for each in version.candidates if each.router is not None]
    if isinstance(version, InteractionVersion) and version.swarm is not None:
        return version.swarm.interactions
    if isinstance(version, AgentVersion):
        return version.runs.specialists
    return ()


async def _publish(saving: _Saving, document: Document) -> Change:
    before = await _latest(saving.writer, saving.caller, document)
    published = await _saved(saving, document, before)
    stored, changed = published.stored, published.outcome is Outcome.CHANGED
    return Change(
        document.kind, document.namespace, document.name, published.outcome, stored.number,
        differences(before, stored.body) if before is not None and changed else (),
    )  # fmt: skip


async def _saved(saving: _Saving, document: Document, before: Version | None) -> PublishedVersion:
    writer, caller, new_id = saving.writer, saving.caller, saving.new_id
    version, place = document.version, {"namespace": document.namespace, "name": document.name}
    if not isinstance(version, McpConnectorVersion | OpenApiConnectorVersion):
        return await publish_in(
            writer, caller, namespace=document.namespace, name=document.name, version=version, new_id=new_id,
            channel_apps=saving.channel_apps,
        )  # fmt: skip
    discovery = saving.found.get(document.key)
    if discovery is not None:
        published, _ = await connectors.save_in(
            writer, caller, **place, version=version, discovery=discovery, new_id=new_id
        )
        return published
    if isinstance(version, OpenApiConnectorVersion) and isinstance(before, OpenApiConnectorVersion):
        version = replace(version, server_url=before.server_url)
    published = await publish_in(
        writer, caller, namespace=document.namespace, name=document.name, version=version, new_id=new_id
    )
    if published.outcome is not Outcome.UNCHANGED:
        raise Conflict(f"The {_where(document)} was changed since its server was looked at. Apply the files again.")
    return published


async def _prune(writer: Writer, caller: Caller, documents: Sequence[Document]) -> list[Change]:
    """Delete what the named namespaces hold beside the set: what refers to others first."""
    kept = {document.key for document in documents}
    pruned = []
    for namespace in sorted({document.namespace for document in documents}):
        for kind in reversed(PUBLISH_ORDER):
            for stored in await everything(writer, caller, kind=kind, namespace=namespace):
                definition = stored.definition
                if (kind, namespace, definition.name) not in kept:
                    await delete_in(writer, caller, definition=definition)
                    pruned.append(Change(kind, namespace, definition.name, Outcome.DELETED, stored.number, ()))
    return pruned


async def everything(reader: Reader, caller: Caller, *, kind: DefinitionKind, namespace: str) -> list[StoredVersion]:
    """All definitions of a kind in a namespace by name, each as its newest version; none where there is no such namespace."""
    place = await tenancy.find_namespace(reader, caller.tenant_id, name=namespace)
    found: list[StoredVersion] = []
    while place is not None:
        page = await definitions.page(
            reader, caller.tenant_id, kind=kind, namespace_id=place.namespace_id,
            after=found[-1].definition.name if found else "", limit=_PAGE,
        )  # fmt: skip
        found += page
        if len(page) < _PAGE:
            break
    return found


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
