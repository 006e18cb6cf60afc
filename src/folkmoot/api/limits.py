"""A bound on bodies, by the length that is announced and by the bytes that come."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folkmoot.api.problems import problem

MIB = 1024 * 1024
BODY_BYTES = 8 * MIB
DOCUMENT_BYTES = 32 * MIB  # where an OpenAPI document is uploaded: some have more than ten

INBOUND_BYTES = 2 * MIB  # of somebody without a key
_INBOUND = re.compile(r"/channels/[^/]+/inbound")
_UPLOAD = re.compile(r"/namespaces/[^/]+/connectors/open-api(/by-name/[^/]+)?")


def _bound(scope: Scope) -> int:
    if _INBOUND.fullmatch(scope["path"]):
        return INBOUND_BYTES
    return DOCUMENT_BYTES if _UPLOAD.fullmatch(scope["path"]) else BODY_BYTES


def _refusal(bound: int) -> str:
    return f"A body may have {bound // MIB} MiB at most; send less at once."


class BodyLimit:
    """An ASGI wrapper that answers 413 to a body beyond its bound (BODY_BYTES, INBOUND_BYTES, DOCUMENT_BYTES); no more than that is ever held."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        bound = _bound(scope)
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > bound:
            # The connection stays open: the server discards the rest, so that a client that only sends still hears the answer.
            return await problem(413, _refusal(bound), code="too_large")(scope, receive, send)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > bound:
                # The one kind of error that a route's reading of its body lets through.
                raise HTTPException(413, _refusal(bound))
            return message

        await self._app(scope, counted, send)
