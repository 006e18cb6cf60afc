"""The guard in front of every connection that leaves for an address somebody gave: nothing inside is reached unless allowed.

A name is resolved once, every address it has is checked, and the connection goes to one that was checked, so that a second
answer of the name server changes nothing. Redirects pass the same way. Deliberately absent: proxies and anything else from
the environment; a cookie jar, which would carry one caller's session to the next; retries.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.bodies import ACCEPTED_ENCODINGS, DecodedStream
from folkmoot.tools.networks import Address, is_public, parsed, read_allowance
from folkmoot.tools.redirects import MAX_REDIRECTS, next_hop

__all__ = ["AddressRefused", "Guard", "RedirectRefused", "guarded_client"]

SETTING = "FOLKMOOT_ALLOW_ADDRESSES"
MAX_HEADERS = 1_000
MAX_BODY_BYTES = 33_554_432
_TRIED = 4  # addresses of one name
_PORTS = {"http": 80, "https": 443}

Resolve = Callable[[str, int], Awaitable[list[str]]]


class AddressRefused(ConnectorFault):
    """The address is not one to connect to. The message names the host and what to set; nothing was sent there."""


class RedirectRefused(AddressRefused):
    """A redirect leads where it is not followed. What redirected has been sent."""


async def _resolved(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise httpcore2.ConnectError(f"The host '{host[:100]}' has no address; correct the name.") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """What may be connected to: public addresses, and what the operator allows inside.

    `allow`: networks, addresses or host names, each with a port or without (`10.0.0.0/8`, `[::1]:8080`, `crm.internal:443`);
    raises UnfitAllowance for what is none of these. `resolve` gives the addresses of a name, in text.
    """

    def __init__(self, allow: tuple[str, ...] = (), *, resolve: Resolve = _resolved) -> None:
        self._allowed = tuple(read_allowance(entry) for entry in allow)
        self._resolve = resolve

    def check(self, url: str) -> None:
        """Look at a URL without connecting: it is http or https, has a host, no user or password, and no refused address
        written out. Raises AddressRefused. A name's addresses are only looked at when it is connected to."""
        try:
            parts = httpx2.URL(url)
        except (httpx2.InvalidURL, UnicodeError, ValueError):
            raise AddressRefused(f"'{_shown(url)}' is no URL that can be called; correct it.") from None
        if parts.scheme not in _PORTS or not parts.host:
            raise AddressRefused(f"'{_shown(url)}' is not called; give a URL that begins with 'https://' or 'http://'.")
        if parts.userinfo:
            raise AddressRefused(f"The URL of '{parts.host[:100]}' holds a user or password; put them in a secret.")
        address = parsed(parts.host)
        if address is not None:
            self._admit(parts.host, (address,), parts.port or _PORTS[parts.scheme])
        elif parts.host.startswith("[") or any(sign in parts.host for sign in "%:"):
            raise AddressRefused(_refusal(parts.host))

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """The addresses of a host, all of them checked. Raises AddressRefused; httpcore2.ConnectError if there is none."""
        if "%" in host:  # a zone, or a name that somebody else may decode
            raise AddressRefused(_refusal(host))
        literal = parsed(host)
        found = [host] if literal is not None else await self._resolve(host, port)
        checked: list[Address] = []
        for text in found:
            address = parsed(text)
            if address is None:
                raise AddressRefused(_refusal(host))
            checked.append(address)
        if not checked:
            raise httpcore2.ConnectError(f"The host '{host[:100]}' has no address; correct the name.")
        self._admit(host, checked, port)
        return tuple(checked)

    def _admit(self, host: str, addresses: Iterable[Address], port: int) -> None:
        name = host.lower().removesuffix(".")
        for address in addresses:
            if is_public(address) or any(allowed.covers(name, address, port) for allowed in self._allowed):
                continue
            raise AddressRefused(_refusal(host))


