"""The OpenAPI document: what the framework makes of the routes, and what it cannot know.

It has the shapes of the events of a stream, and not the framework's own answers, which no route gives.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from folkmoot.api.problems import MEDIA_TYPE
from folkmoot.wire.events import DeltaEvent, EndEvent, StatusEvent, UsageEvent

_SCHEMAS = "#/components/schemas/"
_NEVER_GIVEN = ("HTTPValidationError", "ValidationError")
_EVENTS: dict[str, type[BaseModel]] = {
    "delta": DeltaEvent,
    "status": StatusEvent,
    "usage": UsageEvent,
    "end": EndEvent,
}
EVENT_SHAPES: dict[str, dict[str, str]] = {
    "item": {"$ref": f"{_SCHEMAS}ConversationItem"},
    **{name: {"$ref": f"{_SCHEMAS}{shape.__name__}"} for name, shape in _EVENTS.items()},
}


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
        [(shape, "serialization") for shape in _EVENTS.values()], ref_template=f"{_SCHEMAS}{{model}}"
    )
    return {
        name: schema for name, schema in sorted({**events["$defs"], **of_routes}.items()) if name not in _NEVER_GIVEN
    }


def _tidy(operation: dict[str, Any]) -> None:
    for answer in operation["responses"].values():
        content = answer.get("content", {})
        if MEDIA_TYPE in content:
            answer["content"] = {MEDIA_TYPE: content[MEDIA_TYPE]}
