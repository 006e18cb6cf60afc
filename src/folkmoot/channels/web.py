"""`web`: the server's own pages. They show what a run asks and take the answer, so there is nothing to send or to receive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.channels.channel import ChannelWorld, SecretNames
from folkmoot.domain.channels import (
    WEB,
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    HttpProblem,
    InboundRequest,
    OutgoingMessage,
    ReceivedAnswer,
    Reception,
)


class WebChannel:
    app = WEB
    settings_schema: Mapping[str, Any] = {"type": "object", "additionalProperties": False}
    secret_names = SecretNames()
    polls = False

    async def send(self, setup: ChannelSetup, message: OutgoingMessage) -> Delivery:
        return Delivery()

    async def receive(self, setup: ChannelSetup, request: InboundRequest | None) -> Reception:
        return Reception(http=HttpProblem(404, "The web channel receives nothing here; answer on the run's page."))

    async def tell(self, setup: ChannelSetup, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
        """The page that took the answer shows what became of it."""

    async def taken(self, setup: ChannelSetup, received: tuple[ReceivedAnswer, ...]) -> None:
        """Nothing comes by polling."""


def make(world: ChannelWorld) -> WebChannel:
    return WebChannel()