class _GuardedBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                return await self._connected(host, port, local_address, socket_options)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"'{host[:100]}' took too long to be connected to.") from None

    async def _connected(
        self, host: str, port: int, local_address: str | None, socket_options: Iterable[Any] | None
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError("no address")
        for address in (await self._guard.addresses(host, port))[:_TRIED]:
            try:
                return await self._inner.connect_tcp(
                    str(address), port, local_address=local_address, socket_options=socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        raise AddressRefused("A socket of this machine is not connected to; give an http or https URL.")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests through the guard, follows what redirects may be followed, decodes bodies within their limit."""

    def __init__(self, guard: Guard, *, ssl_context: ssl.SSLContext, limit_bytes: int, connections: int) -> None:
        self._guard = guard
        self._limit_bytes = limit_bytes
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=5.0,
            network_backend=_GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._guard.check(str(request.url))
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._answered(request)
            onward = next_hop(request, response) if request.extensions.get("follows_redirects", True) else None
            if onward is None:
                return response
            await response.aclose()
            if isinstance(onward, str):
                raise RedirectRefused(onward)
            try:
                self._guard.check(str(onward.url))
            except AddressRefused as error:
                raise RedirectRefused(f"'{request.url.host}' redirects. {error}") from None
            request = onward
        raise RedirectRefused(f"'{request.url.host}' redirects more than {MAX_REDIRECTS} times; give the last URL.")

    async def _answered(self, request: httpx2.Request) -> httpx2.Response:
        headers = request.headers.copy()
        headers["Accept-Encoding"] = ACCEPTED_ENCODINGS
        try:
            answer = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise _translated(error) from error
        return await self._opened(answer)

    async def _opened(self, answer: httpcore2.Response) -> httpx2.Response:
        headers = httpx2.Headers(answer.headers)
        try:
            if len(answer.headers) > MAX_HEADERS:
                raise httpx2.RemoteProtocolError(f"The server sends more than {MAX_HEADERS:,} headers.")
            stream = DecodedStream(
                _Translating(answer.stream),
                encoding=headers.get("Content-Encoding", ""),
                limit_bytes=self._limit_bytes,
            )
        except httpx2.HTTPError:
            await answer.aclose()
            raise
        if headers.pop("Content-Encoding", None) is not None:
            headers.pop("Content-Length", None)
        return httpx2.Response(answer.status, headers=headers, stream=stream, extensions=answer.extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Translating:
    """A body whose failures are httpx2's."""

    def __init__(self, source: Any) -> None:
        self._source = source

    async def __aiter__(self) -> Any:
        try:
            async for chunk in self._source:
                yield chunk
        except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
            raise _translated(error) from error

    async def aclose(self) -> None:
        await self._source.aclose()


class _GuardedClient(httpx2.AsyncClient):
    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        # The transport follows redirects; httpx2 itself would carry custom headers to another host.
        options["follow_redirects"] = False
        return await super().send(request, **options)


def guarded_client(
    guard: Guard,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: httpx2.Timeout | float = 30.0,
    auth: httpx2.Auth | None = None,
    limit_bytes: int = MAX_BODY_BYTES,
    connections: int = 100,
    ssl_context: ssl.SSLContext | None = None,
) -> httpx2.AsyncClient:
    """A client all of whose connections pass the guard. Close it when done; several tasks may share one.

    `timeout` in seconds, of each step (connect, read, write); `limit_bytes`: of a response's body after decoding, beyond which
    it raises BodyTooLarge (an httpx2.ReadError). Raises AddressRefused where httpx2 would raise its own errors.
    """
    transport = _GuardedTransport(
        guard, ssl_context=ssl_context or _ssl_context(), limit_bytes=limit_bytes, connections=connections
    )
    return _GuardedClient(
        transport=transport,
        trust_env=False,
        headers=dict(headers or {}),
        timeout=timeout,
        auth=auth,
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
    )


@lru_cache(maxsize=1)
def _ssl_context() -> ssl.SSLContext:
    """Reading the certificates takes longer than most requests: once for all clients."""
    return httpx2.create_ssl_context(trust_env=False)


def _translated(error: Exception) -> httpx2.TransportError:
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    translated: httpx2.TransportError = kind(str(error))
    return translated


def _refusal(host: str) -> str:
    return (
        f"The host '{host[:100]}' is at an address inside, which is not connected to; "
        f"use a public one, or let the operator add it to {SETTING}."
    )


def _shown(url: str) -> str:
    """Scheme and host of a URL; the rest may hold what is secret."""
    try:
        parts = urlsplit(url)
        return (
            f"{parts.scheme}://{parts.hostname or ''}"[:100] if parts.scheme else url.split("@")[-1].split("/")[0][:60]
        )
    except ValueError:
        return "the URL"
