"""What the apps that speak HTTP share: a POST whose failures are the channel's, and JSON, out and in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from folkmoot.channels.channel import ChannelDown, ChannelWorld, HttpReply

_MOST_CHARACTERS = 300


class NotJson(ValueError):
    """The message says where."""


async def post_or_down(
    world: ChannelWorld, url: str, body: bytes, headers: Mapping[str, str], *, who: str
) -> HttpReply:
    """Post, and give what was answered, whatever its status. Raises ChannelDown where there was no answer."""
    try:
        return await world.post(url, body, headers)
    except Exception as error:  # whatever a network may do, a refused address included
        words = str(error)[:_MOST_CHARACTERS] or type(error).__name__
        raise ChannelDown(f"{who} cannot be reached: {words}") from error


def as_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def read_json(body: bytes) -> Any:
    """Raises NotJson; a name that stands twice in an object is refused, since two readers might take two values."""
    try:
        return json.loads(body, object_pairs_hook=_once_each)
    except RecursionError:
        raise NotJson("it is nested too deep") from None
    except UnicodeDecodeError:
        raise NotJson("it is not in UTF-8") from None
    except ValueError as error:
        raise NotJson(str(error)) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands in it twice")
    return found
