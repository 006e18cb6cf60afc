"""The body of an operation: field by field where it is a plain object, else as one argument `body`.

Read are JSON, forms, multipart forms without files, and text. Deliberately absent: files, XML, and writing values (`requests`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from folkmoot.tools.openapi.parameters import Offered, is_json
from folkmoot.tools.openapi.references import References, Unsupported, shown
from folkmoot.tools.openapi.schemas import Schemas

Json = Any

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
WHOLE = "body"
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *; *[A-Za-z0-9_-]+=[A-Za-z0-9_.:-]+)*")
_FLAT = {"type", "properties", "required", "description", "title", "nullable", "example", "examples", "default", "xml"}
_FORM_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_MAX_MERGED = 16


@dataclass(frozen=True, slots=True)
class RequestBody:
    """What is sent as the body. `media_type`: null for none. `dependent`: names that any field of an optional body asks for."""

    media_type: str | None = None
    is_required: bool = False
    offered: tuple[Offered, ...] = ()
    dependent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fields:
    properties: dict[str, Json]
    required: tuple[str, ...]


def read_body(operation: Json, *, references: References, schemas: Schemas) -> RequestBody:
    """The body of an operation. Raises Unsupported."""
    if operation.get("requestBody") is None:
        return RequestBody()
    body = references.resolved(operation["requestBody"], "its body")
    is_required = body.get("required") is True
    media_type, described = _chosen(body.get("content"))
    schema = described.get("schema", {})
    kind = media_type.partition(";")[0].strip().lower()
    is_form = kind in (FORM, MULTIPART)
    fields = _fields(schema, references, _MAX_MERGED) if is_form or is_json(media_type) else None
    if fields is None:
        if is_form:
            raise Unsupported(f"its body of the type '{kind}' is no plain object of fields")
        one = Offered(WHOLE, "body", schemas.converted(schema), is_required, media_type=media_type)
        return RequestBody(media_type, is_required, (one,))
    encoding = described.get("encoding") if is_form else None
    shown_fields = {name: inner for name, inner in fields.properties.items() if not schemas.is_read_only(inner)}
    required = tuple(name for name in fields.required if name in shown_fields)
    offered = tuple(
        Offered(name, "field", schemas.converted(inner), is_required and name in required)
        for name, inner in shown_fields.items()
    )
    if is_form:
        offered = tuple(_form_field(one, shown_fields[one.wire_name], encoding, kind, references) for one in offered)
    return RequestBody(media_type, is_required, offered, () if is_required else required)


def _chosen(content: Json) -> tuple[str, dict[str, Json]]:
    """The media type that is sent: JSON before forms before text."""
    if not isinstance(content, dict) or not content:
        raise Unsupported("its body names no media type")
    for is_fit in (
        lambda kind: kind == "application/json",
        is_json,
        lambda kind: kind == FORM,
        lambda kind: kind == MULTIPART,
        lambda kind: kind.startswith("text/") and "xml" not in kind,
    ):
        for media_type, described in content.items():
            kind = str(media_type).partition(";")[0].strip().lower()
            if is_fit(kind) and _MEDIA_TYPE.fullmatch(media_type) and isinstance(described, dict | None):
                return media_type, described or {}
    raise Unsupported(f"its body is of the type '{shown(next(iter(content)))}', which is not supported")


def _fields(schema: Json, references: References, left: int) -> _Fields | None:
    """The fields of a schema that is a plain object, or several of them joined; null if it is anything else."""
    if left <= 0 or not isinstance(schema, dict):
        return None
    if isinstance(schema.get("$ref"), str):
        return _fields(references.resolved(schema, "its body"), references, left - 1)
    keywords = {keyword for keyword in schema if not keyword.startswith("x-")}
    members = schema.get("allOf")
    if isinstance(members, list) and keywords <= _FLAT | {"allOf"} and schema.get("nullable") is not True:
        rest = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
        parts = [_fields(member, references, left - len(members)) for member in members]
        if rest.get("properties"):
            parts.append(_fields({"type": "object", **rest}, references, left - 1))
        return _joined(parts, rest.get("required"))
    properties = schema.get("properties")
    extra = schema.get("additionalProperties")
    if (
        not isinstance(properties, dict)
        or not properties
        or schema.get("type", "object") != "object"
        or not keywords <= _FLAT | {"additionalProperties"}
        or (extra not in (None, False) or schema.get("nullable") is True)
    ):
        return None
    return _Fields(properties, _names(schema.get("required"), properties))


def _joined(parts: list[_Fields | None], required: Json) -> _Fields | None:
    properties: dict[str, Json] = {}
    names: list[str] = []
    for part in parts:
        if part is None or any(properties.get(name, inner) != inner for name, inner in part.properties.items()):
            return None
        properties |= part.properties
        names += part.required
    return _Fields(properties, tuple(dict.fromkeys([*names, *_names(required, properties)]))) if properties else None


def _names(required: Json, properties: dict[str, Json]) -> tuple[str, ...]:
    return tuple(name for name in required if name in properties) if isinstance(required, list) else ()


def _form_field(field: Offered, schema: Json, encoding: Json, kind: str, references: References) -> Offered:
    """A form's field as its encoding says it is sent."""
    shown_name = shown(field.wire_name, 60)
    if kind == MULTIPART and _is_file(schema, references):
        raise Unsupported(f"its field '{shown_name}' is a file, and files are not sent")
    said = encoding.get(field.wire_name) if isinstance(encoding, dict) else None
    said = said if isinstance(said, dict) else {}
    media_type = said.get("contentType")
    if media_type is not None and not (
        isinstance(media_type, str) and (is_json(media_type) or media_type.startswith("text/"))
    ):
        raise Unsupported(f"its field '{shown_name}' is of the type '{shown(media_type)}', which is not supported")
    if media_type is not None and not _MEDIA_TYPE.fullmatch(media_type):
        raise Unsupported(f"its field '{shown_name}' has no media type that can be sent")
    if said.get("headers"):
        raise Unsupported(f"its field '{shown_name}' asks for headers of its own")
    if not any(key in said for key in ("style", "explode", "allowReserved")):
        return replace(field, style="form", explode=True, media_type=media_type)
    style = said.get("style", "form")
    if style not in _FORM_STYLES:
        raise Unsupported(f"its field '{shown_name}' has the style '{shown(style, 40)}', which a form has not")
    explode = said.get("explode", style == "form") is True
    return replace(field, style=style, explode=explode, allow_reserved=said.get("allowReserved") is True)


def _is_file(schema: Json, references: References) -> bool:
    plain = references.resolved(schema, "a field") if isinstance(schema, dict) else {}
    inner = plain.get("items")
    parts = (plain, references.resolved(inner, "a field") if isinstance(inner, dict) else {})
    return any(
        part.get("format") in ("binary", "byte") or part.get("contentMediaType") == "application/octet-stream"
        for part in parts
    )
