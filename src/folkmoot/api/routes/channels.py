"""What comes in over channels. Public: a channel's own app tells from its secrets whether it is genuine, and the caller has no key.

Channels themselves are definitions (`definitions`).
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from fastapi import APIRouter, Request, Response
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from folkmoot.api.doors import Doorway
from folkmoot.api.problems import problem_of, responses
from folkmoot.domain.channels import HttpProblem, InboundRequest

router = APIRouter(tags=["channels"])

_BODY_SECONDS = 20.0
# then the answer goes: Slack waits three seconds for it and sends a click again after that
_TELLING_SECONDS = 1.5
_BODY = {
    "requestBody": {
        "description": "As the channel's app has it, with the headers that prove where it comes from.",
        "required": True,
        "content": {
            "application/json": {"schema": {}},
            "application/x-www-form-urlencoded": {"schema": {"type": "object"}},
            "message/rfc822": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post("/channels/{channel_id}/inbound", responses=responses(400, 401, 404, 413, 422, 503), openapi_extra=_BODY)
async def take_in(doors: Doorway, request: Request, channel_id: UUID) -> Response:
    """Take in a message of a channel's other side. What is not genuine has no effect (401); what is sent again is answered the same."""

    async def read() -> InboundRequest:
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.body()
        except TimeoutError:
            raise HTTPException(
                400, f"The body did not come within {_BODY_SECONDS:g} seconds; send it again."
            ) from None
        return InboundRequest({name.lower(): value for name, value in request.headers.items()}, body)

    taken = await doors.inbound(channel_id, read)
    if taken.telling is not None:
        await asyncio.wait({taken.telling}, timeout=_TELLING_SECONDS)
    answered = taken.answered
    if isinstance(answered, HttpProblem):
        response = problem_of(answered.status, answered.detail)
    else:
        response = Response(answered.body, answered.status, media_type=answered.content_type)
    response.background = BackgroundTask(_to_its_end, taken.telling)
    return response


async def _to_its_end(telling: asyncio.Task[None] | None) -> None:
    """A server that is to stop waits for it as for any request, and says what failed unexpectedly."""
    if telling is not None:
        await telling
