"""How far one piece of work with a server got, and why it failed, in sentences that show no secret.

Deliberately absent: what to do about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.addresses import AddressRefused, RedirectRefused
from folkmoot.tools.bodies import BodyTooLarge
from folkmoot.tools.mcp.texts import shortened

# Ours, outside the codes that JSON-RPC reserves: put in place of an answer that is too large to be read.
ANSWER_TOO_LARGE = -31_901
_MAX_SAID = 1_000
_TOO_LARGE = "gave an answer that is too large, which was not read; what it did is done. Ask for less at once."
_ADVICE = {
    401: "The credentials are missing or were not accepted; check the authentication header and its secret.",
    403: "The credentials do not permit it; check the authentication header and its secret.",
    404: "Check the path of the URL.",
    405: "Check the path of the URL: an MCP endpoint (streamable HTTP) takes POST.",
    429: "It was asked too often; try again later.",
}


@dataclass(slots=True)
class Trace:
    """One attempt. `is_asked`: the call was handed to the connection. `is_sent`: it left, and may have had its effect.

    `status`, `media_type`: of the last response over HTTP; `breach`: what broke off its body.
    """

    is_asked: bool = False
    is_sent: bool = False
    status: int | None = None
    media_type: str = ""
    breach: Exception | None = None


class ServerFailure(Exception):
    """The server was not reached or did not answer as it should. The message goes on after 'The server': 'cannot be reached…'.

    `is_worth_another`: the connection was lost, and a new one may do. `is_answer`: the server refused; nothing is unknown.
    `aside`: what a process wrote last, for operators and not for models.
    """

    def __init__(
        self, message: str, *, is_worth_another: bool = False, is_answer: bool = False, aside: str = ""
    ) -> None:
        super().__init__(message)
        self.is_worth_another = is_worth_another
        self.is_answer = is_answer
        self.aside = aside


class Changed(Exception):
    """The tool is not what the run is pinned to, and was not called. The message is a clause after 'it'."""


@contextmanager
def explained(trace: Trace) -> Iterator[None]:
    """What a block of work with a server raises becomes a ServerFailure. A cancellation stays one, also where the library's
    groups of tasks lost it among failures of their own; so do our own errors."""
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        yield
    except (Exception, BaseExceptionGroup) as error:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError from None
        leaves = tuple(_leaves(error))
        for leaf in leaves:
            if not isinstance(leaf, Exception):
                raise leaf from None
        for kind in (ServerFailure, Changed, ConnectorFault):
            for leaf in leaves:
                if isinstance(leaf, kind) and not isinstance(leaf, AddressRefused):
                    raise leaf from None
        raise _failure(leaves, trace) from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _failure(leaves: Iterable[BaseException], trace: Trace) -> ServerFailure:
    found = [*leaves, *((trace.breach,) if trace.breach is not None else ())]
    for kind in _ORDER:
        for leaf in found:
            if isinstance(leaf, kind):
                return _explained(leaf, trace)
    return ServerFailure(f"could not be worked with ({type(found[0]).__name__}).")


_ORDER = (AddressRefused, BodyTooLarge, httpx2.HTTPError, MCPError, ValidationError, OSError, Exception)


def _explained(error: BaseException, trace: Trace) -> ServerFailure:
    match error:
        case RedirectRefused():
            return ServerFailure(f"redirects to where it is not followed. {error}", is_answer=True)
        case AddressRefused():
            trace.is_sent = False
            return ServerFailure(f"is not called. {error}")
        case BodyTooLarge():
            return ServerFailure(_TOO_LARGE, is_answer=True)
        case httpx2.ConnectTimeout():
            trace.is_sent = False
            return ServerFailure("cannot be reached in time; start it, or correct its URL.")
        case httpx2.ConnectError():
            trace.is_sent = False
            return ServerFailure(
                f"cannot be reached ({_said(str(error)) or 'no connection'}); start it, or correct its URL."
            )
        case httpx2.HTTPError():
            return ServerFailure(f"broke off the connection ({type(error).__name__}).", is_worth_another=True)
        case MCPError():
            return _refused(error, trace)
        case TimeoutError():
            return ServerFailure("did not answer in time.")
        case ValidationError():
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(part) for part in fault["loc"])
            said = _said(f"at {place}: {fault['msg']}")
            return ServerFailure(f"gave an answer that does not follow the protocol ({said}).")
        case ValueError() | TypeError() | KeyError() | RecursionError():
            return ServerFailure("gave an answer that does not follow the protocol.")
        case _:
            return ServerFailure(f"could not be worked with ({type(error).__name__}).")


def _refused(error: MCPError, trace: Trace) -> ServerFailure:
    said = _said(error.message)
    if error.code == ANSWER_TOO_LARGE:
        return ServerFailure(_TOO_LARGE, is_answer=True)
    if trace.status is not None and trace.status >= 400:
        return _rejected(trace, said)
    if trace.status is not None and 300 <= trace.status < 400:
        return ServerFailure(f"redirects. {said}", is_answer=True)
    if trace.status == 200 and trace.media_type not in ("application/json", "text/event-stream"):
        kind = f"'{trace.media_type}'" if trace.media_type else "a response without a media type"
        return ServerFailure(f"answered with {kind}: that is no MCP endpoint (streamable HTTP). Check the URL.")
    if error.code == CONNECTION_CLOSED:
        return ServerFailure("broke off the connection.", is_worth_another=True)
    if error.code == REQUEST_TIMEOUT:
        return ServerFailure("did not answer in time.")
    return ServerFailure(f"refused it (error {error.code}): {said}", is_answer=True)


def _rejected(trace: Trace, said: str) -> ServerFailure:
    status = trace.status or 0
    # A session that the server no longer knows is answered with 404.
    is_lost = status == 404 and said == "Session terminated"
    if status < 500:
        trace.is_sent = False
    name = HTTPStatus(status).phrase if status in HTTPStatus.__members__.values() else ""
    sentence = f"answered {f'{status} {name}'.strip()}. {_ADVICE.get(status, '')}".strip()
    if said not in ("Server returned an error response", "Not Found", "Session terminated"):
        sentence = f"{sentence} It says: {said}"
    return ServerFailure(sentence, is_worth_another=is_lost, is_answer=status < 500)


def _said(text: str) -> str:
    return shortened(text.strip(), _MAX_SAID)
