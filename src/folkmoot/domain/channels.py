"""Channels: how a run reaches its owner, and how an answer comes back; and the messages that go either way.

A channel's definition names an app, found by entry point, and holds the app's settings. Deliberately absent: the apps themselves
(`channels`), and any state of a run: an app is given a message, and of the run its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

from folkmoot.domain.references import Reference

Json = Any

WEB = "web"  # the app that needs no definition: the server's own pages


@dataclass(frozen=True, slots=True)
class ChannelVersion:
    """`app`: an entry point's name. `settings`: as the app's schema says. `secrets`: by the app's names for them, each a link to a secret,
    whose id is its `definition_id`."""

    app: str
    settings: dict[str, Json] = field(default_factory=dict)
    secrets: dict[str, Reference] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AppShape:
    """What an app asks of a channel's definition. `settings_schema`: a JSON Schema (draft 2020-12) of an object. Secrets are named by the app."""

    settings_schema: Json
    required_secrets: tuple[str, ...] = ()
    optional_secrets: tuple[str, ...] = ()


NO_APPS: Mapping[str, AppShape] = MappingProxyType({})  # where nothing is known of apps, nothing is held against them


class MessageKind(StrEnum):
    CONSENT_REQUESTED = "consent.requested"
    CONSENT_DECIDED = "consent.decided"
    CONSENT_EXPIRED = "consent.expired"
    RUN_ENDED = "run.ended"


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """What a channel tells a run's owner. The same `message_id` at each attempt: whoever receives it twice can tell.

    `run_id`: of the agent run. `token`: its correlation token, to be embedded so that an answer finds the run. `secret`: of a consent
    request, to be embedded where an answer cannot prove who speaks; null in all other kinds. `title` and `text`: ready to be shown, with hidden
    characters made visible. `data`: the same for programs. `link`: the page that shows it; null where the server has no public
    address. `reply_params`: the channel's own, untouched. `request_reference`: what `send` gave for the consent request that this
    one is about, null if there was none. `to`: the owner's address in this app, null if none is known.
    """

    message_id: UUID
    kind: MessageKind
    run_id: int
    token: str
    title: str
    text: str
    data: dict[str, Json]
    secret: str | None = field(default=None, repr=False)
    link: str | None = None
    reply_params: str | None = None
    request_reference: str | None = None
    to: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """`reference`: what the app wants to be told when the same request changes later; null: nothing."""

    reference: str | None = None


@dataclass(frozen=True, slots=True)
class ChannelSetup:
    """A channel's definition made ready for its app: settings, and secrets opened for this one use."""

    settings: Mapping[str, Json]
    secrets: Mapping[str, str] = field(repr=False)
    now: datetime


@dataclass(frozen=True, slots=True)
class InboundRequest:
    """An HTTP request to a channel's inbound address. `headers`: names in lower case."""

    headers: Mapping[str, str]
    body: bytes


class Answer(StrEnum):
    APPROVE = "approve"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer that came in, with what is known of its sender; whether it counts is not the app's to say.

    `inbound_id`: unique within the channel; the same for what is sent again. `sender`: the address in this app; empty: it cannot be made out, so that it is nobody's; null: the app has no
    addresses. `is_proven`: the
    channel itself vouches for the sender (a signature), so that the request's secret is not needed and does not suffice; else the secret is.
    `about`: which request is answered, its chat item's id; needed where the sender is proven, since no secret tells it then.
    `answer` null: no clear yes or no could be read, and `unread` says what was seen. `is_automatic`: a machine's own reply, which means nothing.
    `reply_to`: what the app needs to tell the sender what came of it.
    """

    inbound_id: str
    token: str | None
    secret: str | None = field(repr=False)
    sender: str | None
    is_proven: bool
    answer: Answer | None
    reason: str | None = None
    unread: str | None = None
    is_automatic: bool = False
    reply_to: str | None = None
    about: UUID | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What the inbound address answers at once."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class HttpProblem:
    """A request that is not taken, answered at once as the API answers errors. `status`: 400, 401, 403 or 404."""

    status: int
    detail: str


Answered = HttpAnswer | HttpProblem


@dataclass(frozen=True, slots=True)
class Reception:
    """What came in: answers, and what to answer at once; null: the outcomes of the answers, as JSON."""

    answers: tuple[ReceivedAnswer, ...] = ()
    http: Answered | None = None


class OutcomeKind(StrEnum):
    """What became of an answer (B16)."""

    DONE = "done"
    ALREADY_DECIDED = "already_decided"
    TOO_LATE = "too_late"
    NOT_YOURS = "not_yours"
    NOT_UNDERSTOOD = "not_understood"
    NOT_FOUND = "not_found"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """`words`: for the sender, one or two sentences. `is_known`: the sender is a user of the tenant by their address. `is_told`: the same
    answer came before, and its sender was told of this."""

    kind: OutcomeKind
    words: str
    is_known: bool = False
    is_told: bool = False
