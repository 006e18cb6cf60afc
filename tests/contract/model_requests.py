"""What the tests of model adapters ask: one short conversation, a tool, a ballot; and where the local model's file may be."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from folkmoot.domain.model_calls import (
    Access,
    Entry,
    ModelChoice,
    ModelReply,
    ModelRequest,
    OfferedTool,
    OtherText,
    Purpose,
    Replay,
    Sampling,
    SystemText,
)
from folkmoot.llm.model_file import MODEL_NAME
from folkmoot.vault.texts import SecretText

KEY = "sk-right-secret"
LOOK = OfferedTool("look", "Looks.", {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}})
BALLOT = (
    OfferedTool("agree", "Vote for it.", {"type": "object", "properties": {}}),
    OfferedTool("disagree", "Vote against it.", {"type": "object", "properties": {"reason": {"type": "string"}}}),
)
_DATA_DIRS = (os.environ.get("FOLKMOOT_DATA_DIR"), "/var/lib/folkmoot", "~/.local/share/folkmoot")
DATA_DIR = next(
    (
        Path(d).expanduser()
        for d in _DATA_DIRS
        if d and (Path(d).expanduser() / "models" / f"{MODEL_NAME}.gguf").is_file()
    ),
    None,
)


def stored(maker: ModelChoice, reply: ModelReply) -> Replay:
    """A reply's replay as it comes back from where it was kept."""
    return Replay(maker.provider, maker.model_name, json.loads(json.dumps(reply.replay)))


def access_to(model: ModelChoice, key: str = KEY) -> Access | None:
    """What the runtime finds for a model: `key` where the model names a variable for one."""
    if model.base_url is None:
        return None
    if model.api_key_variable is None:
        return Access(model.model_name, model.base_url)
    shown = f"the environment variable {model.api_key_variable}"
    return Access(model.model_name, model.base_url, SecretText(key), shown)


def a_request(model: ModelChoice, **changes: Any) -> ModelRequest:
    view: list[Entry] = [
        SystemText("You are Ann."),
        OtherText(None, "The task: Tea or coffee?"),
        OtherText("Ben", "Coffee."),
    ]
    request = ModelRequest(
        model=model,
        sampling=Sampling(),
        participant="Ann",
        view=view,
        view_length=3,
        instruction=None,
        offered=(),
        required=False,
        purpose=Purpose.TURN,
        turn=1,
        call=1,
        attempt=1,
        access=access_to(model),
    )
    return (
        replace(request, **changes)
        if "view" not in changes
        else replace(request, view_length=len(changes["view"]), **changes)
    )
