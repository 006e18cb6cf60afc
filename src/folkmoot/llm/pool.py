"""One pool of connections for all providers, keys and URLs of a process; opened at the first call.

Deliberately absent: retries, headers and keys.
"""

from __future__ import annotations

import httpx2

_CONNECT_SECONDS = 10.0
_MOST_CONNECTIONS = 1000


class Pool:
    """`silence_seconds`: how long a provider may send nothing before a call counts as timed out."""

    def __init__(self, *, silence_seconds: float = 120.0) -> None:
        self.silence_seconds = silence_seconds
        self._http: httpx2.AsyncClient | None = None

    @property
    def http(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self.silence_seconds, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(
                    max_connections=_MOST_CONNECTIONS, max_keepalive_connections=_MOST_CONNECTIONS // 4
                ),
            )
        return self._http

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
