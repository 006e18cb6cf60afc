"""The parameters of an operation: where each goes and in which style, or why the operation cannot be called.

Headers that we or HTTP set (credentials among them) are not for a model to choose. Deliberately absent: bodies, and writing
values (`styles`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import unquote

from folkmoot.tools.openapi.references import References, Unsupported, has_unseen, shown
from folkmoot.tools.openapi.schemas import Schemas

Json = Any
Place = Literal["path", "query", "header", "cookie", "field", "body"]

MAX_PARAMETERS = 500
_STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_TEMPLATE = re.compile(r"\{([^{}/]+)\}")
_UNFIT_PATH = re.compile(r"[?#\\\s\x00-\x1f\x7f]")
_SET_BY_US = {
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


@dataclass(frozen=True, slots=True)
class Offered:
    """One value that a call takes, before it has a name for the model. `schema`: as converted."""

    wire_name: str
    place: Place
    schema: Json
    is_required: bool
    style: str = "simple"
    explode: bool = False
    allow_reserved: bool = False
    media_type: str | None = None


def read_parameters(
    item: Json, operation: Json, path: str, *, references: References, schemas: Schemas
) -> list[Offered]:
    """The parameters of a path and of its operation, whose own come first. Raises Unsupported."""
    found: dict[tuple[str, str], dict[str, Json]] = {}
    for owner in (item, operation):
        listed = owner.get("parameters")
        if listed is None:
            continue
        if not isinstance(listed, list) or len(listed) > MAX_PARAMETERS:
            raise Unsupported(f"its parameters are no list of at most {MAX_PARAMETERS}")
        for node in listed:
            parameter = references.resolved(node, "a parameter")
            place, name = str(parameter.get("in")), str(parameter.get("name"))
            found[place, name.lower() if place == "header" else name] = parameter
    offered = [one for parameter in found.values() for one in _read(parameter, schemas)]
    _check_path(path, {one.wire_name for one in offered if one.place == "path"})
    return offered


def is_json(media_type: str) -> bool:
    """Whether the media type is JSON or built on it."""
    bare = media_type.partition(";")[0].strip().lower()
    return bare == "application/json" or bare.endswith("+json")


def _read(parameter: dict[str, Json], schemas: Schemas) -> Iterator[Offered]:
    name, place = parameter.get("name"), parameter.get("in")
    if not isinstance(name, str) or not name or len(name) > 200 or has_unseen(name):
        raise Unsupported("a parameter has no name, or one that is too long or holds characters nobody sees")
    if place not in _STYLES:
        raise Unsupported(f"its parameter '{shown(name, 60)}' is sent in '{shown(place, 40)}', which is not supported")
    if place in ("header", "cookie") and not _TOKEN.fullmatch(name):
        raise Unsupported(f"its parameter '{shown(name, 60)}' has no name that a {place} can have")
    if place == "header" and name.lower() in _SET_BY_US:
        return
    described = parameter.get("description")
    is_required = place == "path" or parameter.get("required") is True
    media_type, schema = _typed(parameter, name)
    converted = schemas.converted(schema)
    if isinstance(converted, dict) and isinstance(described, str) and shown(described, 10):
        converted = {"description": shown(described, 1_000), **converted}
    if media_type is not None:
        yield Offered(name, cast(Place, place), converted, is_required, media_type=media_type)
        return
    style, explode = _styled(parameter, name, str(place))
    reserved = place == "query" and parameter.get("allowReserved") is True
    yield Offered(name, cast(Place, place), converted, is_required, style, explode, reserved)


def _typed(parameter: dict[str, Json], name: str) -> tuple[str | None, Json]:
    """Media type and schema of a parameter."""
    content = parameter.get("content")
    if content is None:
        return None, parameter.get("schema", {})
    if not isinstance(content, dict) or len(content) != 1:
        raise Unsupported(f"its parameter '{shown(name, 60)}' has not one media type")
    media_type, described = next(iter(content.items()))
    if not is_json(media_type) and not media_type.lower().startswith("text/"):
        raise Unsupported(
            f"its parameter '{shown(name, 60)}' is of the media type '{shown(media_type)}', which is not supported"
        )
    return media_type, described.get("schema", {}) if isinstance(described, dict) else {}


def _styled(parameter: dict[str, Json], name: str, place: str) -> tuple[str, bool]:
    style = parameter.get("style", _STYLES[place][0])
    if style not in _STYLES[place]:
        raise Unsupported(
            f"its parameter '{shown(name, 60)}' has the style '{shown(style, 40)}', which a {place} has not"
        )
    explode = parameter.get("explode", style == "form")
    if not isinstance(explode, bool):
        raise Unsupported(f"'explode' of its parameter '{shown(name, 60)}' is neither true nor false")
    return str(style), explode


def _check_path(path: str, given: set[str]) -> None:
    if not path.startswith("/") or _UNFIT_PATH.search(_TEMPLATE.sub("x", path)) or has_unseen(path):
        raise Unsupported("its path does not begin with '/', or holds '?', '#', blanks or what no path has")
    # decoded, since a server on the way may do so
    if any(part in ("", ".", "..") for part in unquote(unquote(path)).rstrip("/").split("/")[1:]):
        raise Unsupported("its path has an empty step, or one of '.' or '..'")
    named = set(_TEMPLATE.findall(path))
    if named != given:
        odd = sorted(named ^ given)[0]
        raise Unsupported(f"'{shown(odd, 60)}' is not both in its path and among its path parameters")
    if any(sign in _TEMPLATE.sub("", path) for sign in "{}"):
        raise Unsupported("its path holds a brace that belongs to no parameter")
