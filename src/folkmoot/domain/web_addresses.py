"""Addresses of the web as somebody gives them, to be called later: what may be one at all.

Deliberately absent: where one leads; the guard sees to that at every connection.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

MOST_CHARACTERS = 2_000


def web_address(url: str) -> SplitResult | None:
    """The parts of an http or https URL with a host, of at most 2,000 printable characters; null for anything else."""
    return http_url(url) if len(url) <= MOST_CHARACTERS and url.isprintable() else None


def http_url(url: str) -> SplitResult | None:
    """The parts of an http or https URL with a host, whatever its length; null for anything else."""
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_whole else None
