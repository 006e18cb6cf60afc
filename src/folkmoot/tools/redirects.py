"""Where a redirect leads, if it is followed at all. What is secret, and what a call sends, never goes on to another host.

Deliberately absent: sending, and the check of the address (`addresses`).
"""

from __future__ import annotations

import httpx2

MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_READING = ("GET", "HEAD")
# All else may be a credential: any header can be one.
_CARRIED = ("accept", "accept-language", "user-agent")
_OF_BODY = ("content-length", "content-type", "content-encoding", "transfer-encoding")


def next_hop(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | str | None:
    """The request that a redirect asks for; null where the response stands as it is; a sentence where it must not be followed.

    Reading calls follow to other hosts without credentials. Others follow only 303 (by reading), and 307 and 308 within their
    own host; else the redirect itself is the answer.
    """
    location = response.headers.get("Location")
    if response.status_code not in _REDIRECTS or not location:
        return None
    url = _target(request.url, location)
    if url is None:
        return f"'{request.url.host}' redirects to what is no URL."
    is_home = _is_same_origin(request.url, url)
    is_reading = request.method in _READING or response.status_code == 303
    if not is_reading and not (response.status_code in (307, 308) and is_home and _is_replayable(request)):
        return None
    if request.url.scheme == "https" and url.scheme != "https":
        return f"'{request.url.host}' redirects from https to '{url.scheme[:20]}', which is not followed."
    return _onward(request, url, is_home=is_home, is_reading=is_reading)


def _onward(request: httpx2.Request, url: httpx2.URL, *, is_home: bool, is_reading: bool) -> httpx2.Request:
    headers = request.headers.copy()
    headers.pop("Host", None)
    if not is_home:
        headers = httpx2.Headers({name: headers[name] for name in _CARRIED if name in headers})
    method = request.method if request.method == "HEAD" or not is_reading else "GET"
    if not is_reading:
        return httpx2.Request(method, url, headers=headers, content=request.content, extensions=request.extensions)
    for name in _OF_BODY:
        headers.pop(name, None)
    return httpx2.Request(method, url, headers=headers, extensions=request.extensions)


def _target(base: httpx2.URL, location: str) -> httpx2.URL | None:
    try:
        url = base.join(location)
        # A fragment stays with the caller; a user in a Location would become a credential of the server's choice.
        return url.copy_with(fragment=None, userinfo=b"")
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        return None


def _is_same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


def _is_replayable(request: httpx2.Request) -> bool:
    return isinstance(request.stream, httpx2.ByteStream)
