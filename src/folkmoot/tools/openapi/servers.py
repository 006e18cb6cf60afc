"""The base URL of a document: its first server, with its variables filled in and relative ones resolved.

Deliberately absent: a choice among several servers; whoever defines the connector may give another base URL.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

Json = Any

MAX_URL = 2_000
_VARIABLE = re.compile(r"\{([^{}]+)\}")


def base_url(servers: Json, source: str | None) -> str | None:
    """The URL without a slash at its end; null if the document names none that can be called. `source`: the document's URL."""
    first = servers[0] if isinstance(servers, list) and servers else {"url": "/"}
    template = first.get("url") if isinstance(first, dict) else None
    if not isinstance(template, str) or len(template) > MAX_URL:
        return None
    variables = first.get("variables")
    known = variables if isinstance(variables, dict) else {}
    url = _VARIABLE.sub(lambda match: _default(known.get(match[1])), template)
    try:
        return _checked(urljoin(source, url) if source else url)
    except ValueError:
        return None


def _default(variable: Json) -> str:
    """What is missing stays visible as a brace, which no URL has."""
    default = variable.get("default") if isinstance(variable, dict) else None
    return str(default) if isinstance(default, str | int) else "{"


def _checked(url: str) -> str | None:
    parts = urlsplit(url)
    is_plain = url.isascii() and url.isprintable() and not any(sign in url for sign in ' {}"<>\\')
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or not is_plain:
        return None
    if parts.query or parts.fragment or any(part in (".", "..") for part in parts.path.split("/")):
        return None
    return url.rstrip("/")
