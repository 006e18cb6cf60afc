"""A bound on bodies, by the length that is announced and by the bytes that come."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folkmoot.api.problems import problem

BODY_BYTES = 8 * 1024 * 1024
_REFUSAL = f"A body may have {BODY_BYTES // (1024 * 1024)} MiB at most; send less at once."


class BodyLimit:
    """An ASGI wrapper that answers 413 to a body of more than BODY_BYTES; no more than that is ever held."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > BODY_BYTES:
            # The connection stays open: the server discards the rest, so that a client that only sends still hears the answer.
            return await problem(413, _REFUSAL, code="too_large")(scope, receive, send)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > BODY_BYTES:
                raise HTTPException(413, _REFUSAL)  # the one kind that a route's reading of its body lets through
            return message

        await self._app(scope, counted, send)
