"""What the clients that skip their SDKs' transforms are held to: one conversation, sent by the SDK's client and by ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from folkmoot.domain.model_calls import Entry, OtherText, OwnCall, SystemText
from folkmoot.llm.sending import Sending

if TYPE_CHECKING:
    from pydantic_ai.models import Model

VIEW: list[Entry] = [
    SystemText("S"),
    OtherText(None, "Go."),
    OwnCall("c1", "look", "{}", "x", False, None),
    OtherText("Ben", "ü"),
]


async def send_by_each(sent: Sending, *models: Model[Any]) -> None:
    """Each sends it once, to a server that refuses it and keeps what it saw."""
    from pydantic_ai.direct import model_request
    from pydantic_ai.exceptions import ModelHTTPError

    for model in models:
        with pytest.raises(ModelHTTPError, match="400"):
            await model_request(
                model, sent.messages, model_settings=sent.settings, model_request_parameters=sent.parameters
            )
