"""Fetches the documents that describe services, over connections that the address guard has passed.

Deliberately absent: what a document says (`tools.openapi`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx2

from folkmoot.domain.connectors import MAX_DOCUMENT_BYTES
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.addresses import Guard, guarded_client

_ACCEPT = "application/json, application/yaml;q=0.9, text/yaml;q=0.8, */*;q=0.5"


async def fetch_document(guard: Guard, url: str, *, headers: Mapping[str, str], limit_seconds: float) -> bytes:
    """The body that the address answers with. Raises ConnectorFault that shows neither headers nor the address's query."""
    where = url.partition("?")[0][:200]
    sent = {"Accept": _ACCEPT, **headers}
    try:
        async with (
            asyncio.timeout(limit_seconds),
            guarded_client(guard, headers=sent, timeout=limit_seconds, limit_bytes=MAX_DOCUMENT_BYTES) as client,
            client.stream("GET", url) as answer,
        ):
            _check_head(answer, where)
            return await answer.aread()
    except TimeoutError:
        raise ConnectorFault(f"{where} did not answer within {limit_seconds:g} seconds.") from None
    except httpx2.TimeoutException:
        raise ConnectorFault(f"{where} did not answer in time.") from None
    except httpx2.HTTPError as error:
        raise ConnectorFault(
            f"{where} cannot be read ({type(error).__name__}): correct the address, or start the server."
        ) from None


def _check_head(answer: httpx2.Response, where: str) -> None:
    """Before the body, which may have no end."""
    if answer.status_code != httpx2.codes.OK:
        raise ConnectorFault(
            f"{where} answered with the status {answer.status_code} and no document; correct the address."
        )
    if answer.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "text/event-stream":
        raise ConnectorFault(
            f"{where} answers with a stream of events and no document; correct the address. An MCP server is a connector of the kind McpConnector."
        )
