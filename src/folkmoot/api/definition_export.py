"""Definitions as YAML documents that apply again without a change: the form that `definition_files` reads.

Links are written by name, what has its default is left out. Deliberately absent: secrets, which are named, and versions but the
newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from folkmoot.api.yaml_writing import written
from folkmoot.domain.connectors import OpenApiConnectorVersion
from folkmoot.domain.definitions import DefinitionKind, InteractionVersion, Reference, StoredVersion
from folkmoot.domain.tool_bindings import OnOperation
from folkmoot.kernel.errors import BadInput
from folkmoot.services.differences import NESTED, SPREAD, UNSAID, field_name, named
from folkmoot.services.exporting import Exported
from folkmoot.wire.formats import print_timespan

Json = Any

_FILES = {
    DefinitionKind.CREDENTIAL_STACK: "credential-stacks",
    DefinitionKind.AI_MODEL: "ai-models",
    DefinitionKind.MCP_CONNECTOR: "connectors",
    DefinitionKind.OPEN_API_CONNECTOR: "connectors",
    DefinitionKind.CHANNEL: "channels",
    DefinitionKind.AGENT: "agents",
    DefinitionKind.ROUTER: "routers",
    DefinitionKind.INTERACTION: "interactions",
}
_FILE_CHARACTERS = 400_000  # a file may have 1,000,000 bytes
_INLINE_BYTES = 400_000


def as_text(exported: Exported) -> str:
    """All of them in one text. Raises BadInput where a document is too large to stand in it."""
    for body in exported.documents.values():
        if len(body) > _INLINE_BYTES:
            raise BadInput(
                f"An uploaded document has {len(body):,} bytes, too many to stand among definitions. Export into a folder, with --out."
            )
    return "---\n".join(_document(stored, exported.documents, is_inline=True) for stored in exported.definitions)


def as_files(exported: Exported) -> dict[str, bytes]:
    """File names and contents: a few files of definitions, and each uploaded document beside them."""
    parts: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for stored in exported.definitions:
        text = _document(stored, exported.documents, is_inline=False)
        base = _FILES[stored.definition.kind]
        size = sizes.get(base, 0) + len(text)
        sizes[base] = size
        number = size // _FILE_CHARACTERS + 1
        parts.setdefault(f"{base}.yaml" if number == 1 else f"{base}-{number}.yaml", []).append(text)
    files = {name: "---\n".join(texts).encode() for name, texts in parts.items()}
    return files | {_file_of(hash_, body): body for hash_, body in exported.documents.items()}


def _file_of(document_hash: str, body: bytes) -> str:
    """Not `.yaml`: that would be read as a file of definitions."""
    kind = "json" if body.lstrip()[:1] == b"{" else "txt"
    return f"openapi-{document_hash[:16]}.{kind}"


def _document(stored: StoredVersion, documents: Mapping[str, bytes], *, is_inline: bool) -> str:
    definition = stored.definition
    version = _fields(stored.body)
    body = stored.body
    if isinstance(body, InteractionVersion):
        version = {"type": body.type.value, **{name: part for name, part in version.items() if name != "type"}}
    if isinstance(body, OpenApiConnectorVersion):
        version.pop("serverUrl", None)
        document_hash = version.pop("documentHash", None)
        if document_hash is not None and document_hash in documents:
            document = documents[document_hash]
            version |= (
                {"document": document.decode("utf-8", "replace")}
                if is_inline
                else {"documentFile": _file_of(document_hash, document)}
            )
    return written(
        {"kind": definition.kind.value, "namespace": definition.namespace, "name": definition.name, "version": version}
    )


def _fields(value: Any) -> dict[str, Json]:
    """What differs from its default, by the wire's names."""
    made: dict[str, Json] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if part == _default(field) or part is UNSAID:
            continue
        if field.name in SPREAD:
            made |= {name: each for name, each in _plain(part).items() if name != "type"}
        else:
            made[field_name(type(value), field.name)] = _plain(part)
    for name, place in NESTED.items():
        if name in made:
            made[place] = {**made.get(place, {}), name: made.pop(name)}
    if isinstance(value, OnOperation) and value.connector is not None and value.operation is not None:
        made.pop("externalOperationId", None)
    return made


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _plain(value: Any) -> Json:
    match value:
        case Reference():
            return _link(value)
        case timedelta():
            return print_timespan(value)
        case Decimal():
            return float(value)
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case str():
            return value
        case Iterable():
            return [_plain(part) for part in value]
        case _ if is_dataclass(value):
            return _fields(value)
        case _:
            return value


def _link(reference: Reference) -> Json:
    if reference.name is None:
        return {"id": str(reference.definition_id), "version": reference.version or 0}
    return named(reference)
