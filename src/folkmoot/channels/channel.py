"""What an app of a channel is, what it is given of the world, and how it says that something did not go.

ChannelError
+-- ChannelDown     not now: the same may go later
+-- ChannelRefused  never, as things are; somebody has to change something
`-- Forged          what came in is not from whom it should be, or is not fresh; it has no effect

Messages are sentences without secrets. Deliberately absent: the apps, and how one is found (`registry`).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from folkmoot.domain.channels import (
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    InboundRequest,
    OutgoingMessage,
    ReceivedAnswer,
    Reception,
)

SLACK_API_URL = "https://slack.com/api/"


class ChannelError(Exception):
    """What is wrong, where, and what to do, in a sentence without secrets."""


class ChannelDown(ChannelError):
    """`retry_after_seconds`: what the other side asks for; null if it says nothing."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ChannelRefused(ChannelError):
    pass


class Forged(ChannelError):
    """`status`: what the inbound address answers, 401 or 403."""

    def __init__(self, message: str, *, status: int = 401) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpReply:
    """`headers`: names in lower case. `body`: as much of it as the limit admits."""

    status: int
    headers: Mapping[str, str]
    body: bytes


Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[HttpReply]]
Connect = Callable[[str, int], Awaitable[socket.socket]]


@dataclass(frozen=True, slots=True)
class ChannelWorld:
    """What an app may use of the world; all of it is the operator's.

    `post` sends a body to a URL, within a time limit and without following redirects, and gives what was answered, its body bounded; it raises
    where there was no answer. `connect` gives a TCP socket connected to a host's checked address, not blocking, the caller's to close.
    Both refuse addresses inside, unless the operator allows them. `tls`: the context for connections that are encrypted.
    """

    connect: Connect
    post: Post
    tls: Callable[[], ssl.SSLContext]
    slack_api_url: str = SLACK_API_URL


@dataclass(frozen=True, slots=True)
class SecretNames:
    """The app's names for its secrets."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


class Channel(Protocol):
    """One app, for all of its channels: each call is given the channel's own setup.

    `app`: its name, that of its entry point. `settings_schema`: the JSON Schema of a channel's settings. `polls`: `receive` is to be
    called with no request now and then.
    """

    @property
    def app(self) -> str: ...
    @property
    def settings_schema(self) -> Mapping[str, Any]: ...
    @property
    def secret_names(self) -> SecretNames: ...
    @property
    def polls(self) -> bool: ...

    async def send(self, setup: ChannelSetup, message: OutgoingMessage) -> Delivery:
        """Send a message, at least once. Raises ChannelDown and ChannelRefused."""
        ...

    async def receive(self, setup: ChannelSetup, request: InboundRequest | None) -> Reception:
        """Read what came in with a request; with none, look for what has come. Raises Forged; when it looks, ChannelDown and ChannelRefused."""
        ...

    async def tell(self, setup: ChannelSetup, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
        """Make an answer's outcome visible where the answer came from. Raises ChannelDown and ChannelRefused."""
        ...

    async def taken(self, setup: ChannelSetup, received: tuple[ReceivedAnswer, ...]) -> None:
        """What became of these is recorded: an app that polls need not give them again. Raises ChannelDown and ChannelRefused."""
        ...


MakeChannel = Callable[[ChannelWorld], Channel]
