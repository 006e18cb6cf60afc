"""Definitions kept as YAML files: read into documents, and checked without a server. docs/spec/examples/panel.yaml is the form.

Everything wrong in all files is found at once, each with file, line and field. A model's relative `path` is taken from the
file's own folder. Deliberately absent: a database; whether a link outside the set leads somewhere is found when it is applied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from folkmoot.api.definition_set_links import link_faults
from folkmoot.api.mapping import agents, ai_models, channels, connectors, credential_stacks, interactions, routers
from folkmoot.api.yaml_values import YamlDocument, read_documents
from folkmoot.domain.channel_checks import faults_of_channel_name
from folkmoot.domain.channels import NO_APPS, AppShape
from folkmoot.domain.connectors import MAX_DOCUMENT_BYTES
from folkmoot.domain.definition_names import faults_of_name
from folkmoot.domain.definitions import (
    AiModelVersion,
    DefinitionKind,
    Version,
)
from folkmoot.domain.schemas import check_schema
from folkmoot.kernel.errors import BadDefinition, BadInput, Fault
from folkmoot.services.apply import Document, placed
from folkmoot.services.definitions import faults_of
from folkmoot.services.references import NOUNS
from folkmoot.wire import definitions as wire
from folkmoot.wire.errors import faults_of as faults_of_shape

__all__ = ["Document", "check", "faults_in", "read_files"]

Json = Any

MAX_FILE_BYTES = 1_000_000
_FIELDS = ("kind", "namespace", "name", "version")
_OUTSIDE = ("", "/kind", "/namespace", "/name", "/version")
_KINDS = tuple(kind.value for kind in DefinitionKind)
_SUFFIXES = (".yaml", ".yml")
_SCRIPT_SUFFIXES = (".script.yaml", ".script.yml")
_TIMESPANS = ("durationWarningToAi", "durationAutoTermination", "durationHumanTimeout")
_INTERACTIONS: dict[str, type[wire.RoundRobinInteractionVersionRequest | wire.ManagedInteractionVersionRequest]] = {
    "RoundRobin": wire.RoundRobinInteractionVersionRequest,
    "Managed": wire.ManagedInteractionVersionRequest,
}
_SPAN = re.compile(r"(?:(\d{1,7})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,12})s)?(?:(\d{1,12})ms)?")


def read_files(paths: Iterable[Path]) -> list[Document]:
    """The definitions of files and of folders (every .yaml and .yml below them but scripts, .script.yaml), in that order.

    Raises BadInput with every fault of every file.
    """
    faults: list[Fault] = []
    documents: list[Document] = []
    for file in _files(paths, faults):
        documents += _read_file(file, faults)
    faults += _doubles(documents)
    if faults:
        raise BadInput(_counted(faults), tuple(faults))
    return documents


def check(
    documents: Sequence[Document], *, read_script: Callable[[str], Json] | None = None, channel_apps: Mapping[str, AppShape] = NO_APPS
) -> None:  # fmt: skip
    """Raises BadDefinition with every fault that `faults_in` finds."""
    faults = faults_in(documents, read_script=read_script, channel_apps=channel_apps)
    if faults:
        raise BadDefinition(_counted(faults), faults)


def faults_in(
    documents: Sequence[Document], *, read_script: Callable[[str], Json] | None = None, channel_apps: Mapping[str, AppShape] = NO_APPS
) -> tuple[Fault, ...]:  # fmt: skip
    """What is wrong with the set in itself, links within it included; () if nothing is.

    `read_script` has the scripts of scripted models read too (BadInput, OSError). `channel_apps`: what is known of the apps of channels.
    """
    known = {(document.kind, document.namespace, document.name): document for document in documents}
    return tuple(
        document.placed(fault) if fault.file is None else fault
        for document in documents
        for fault in (
            *faults_of(document.version, channel_apps),
            *(faults_of_channel_name(document.name) if document.kind is DefinitionKind.CHANNEL else ()),
            *link_faults(document, known),
            *(_script_faults(document.version, read_script) if read_script is not None else ()),
        )
    )


def _counted(faults: Sequence[Fault]) -> str:
    count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
    return f"The definitions have {count}. {faults[0]}"


def _files(paths: Iterable[Path], faults: list[Fault]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        found = [file for file in found if not file.name.endswith(_SCRIPT_SUFFIXES)]
        if not found:
            faults.append(Fault("", "This folder holds no .yaml file; name another.", str(path)))
        yield from found


def _read_file(file: Path, faults: list[Fault]) -> list[Document]:
    name = str(file)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            faults.append(Fault("", f"The file has more than {MAX_FILE_BYTES:,} bytes; split it.", name))
            return []
        text = content.decode("utf-8-sig")
    except OSError as error:
        faults.append(Fault("", f"The file cannot be read: {error.strerror or error}.", name))
        return []
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        faults.append(Fault("", "The file is not UTF-8; save it as UTF-8.", name, line))
        return []
    found = list(read_documents(text, name))
    if not found:
        faults.append(Fault("", "The file holds no definition; write {kind, namespace, name, version}.", name))
    return [document for yaml in found if (document := _read_document(yaml, file, faults)) is not None]


def _read_document(yaml: YamlDocument, file: Path, faults: list[Fault]) -> Document | None:
    """A document, or null and what is wrong with it. Pointers to parts of the version are from the version on."""
    lines = {_within_version(pointer): line for pointer, line in yaml.lines.items() if pointer not in _OUTSIDE}
    lines |= {pointer: line for pointer, line in yaml.lines.items() if pointer in _OUTSIDE}
    lines[""] = lines.get("/version", lines.get("", 1))
    found = [Fault(_within_version(fault.pointer), fault.message, fault.file, fault.line) for fault in yaml.faults]
    if found:
        faults += found
        return None
    wrong = list(_shape_faults(yaml.value))
    if wrong:
        lines = yaml.lines
    else:
        value = yaml.value
        wrong = [
            *faults_of_name("/namespace", value["namespace"], what="namespace"),
            *faults_of_name("/name", value["name"], what="definition"),
        ]
        version, content, more = _read_version(DefinitionKind(value["kind"]), value["version"], file)
        wrong += more
        if version is not None and not wrong:
            return Document(value["namespace"], value["name"], version, str(file), lines, content)
    faults += [placed(fault, file=str(file), lines=lines) for fault in wrong]
    return None


def _within_version(pointer: str) -> str:
    return pointer.removeprefix("/version") if pointer.startswith("/version/") else pointer


def _shape_faults(value: Json) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault("", "A definition is a mapping {kind, namespace, name, version}.")
        return
    for name in value:
        if name not in _FIELDS:
            yield Fault(f"/{name}", f"There is no field '{name[:80]}' here; the fields are {', '.join(_FIELDS)}.")
    for name in _FIELDS:
        if name not in value:
            yield Fault("", f"The field '{name}' is missing.")
        elif name == "version":
            if not isinstance(value[name], dict):
                yield Fault("/version", "'version' holds the definition's fields, as a mapping.")
        elif not isinstance(value[name], str):
            yield Fault(f"/{name}", f"'{name}' is text; put it in quotes.")
    kind = value.get("kind")
    if isinstance(kind, str) and kind not in _KINDS:
        yield Fault("/kind", f"There is no kind '{kind[:80]}'; there are: {', '.join(_KINDS)}.")


def _read_version(
    kind: DefinitionKind, value: dict[str, Json], file: Path
) -> tuple[Version | None, bytes | None, list[Fault]]:
    """The version, the OpenAPI document that it names, and what is wrong."""
    faults: list[Fault] = []
    fields = dict(value)
    content: bytes | None = None
    try:
        match kind:
            case DefinitionKind.AI_MODEL:
                _place_path(fields, file)
                version: Version = ai_models.version_of(wire.AiModelVersionRequest.model_validate(fields))
            case DefinitionKind.AGENT:
                faults += _prepare_agent(fields)
                version = agents.version_of(wire.AgentVersionRequest.model_validate(fields))
            case DefinitionKind.INTERACTION:
                faults += _prepare_interaction(fields)
                shape = _INTERACTIONS.get(fields.get("type", ""), wire.RoundRobinInteractionVersionRequest)
                version = interactions.version_of(shape.model_validate(fields))
            case DefinitionKind.ROUTER:
                version = routers.version_of(wire.RouterVersionRequest.model_validate(fields))
            case DefinitionKind.MCP_CONNECTOR:
                version = connectors.mcp_version_of(wire.McpConnectorVersionRequest.model_validate(fields))
            case DefinitionKind.CREDENTIAL_STACK:
                version = credential_stacks.version_of(wire.CredentialStackVersionRequest.model_validate(fields))
            case DefinitionKind.CHANNEL:
                version = channels.version_of(wire.ChannelVersionRequest.model_validate(fields))
            case DefinitionKind.OPEN_API_CONNECTOR:
                faults += _read_service_document(fields, file)
                request = wire.OpenApiConnectorVersionRequest.model_validate(fields)
                version, content = connectors.open_api_version_of(request)
    except ValidationError as error:
        found = faults_of_shape(error.errors(include_url=False, include_context=False, include_input=False))
        return None, None, faults + list(found)
    except BadInput as error:
        return None, None, faults + list(error.faults)
    return version, content, faults


def _read_service_document(fields: dict[str, Json], file: Path) -> Iterator[Fault]:
    """Files name an OpenAPI document by its path, from their own folder on; the wire has its text."""
    if "documentFile" not in fields:
        return
    path = fields.pop("documentFile")
    if not isinstance(path, str) or not path or "\0" in path:
        yield Fault("/documentFile", "This is the path of an OpenAPI document; correct it.")
        return
    if "document" in fields:
        yield Fault("/documentFile", "The document is there twice, as 'document' and as 'documentFile'; leave one out.")
    try:
        with (file.parent / path).open("rb") as stream:
            content = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES:
            yield Fault("/documentFile", f"The document has more than {MAX_DOCUMENT_BYTES:,} bytes; split it.")
            return
        fields["document"] = content.decode("utf-8")
    except OSError as error:
        yield Fault("/documentFile", f"The document cannot be read: {error.strerror or error}.")
    except UnicodeDecodeError:
        yield Fault("/documentFile", "The document is not UTF-8; save it as UTF-8.")


def _place_path(fields: dict[str, Json], file: Path) -> None:
    path = fields.get("path")
    if isinstance(path, str) and path and not path.startswith("~") and "\0" not in path:
        fields["path"] = str((file.parent / path).resolve())


def _prepare_interaction(fields: dict[str, Json]) -> Iterator[Fault]:
    """What files may write otherwise than the wire: schemas as YAML, short timespans. They always say the type."""
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in _INTERACTIONS:
        fields.pop("type", None)
        words = "An interaction's 'type' is RoundRobin or Managed; say which."
        yield Fault("/type" if kind is not None else "", words)
    schema = fields.get("solutionSchema")
    if schema is not None and not isinstance(schema, str):
        yield from check_schema(schema, "/solutionSchema")
        fields["solutionSchema"] = json.dumps(schema, ensure_ascii=False)
    yield from _prepare_spans(fields, _TIMESPANS)


def _prepare_agent(fields: dict[str, Json]) -> Iterator[Fault]:
    yield from _prepare_spans(fields, ("consentTime",))
    budget = fields.get("agentBudget")
    if isinstance(budget, dict):
        fields["agentBudget"] = dict(budget)
        yield from _prepare_spans(fields["agentBudget"], ("workingTime",), "/agentBudget")


def _prepare_spans(fields: dict[str, Json], names: Iterable[str], pointer: str = "") -> Iterator[Fault]:
    for name in names:
        if name in fields and fields[name] is not None:
            span = _span(fields[name])
            if span is None:
                fields[name] = None
                yield Fault(f"{pointer}/{name}", "This is no time; write one such as 5m, 1d2h or 00:05:00.")
            elif isinstance(span, timedelta):
                fields[name] = span


def _span(value: Json) -> timedelta | str | None:
    """A short timespan, a text that may be a long one, or null for neither."""
    if not isinstance(value, str):
        return None
    match = _SPAN.fullmatch(value)
    if match is None or not value:
        return value if ":" in value else None
    days, hours, minutes, seconds, milliseconds = (int(part or 0) for part in match.groups())
    try:
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
    except OverflowError:
        return None


def _doubles(documents: Sequence[Document]) -> Iterator[Fault]:
    seen: dict[tuple[DefinitionKind, str, str], Document] = {}
    for document in documents:
        first = seen.setdefault((document.kind, document.namespace, document.name), document)
        if first is not document:
            title = f"{NOUNS[document.kind]}s '{document.namespace}/{document.name}'"
            where = f"{first.file}:{first.lines.get('/name')}"
            yield document.placed(
                Fault("/name", f"There are two {title}; the other is at {where}. Rename one, or leave it out.")
            )


def _script_faults(version: Version, read_script: Callable[[str], Json]) -> Iterator[Fault]:
    if not isinstance(version, AiModelVersion) or version.provider != "scripted" or version.path is None:
        return
    try:
        read_script(version.path)
    except BadInput as error:
        yield from error.faults or (Fault("/path", str(error)),)
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not UTF-8"
        yield Fault("/path", f"The script cannot be read ({version.path}): {reason}.")
