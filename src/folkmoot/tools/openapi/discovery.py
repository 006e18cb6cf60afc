"""The operations of a document, each with all that a call of it needs; and those that cannot be called, with the reason.

What is said here of an operation becomes one version of it. Takes a second or two for a thousand operations: call it in a
thread. Deliberately absent: answers, webhooks, callbacks and security schemes; credentials are the connector's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from folkmoot.domain.json_text import named
from folkmoot.domain.operations import Argument, Discovered, OpenApiDescriptor
from folkmoot.domain.schemas import check_schema
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.openapi.naming import argument_name, operation_names
from folkmoot.tools.openapi.parameters import Offered, read_parameters
from folkmoot.tools.openapi.references import References, Unsupported, shown
from folkmoot.tools.openapi.request_bodies import RequestBody, read_body
from folkmoot.tools.openapi.schemas import Schemas
from folkmoot.tools.openapi.servers import base_url

Json = Any

MAX_OPERATIONS = 10_000
MAX_DESCRIPTION = 4_000
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")


class Discovery(NamedTuple):
    """`base_url`: of the first server, null if there is none to call. `left_out`: name and reason (a clause) of each operation
    that cannot be called as the document says."""

    base_url: str | None
    operations: list[Discovered]
    left_out: list[tuple[str, str]]


class _Found(NamedTuple):
    operation_id: str | None
    method: str
    path: str
    item: dict[str, Json]
    operation: dict[str, Json]
    reason: str | None


def discover(document: dict[str, Json], *, source: str | None = None) -> Discovery:
    """Everything that the document offers. `source`: its URL, for a server that is relative to it. Raises ConnectorFault."""
    is_old = _is_3_0(document)
    references = References(document)
    found = list(_found(document, references))
    names = operation_names([(one.operation_id, one.method, one.path) for one in found])
    base = base_url(document.get("servers"), source)
    operations: list[Discovered] = []
    left_out: list[tuple[str, str]] = []
    for name, one in zip(names, found, strict=True):
        try:
            _same_server(one, base, source)
            operations.append(Discovered(name, _described(one, references, is_old=is_old)))
        except Unsupported as error:
            left_out.append((name, str(error)))
        except RecursionError:
            left_out.append((name, "its schemas are nested too deeply"))
    return Discovery(base, operations, left_out)


def _is_3_0(document: dict[str, Json]) -> bool:
    version = document.get("openapi")
    if not isinstance(version, str):
        if "swagger" in document:
            raise ConnectorFault("The document is Swagger 2.0, which is not read; convert it to OpenAPI 3.0 or 3.1.")
        raise ConnectorFault("The document has no field 'openapi' with its version as text; give an OpenAPI document.")
    if not version.startswith(("3.0.", "3.1.")) and version not in ("3.0", "3.1"):
        raise ConnectorFault(f"The document is OpenAPI {shown(version, 20)}; 3.0 and 3.1 are read. Convert it to 3.1.")
    return version.startswith("3.0")


def _found(document: dict[str, Json], references: References) -> Iterator[_Found]:
    paths = document.get("paths", {})
    if not isinstance(paths, dict):
        raise ConnectorFault(f"'paths' of the document is {named(paths)}; it is an object of paths.")
    count = 0
    for path, node in paths.items():
        if path.startswith("x-"):
            continue
        try:
            item, reason = references.resolved(node, "its path"), None
        except Unsupported as error:
            yield _Found(None, "any", path, {}, {}, str(error))
            continue
        for method in _METHODS:
            operation = item.get(method)
            if operation is None:
                continue
            count += 1
            if count > MAX_OPERATIONS:
                raise ConnectorFault(
                    f"The document has more than {MAX_OPERATIONS:,} operations; split it into smaller ones."
                )
            if not isinstance(operation, dict):
                operation, reason = {}, f"it is {named(operation)} and no object"
            named_by = operation.get("operationId")
            yield _Found(named_by if isinstance(named_by, str) else None, method.upper(), path, item, operation, reason)


def _same_server(one: _Found, base: str | None, source: str | None) -> None:
    if one.reason is not None:
        raise Unsupported(one.reason)
    for owner in (one.operation, one.item):
        if owner.get("servers"):
            if base is None or base_url(owner["servers"], source) != base:
                raise Unsupported("it has a server of its own beside the document's; make a connector for that one")
            return


def _described(one: _Found, references: References, *, is_old: bool) -> OpenApiDescriptor:
    descriptor = _built(one, references, Schemas(references, is_old=is_old))
    faults = check_schema(descriptor.parameters, "")
    if faults:
        # What is too large may fit without its texts.
        descriptor = _built(one, references, Schemas(references, is_old=is_old, with_descriptions=False))
        faults = check_schema(descriptor.parameters, "")
    if faults:
        place = f" (at {shown(faults[0].pointer, 100)})" if faults[0].pointer else ""
        raise Unsupported(
            f"the schema of its arguments cannot be used{place}: {shown(faults[0].message, 300).rstrip('.')}"
        )
    return descriptor


def _built(one: _Found, references: References, schemas: Schemas) -> OpenApiDescriptor:
    offered = read_parameters(one.item, one.operation, one.path, references=references, schemas=schemas)
    body = read_body(one.operation, references=references, schemas=schemas)
    schemas.settle()
    arguments, parameters = _flat([*offered, *body.offered], body, schemas)
    texts = (shown(one.operation.get(key) or "", MAX_DESCRIPTION) for key in ("summary", "description"))
    description = "\n\n".join(dict.fromkeys(text for text in texts if text))
    return OpenApiDescriptor(
        method=one.method,
        path=one.path,
        description=shown(description, MAX_DESCRIPTION) or f"{one.method} {shown(one.path, 200)}",
        parameters=parameters,
        arguments=arguments,
        body_type=body.media_type,
        is_body_required=body.is_required,
    )


def _flat(offered: list[Offered], body: RequestBody, schemas: Schemas) -> tuple[tuple[Argument, ...], dict[str, Json]]:
    """Arguments and their one schema. A field of the body keeps its name where a parameter shares it."""
    uses = Counter(one.wire_name for one in offered)
    # The body's are named first, whatever their order in the schema.
    named_by: dict[int, str] = {}
    for index, one in sorted(enumerate(offered), key=lambda pair: pair[1].place not in ("field", "body")):
        shared = uses[one.wire_name] > 1 and one.place not in ("field", "body")
        named_by[index] = argument_name(one.wire_name, one.place, shared=shared, taken=named_by.values())
    properties = {named_by[index]: one.schema for index, one in enumerate(offered)}
    parameters: dict[str, Json] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [named_by[index] for index, one in enumerate(offered) if one.is_required]
    if required:
        parameters["required"] = required
    fields = {one.wire_name: named_by[index] for index, one in enumerate(offered) if one.place == "field"}
    if body.dependent:
        wanted = [fields[name] for name in body.dependent]
        parameters["dependentRequired"] = {
            name: [other for other in wanted if other != name] for name in fields.values()
        }
    if schemas.defs:
        parameters["$defs"] = schemas.defs
    arguments = tuple(
        Argument(
            name=named_by[index],
            wire_name=one.wire_name,
            place=one.place,
            style=one.style,
            explode=one.explode,
            allow_reserved=one.allow_reserved,
            media_type=one.media_type,
        )
        for index, one in enumerate(offered)
    )
    return arguments, parameters
