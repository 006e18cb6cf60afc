"""The application: routes, problems, limits, and the document."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from folkmoot import __version__
from folkmoot.api import problems
from folkmoot.api.document import document
from folkmoot.api.doors import Doors
from folkmoot.api.limits import BodyLimit
from folkmoot.api.routes import (
    agent_runs,
    answers,
    approvals,
    apps,
    audit,
    channels,
    connectors,
    definitions,
    keys,
    model_keys,
    runs,
    secrets,
    system,
    trees,
    usage,
    users,
    webhooks,
)

_DESCRIPTION = (
    "Durable conversations between AI agents, tools and people. Errors are `application/problem+json` (RFC 9457)."
)


_PARTS = (
    definitions, connectors, runs, trees, agent_runs, apps, answers, approvals, channels, webhooks, secrets, model_keys, keys, users,
    audit, usage, system,
)  # fmt: skip


def make_app(doors: Doors | None = None) -> FastAPI:
    """The API over `doors`; without them only its document can be had."""
    app = FastAPI(
        title="Folkmoot",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a path has one spelling
        routes=_routes(),
    )
    app.state.doors = doors
    problems.add_to(app)
    app.add_middleware(BodyLimit)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


def _routes() -> list[BaseRoute]:
    """Those of all parts, as they were made. Where an app includes parts, each route is made anew at its first request: half a second."""
    found = [route for part in _PARTS for route in part.router.routes]
    for route in found:
        if isinstance(route, APIRoute):
            route.unique_id = route.name  # an operation's id, as generated clients call it
    return found
