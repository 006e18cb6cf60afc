"""The request of a call, built from what the operation says and from nothing else. The base URL is the connector's alone.

Deliberately absent: sending, and checks of values against the schema, which were made before.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from folkmoot.domain.json_text import visible
from folkmoot.domain.operations import Argument, OpenApiDescriptor
from folkmoot.tools.openapi.parameters import is_json
from folkmoot.tools.openapi.request_bodies import FORM, MULTIPART
from folkmoot.tools.openapi.styles import (
    Pair,
    UnfitArguments,
    cookie_text,
    field_texts,
    header_text,
    json_text,
    path_text,
    query_pairs,
)

Json = Any

_TEMPLATE = re.compile(r"\{([^{}/]+)\}")
_LITERAL = "/%:@!$&'()*+,;=~"
_HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None


def build(
    base_url: str, descriptor: OpenApiDescriptor, arguments: Mapping[str, Json], *, headers: Mapping[str, str]
) -> BuiltRequest:
    """The request. `headers`: the connector's own, which no argument replaces. Raises UnfitArguments."""
    given = _given(descriptor, arguments)
    query = "&".join(f"{name}={value}" for name, value in _pairs(given, "query"))
    content, content_type = _content(descriptor, given)
    made: dict[str, str] = {"Accept": "application/json, */*;q=0.8", "User-Agent": "folkmoot"}
    if content_type is not None:
        made["Content-Type"] = content_type
    _put_headers(made, given)
    _put(made, headers)
    url = f"{base_url.rstrip('/')}{_path(descriptor.path, given)}"
    return BuiltRequest(descriptor.method, f"{url}?{query}" if query else url, made, content)


def _given(descriptor: OpenApiDescriptor, arguments: Mapping[str, Json]) -> list[tuple[Argument, Json]]:
    known = {argument.name: argument for argument in descriptor.arguments}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        shown = ", ".join(sorted(known)) or "none"
        raise UnfitArguments(f"There is no argument '{visible(unknown[0])[:80]}'; take it out. There are: {shown}.")
    for name in descriptor.parameters.get("required", ()):
        if name in known and name not in arguments:
            raise UnfitArguments(f"The argument '{name}' is missing; send it.")
    return [(argument, arguments[name]) for name, argument in known.items() if name in arguments]


def _path(path: str, given: list[tuple[Argument, Json]]) -> str:
    texts = {argument.wire_name: path_text(argument, value) for argument, value in given if argument.place == "path"}
    parts: list[str] = []
    for index, part in enumerate(_TEMPLATE.split(path)):
        if index % 2 == 0:
            parts.append(quote(part, safe=_LITERAL))
        elif part in texts:
            parts.append(texts[part])
        else:
            raise UnfitArguments(f"The argument for '{part[:60]}' of the path is missing; send it.")
    made = "".join(parts)
    if any(step in (".", "..") for step in made.split("/")):
        raise UnfitArguments("The arguments would make a step '.' or '..' of the path; change them.")
    return made


def _pairs(given: list[tuple[Argument, Json]], place: str) -> list[Pair]:
    """Pairs of a query or a form. A free object that is spread out must not say again what another argument says."""
    made: list[Pair] = []
    own = {quote(argument.wire_name, safe="") for argument, _ in given if argument.place == place}
    for argument, value in given:
        if argument.place != place:
            continue
        pairs = list(query_pairs(argument, value))
        if isinstance(value, dict) and argument.explode and argument.style == "form":
            clash = next((name for name, _ in pairs if name in own), None)
            if clash is not None:
                raise UnfitArguments(
                    f"'{argument.name}' has a field '{clash[:60]}', which is an argument itself; take it out."
                )
        made += pairs
    return made


def _put_headers(made: dict[str, str], given: list[tuple[Argument, Json]]) -> None:
    cookies = [cookie_text(argument, value) for argument, value in given if argument.place == "cookie"]
    if any(cookies):
        made["Cookie"] = "; ".join(cookie for cookie in cookies if cookie)
    for argument, value in given:
        if argument.place == "header":
            text = header_text(argument, value)
            if text is not None:
                _put(made, {argument.wire_name: text})


def _put(made: dict[str, str], headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise UnfitArguments(f"The value for the header '{name[:60]}' holds what no header can; correct it.")
        for other in [other for other in made if other.lower() == name.lower()]:
            del made[other]
        made[name] = value


def _content(descriptor: OpenApiDescriptor, given: list[tuple[Argument, Json]]) -> tuple[bytes | None, str | None]:
    """The body and its type; null where none is sent."""
    media_type = descriptor.body_type
    inside = [(argument, value) for argument, value in given if argument.place in ("field", "body")]
    if media_type is None or (not inside and not descriptor.is_body_required):
        return None, None
    kind = media_type.partition(";")[0].strip().lower()
    if kind == FORM:
        return "&".join(f"{name}={value}" for name, value in _form_pairs(inside)).encode(), media_type
    if kind == MULTIPART:
        boundary = secrets.token_hex(16)
        return _multipart(inside, boundary), f"{MULTIPART}; boundary={boundary}"
    whole = next((value for argument, value in inside if argument.place == "body"), None)
    is_whole = any(argument.place == "body" for argument in descriptor.arguments)
    value = whole if is_whole else {argument.wire_name: inner for argument, inner in inside}
    if is_json(media_type):
        return json_text(value).encode(), media_type
    if not isinstance(value, str):
        raise UnfitArguments("'body' is sent as text; send a string.")
    return visible(value).encode(), media_type if "charset" in media_type else f"{media_type}; charset=utf-8"


def _form_pairs(inside: list[tuple[Argument, Json]]) -> list[Pair]:
    styled = [(argument, value) for argument, value in inside if not _is_plain(argument)]
    made = _pairs(styled, "field")
    for argument, value in inside:
        if _is_plain(argument):
            made += [
                (quote(argument.wire_name, safe=""), quote(text, safe="")) for text in field_texts(argument, value)
            ]
    return made


def _is_plain(argument: Argument) -> bool:
    """Whether a form's field is sent value by value, objects as JSON: what it is without a style of its own."""
    return argument.style == "form" and argument.explode and not argument.allow_reserved


def _multipart(inside: list[tuple[Argument, Json]], boundary: str) -> bytes:
    lines: list[str] = []
    for argument, value in inside:
        name = argument.wire_name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        for text in field_texts(argument, value):
            lines += [f"--{boundary}", f'Content-Disposition: form-data; name="{name}"']
            if argument.media_type is not None or isinstance(value, dict):
                lines.append(f"Content-Type: {argument.media_type or 'application/json'}")
            lines += ["", text]
    return "\r\n".join([*lines, f"--{boundary}--", ""]).encode()
