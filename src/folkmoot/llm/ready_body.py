"""A body that is built for the wire, posted as it is: an SDK would copy it, walk it and check it again.

Deliberately absent: retries, redirects, and what an answer means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2

Json = Any


def encoded(body: Json) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which no server reads, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def ready_request(
    http: httpx2.AsyncClient, url: str, body: Json, *, headers: Mapping[str, str], timeout: object = None
) -> httpx2.Request:
    """`timeout`: seconds for each wait but that for the connection; any other value leaves the pool's."""
    within: Any = httpx2.USE_CLIENT_DEFAULT
    if isinstance(timeout, int | float):
        within = httpx2.Timeout(timeout, connect=http.timeout.connect)
    return http.build_request("POST", url, headers=headers, content=encoded(body), timeout=within)


def error_body(response: httpx2.Response) -> Json:
    """What came with an error: its JSON, or its text where it is none."""
    try:
        return response.json()
    except ValueError:
        return response.text
