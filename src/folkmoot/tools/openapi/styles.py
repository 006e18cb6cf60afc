"""Values of arguments as text, in the styles of OpenAPI (RFC 6570), percent-encoded so that none ends what it stands in.

Null is no value and is left out. Deliberately absent: bodies in JSON, where null is a value (`requests`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from folkmoot.domain.json_text import visible
from folkmoot.domain.operations import Argument

Json = Any
Pair = tuple[str, str]

_RESERVED = ":/?@!$'()*,;"  # of allowReserved, without what would end the value or be read as a blank
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_MAX_DECODED = 4


class UnfitArguments(Exception):
    """The arguments cannot be sent as the operation describes them; the message is a sentence. Nothing was sent."""


def json_text(value: Json) -> str:
    return visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def path_text(argument: Argument, value: Json) -> str:
    """What stands in the path for a value; never more than one step of it. Raises UnfitArguments."""
    if argument.media_type is not None:
        return _step(argument, _content(argument, value))
    name = quote(argument.wire_name, safe="")
    start, joint = {"label": (".", "."), "matrix": (";", ";")}.get(argument.style, ("", ","))
    if isinstance(value, dict):
        pairs = [(_step(argument, key), _step(argument, _scalar(argument, inner))) for key, inner in _present(value)]
        if argument.explode:
            return _not_empty(argument, pairs and start + joint.join(f"{key}={inner}" for key, inner in pairs))
        parts = [part for pair in pairs for part in pair]
    elif isinstance(value, list):
        parts = [_step(argument, _scalar(argument, inner)) for inner in value if inner is not None]
    else:
        parts = [] if value in (None, "") else [_step(argument, _scalar(argument, value))]
    is_exploded = argument.explode and isinstance(value, list)
    if argument.style == "matrix":
        joined = [f";{name}={part}" for part in parts] if is_exploded else [f";{name}={','.join(parts)}"]
        return _not_empty(argument, parts and "".join(joined))
    return _not_empty(argument, parts and start + (joint if is_exploded else ",").join(parts))


def query_pairs(argument: Argument, value: Json) -> Iterator[Pair]:
    """Names and values of a query or a form, encoded. Raises UnfitArguments."""
    name = quote(argument.wire_name, safe="")
    if value is None:
        return
    if argument.media_type is not None:
        yield name, _encoded(argument, _content(argument, value))
    elif argument.style == "deepObject" and isinstance(value, dict | list):
        yield from _deep(argument, argument.wire_name, value)
    elif isinstance(value, dict):
        if argument.explode:
            yield from (
                (quote(visible(key), safe=""), _encoded(argument, _scalar(argument, inner)))
                for key, inner in _present(value)
            )
        else:
            flat = [part for key, inner in _present(value) for part in (key, _scalar(argument, inner))]
            yield name, _DELIMITERS.get(argument.style, ",").join(_encoded(argument, part) for part in flat)
    elif isinstance(value, list):
        parts = [_encoded(argument, _scalar(argument, inner)) for inner in value if inner is not None]
        if argument.explode:
            yield from ((name, part) for part in parts)
        elif parts:
            yield name, _DELIMITERS.get(argument.style, ",").join(parts)
    else:
        yield name, _encoded(argument, _scalar(argument, value))


def header_text(argument: Argument, value: Json) -> str | None:
    """A header's value; null where there is none. Raises UnfitArguments."""
    if argument.media_type is not None:
        text = None if value is None else _content(argument, value)
    elif isinstance(value, dict):
        sign = "=" if argument.explode else ","
        text = ",".join(f"{key}{sign}{_scalar(argument, inner)}" for key, inner in _present(value))
    elif isinstance(value, list):
        text = ",".join(_scalar(argument, inner) for inner in value if inner is not None)
    else:
        text = None if value is None else _scalar(argument, value)
    if text is not None and (not text.isascii() or _CONTROL.search(text)):
        raise UnfitArguments(
            f"'{argument.name}' is sent in a header, which holds plain ASCII in one line; change the value."
        )
    return text


def cookie_text(argument: Argument, value: Json) -> str | None:
    """`name=value` of a cookie; null where there is none. Raises UnfitArguments."""
    if value is None:
        return None
    if argument.media_type is None and argument.explode and isinstance(value, dict | list):
        raise UnfitArguments(
            f"'{argument.name}' is sent as one cookie, which holds no list and no object; send one value."
        )
    plain = Argument(argument.name, argument.wire_name, "cookie", "form", explode=False, media_type=argument.media_type)
    return next((f"{argument.wire_name}={text}" for _, text in query_pairs(plain, value)), None)


def field_texts(argument: Argument, value: Json) -> list[str]:
    """The values of a form's field that has no style of its own: each of a list by itself, objects as JSON."""
    values = value if isinstance(value, list) and argument.media_type is None else [value]
    return [
        _content(argument, inner) if argument.media_type else _loose(inner) for inner in values if inner is not None
    ]


def _loose(value: Json) -> str:
    return visible(value) if isinstance(value, str) else json_text(value)


def _content(argument: Argument, value: Json) -> str:
    if (argument.media_type or "").lower().startswith("text/"):
        return _scalar(argument, value)
    return json_text(value)


def _scalar(argument: Argument, value: Json) -> str:
    if isinstance(value, dict | list):
        raise UnfitArguments(f"'{argument.name}' holds lists or objects inside its parts, which its style cannot send.")
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _present(value: dict[str, Json]) -> list[tuple[str, Json]]:
    return [(key, inner) for key, inner in value.items() if inner is not None]


def _encoded(argument: Argument, text: str) -> str:
    return quote(visible(text), safe=_RESERVED if argument.allow_reserved else "")


def _deep(argument: Argument, name: str, value: Json) -> Iterator[Pair]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if "[" in str(key) or "]" in str(key):
                raise UnfitArguments(
                    f"'{argument.name}' has a name with a bracket inside, which its style cannot send."
                )
            yield from _deep(argument, f"{name}[{visible(str(key))}]", inner)
    elif value is not None:
        yield quote(name, safe=""), _encoded(argument, _scalar(argument, value))


def _step(argument: Argument, text: str) -> str:
    """One step of a path. What some server on the way might decode into another step is refused."""
    decoded = text
    for _ in range(_MAX_DECODED):
        if _CONTROL.search(decoded) or any(part in (".", "..") for part in re.split(r"[/\\]", decoded)):
            raise UnfitArguments(
                f"'{argument.name}' is one step of a path; '.', '..' and control characters are not sent in it."
            )
        decoded = unquote(decoded)
    return quote(visible(text), safe="")


def _not_empty(argument: Argument, text: str | list[Any]) -> str:
    if not isinstance(text, str) or not text:
        raise UnfitArguments(f"'{argument.name}' is a step of the path and must not be empty.")
    return text
