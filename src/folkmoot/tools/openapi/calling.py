"""One call of an operation over HTTP: built, sent once, answered within its limits of time and size.

Whether a failed call may have been sent is seen at the connection, not guessed from the kind of failure. Deliberately absent:
retries, the check that the address may be called (the client's), and approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from folkmoot.domain.calls import CallBounds, CallResult
from folkmoot.domain.json_text import visible
from folkmoot.domain.operations import Http, OpenApiDescriptor, OperationTarget
from folkmoot.tools.addresses import AddressRefused
from folkmoot.tools.bodies import read_body
from folkmoot.tools.functions import UNKNOWN_OUTCOME
from folkmoot.tools.openapi.answers import result_of
from folkmoot.tools.openapi.requests import BuiltRequest, build
from folkmoot.tools.openapi.styles import UnfitArguments
from folkmoot.tools.sent_secrets import SentSecrets

Json = Any

IDEMPOTENCY_KEY = "Idempotency-Key"


@dataclass(slots=True)
class _Call:
    """One call under way, and how far it got. `status`: of the answer, once its head is there."""

    bounds: CallBounds
    secrets: SentSecrets
    is_sent: bool = False
    status: int | None = None

    async def answered(self, client: httpx2.AsyncClient, built: BuiltRequest) -> CallResult:
        request = client.build_request(
            built.method,
            built.url,
            headers=built.headers,
            content=built.content,
            timeout=httpx2.Timeout(self.bounds.limit_seconds),
            extensions={"trace": self._trace},
        )
        response = await client.send(request, stream=True)
        self.status = response.status_code
        body = await read_body(response, limit_bytes=self.bounds.limit_bytes)
        return result_of(
            response,
            body,
            limit_bytes=self.bounds.limit_bytes,
            is_repeatable=self.bounds.is_repeatable,
            secrets=self.secrets,
        )

    def failed(self, what: str) -> CallResult:
        """A failure on the way, as far as the call got."""
        if self.status is not None:
            return self.error(f"{what}, after the server had answered {self.status}; its answer is not known whole.")
        if not self.is_sent:
            return self.error(f"{what}. Nothing was sent.")
        if self.bounds.is_repeatable:
            return self.error(f"{what}. The call can be made again.")
        return self.error(f"{what}; what came of the call is unknown: {UNKNOWN_OUTCOME}.", unknown=True)

    def error(self, text: str, *, unknown: bool = False) -> CallResult:
        return CallResult(text=self.secrets.masked(visible(text)), is_error=True, unknown=unknown)

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.is_sent = True


async def call(
    client: httpx2.AsyncClient,
    target: OperationTarget,
    arguments: Mapping[str, Json],
    *,
    headers: Mapping[str, str],
    bounds: CallBounds,
) -> CallResult:
    """Make the call. Whatever goes wrong is a result; only cancellation is raised.

    `client`: a guarded one. `arguments`: the final ones, by their names in the descriptor. `headers`: with the secrets, sent
    as they are and masked in the result.
    """
    one = _Call(bounds, SentSecrets(headers.values()))
    try:
        request = _built(target, arguments, {IDEMPOTENCY_KEY: bounds.idempotency_key, **headers})
        async with asyncio.timeout(bounds.limit_seconds):
            return await one.answered(client, request)
    except UnfitArguments as error:
        return one.error(f"The arguments do not fit. {error} Nothing was sent.")
    except TimeoutError:
        return one.failed(f"The call took longer than its {bounds.limit_seconds:g} seconds")
    except AddressRefused as error:
        return one.failed(str(error).rstrip("."))
    except httpx2.TimeoutException:
        return one.failed("The server did not answer in time")
    except httpx2.HTTPError as error:
        return one.failed(f"The connection failed ({_said(error)})")
    except Exception as error:  # a document may hold what no layer below expects
        return one.failed(f"The call failed ({type(error).__name__})")


def _built(target: OperationTarget, arguments: Mapping[str, Json], headers: Mapping[str, str]) -> BuiltRequest:
    if not isinstance(target.server, Http) or not isinstance(target.descriptor, OpenApiDescriptor):
        raise UnfitArguments("The operation is none of a service over HTTP.")
    if "?" in target.server.url or "#" in target.server.url:
        raise UnfitArguments("The connector's base URL has a '?' or '#'; correct the connector.")
    return build(target.server.url, target.descriptor, arguments, headers=headers)


def _said(error: httpx2.HTTPError) -> str:
    message = visible(str(error)).strip().rstrip(".")[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
