"""The application: routes, problems, limits, and the document."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import APIRoute

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


def make_app(doors: Doors | None = None) -> FastAPI:
    """The API over `doors`; without them only its document can be had."""
    app = FastAPI(
        title="Folkmoot",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a path has one spelling
        generate_unique_id_function=_name_of,
    )
    app.state.doors = doors
    for router in (
        definitions.router,
        connectors.router,
        runs.router,
        trees.router,
        agent_runs.router,
        apps.router,
        answers.router,
        approvals.router,
        channels.router,
        webhooks.router,
        secrets.router,
        model_keys.router,
        keys.router,
        users.router,
        audit.router,
        usage.router,
        system.router,
    ):
        app.include_router(router)
    problems.add_to(app)
    app.add_middleware(BodyLimit)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    return app


def _name_of(route: APIRoute) -> str:
    """An operation's id, as generated clients call it."""
    return route.name
