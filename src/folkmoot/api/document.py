"""The OpenAPI document: what the framework makes of the routes, and what it cannot know.

It has the shapes of the events of a stream, and not the framework's own answers, which no route gives.
"""

from __future__ import annotations

from typing import Any

from fastapi import Body, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from folkmoot.api.problems import MEDIA_TYPE
from folkmoot.wire.agent_runs import AgentRunEndEvent, ConsentEvent
from folkmoot.wire.events import ApprovalEvent, DeltaEvent, EndEvent, StatusEvent, UsageEvent
from folkmoot.wire.pending import FeedSync

_SCHEMAS = "#/components/schemas/"
_NEVER_GIVEN = ("HTTPValidationError", "ValidationError")
_EVENTS: dict[str, type[BaseModel]] = {
    "delta": DeltaEvent,
    "status": StatusEvent,
    "approval": ApprovalEvent,
    "usage": UsageEvent,
    "end": EndEvent,
}
_AGENT_RUN_ONLY: dict[str, type[BaseModel]] = {"approval": ConsentEvent, "end": AgentRunEndEvent}
_FEED: dict[str, type[BaseModel]] = {"synced": FeedSync}
_DATA = {"item": "ConversationItem", **{name: shape.__name__ for name, shape in _EVENTS.items()}}
_AGENT_RUN_DATA = {**_DATA, "status": "AgentRun", **{name: shape.__name__ for name, shape in _AGENT_RUN_ONLY.items()}}
_FEED_DATA = {"waiting": "PendingWork", "closed": "PendingWork", "synced": "FeedSync"}
_IDS = {"item": "^[0-9]+$", "synced": "^[0-9A-Za-z_-]+$"}


def _event(name: str, shape: str) -> dict[str, Any]:
    """An event as OpenAPI 3.2 describes those of a stream: its data is JSON in a string."""
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": f"{_SCHEMAS}{shape}"},
    }
    marks = {"id": {"type": "string", "pattern": _IDS[name]}} if name in _IDS else {}
    fields = {"event": {"const": name}, "data": data, **marks}
    return {"type": "object", "properties": fields, "required": list(fields)}


EVENTS = {"itemSchema": {"oneOf": [_event(name, shape) for name, shape in _DATA.items()]}}
AGENT_RUN_EVENTS = {"itemSchema": {"oneOf": [_event(name, shape) for name, shape in _AGENT_RUN_DATA.items()]}}
FEED_EVENTS = {"itemSchema": {"oneOf": [_event(name, shape) for name, shape in _FEED_DATA.items()]}}


def shown_as(example: dict[str, Any]) -> Any:
    """A body's place, with an example of it."""
    return Body(openapi_examples={"example": {"value": example}})


def document(app: FastAPI) -> dict[str, Any]:
    """Made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        made["components"]["schemas"] = _schemas(made["components"]["schemas"])
        for operations in made["paths"].values():
            for operation in operations.values():
                _tidy(operation)
        app.openapi_schema = made
    return app.openapi_schema


def _schemas(of_routes: dict[str, Any]) -> dict[str, Any]:
    _, events = models_json_schema(
        [(shape, "serialization") for shape in (*_EVENTS.values(), *_AGENT_RUN_ONLY.values(), *_FEED.values())],
        ref_template=f"{_SCHEMAS}{{model}}",
    )
    return {
        name: schema for name, schema in sorted({**events["$defs"], **of_routes}.items()) if name not in _NEVER_GIVEN
    }


def _tidy(operation: dict[str, Any]) -> None:
    for answer in operation["responses"].values():
        content = answer.get("content", {})
        if MEDIA_TYPE in content:
            answer["content"] = {MEDIA_TYPE: content[MEDIA_TYPE]}
        for shape in content.values():
            if "itemSchema" in shape:
                shape.pop("schema", None)  # a stream is no string
