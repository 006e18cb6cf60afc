"""The pages as an application: which there are, what each asks for, and what is shown where one fails.

Each page names the right that it needs; one that names none is for everybody, and a test lists those. Deliberately absent: the API's routes
and its problems, beside which this is mounted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from folkmoot.console import consent_pages, run_pages, sign_in_pages
from folkmoot.console.doors import ConsoleDoors
from folkmoot.console.forms import TooLarge
from folkmoot.console.pages import Guarded, bare, page, stylesheet
from folkmoot.console.refusals import told
from folkmoot.console.visits import HOME, Visit, arrive, keep_seed, to_sign_in
from folkmoot.domain.rights import Right
from folkmoot.kernel import errors

_log = logging.getLogger("folkmoot.console")


@dataclass(frozen=True, slots=True)
class Page:
    """`right` null: for everybody, signed in or not."""

    method: str
    path: str
    show: Callable[[Visit], Awaitable[Response]]
    right: Right | None = None


PAGES = (
    Page("GET", "/sign-in", sign_in_pages.show),
    Page("POST", "/sign-in", sign_in_pages.sign_in),
    Page("POST", "/sign-out", sign_in_pages.sign_out),
    Page("GET", "/agent-runs", run_pages.list_runs, Right.READ),
    Page("GET", "/agent-runs/{id}", run_pages.show_run, Right.READ),
    Page("GET", "/new", run_pages.new_conversation, Right.START),
    Page("GET", "/conversations/{conversation_id:uuid}", run_pages.show_conversation, Right.READ),
    Page("POST", "/conversations/{conversation_id:uuid}/runs", run_pages.start_run, Right.START),
    Page("GET", "/consent/{token}", consent_pages.show),
    Page("POST", "/consent/{token}", consent_pages.decide, Right.APPROVE),
    Page("POST", "/consent/{token}/code", consent_pages.decide_by_code),
)


def make_console(doors: ConsoleDoors) -> ASGIApp:
    """To be mounted at `/web`. Guarded as a whole: the framework answers an unexpected error outside of its middleware."""
    routes = [Route(each.path, _endpoint(each, doors), methods=[each.method]) for each in PAGES]
    routes += [Route("/style.css", _style), Route("/", to_home)]
    return Guarded(
        Starlette(routes=routes, exception_handlers={HTTPException: _of_framework, Exception: _of_fault})
    )  # fmt: skip


async def to_home(_: Request) -> Response:
    return RedirectResponse(HOME, status_code=303)


async def _style(_: Request) -> Response:
    return Response(stylesheet(), media_type="text/css")


def _endpoint(of: Page, doors: ConsoleDoors) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            visit = await arrive(request, doors)
        except TooLarge:
            return bare("Too much at once", "A form may have 256 KiB at most; send less.", status=413)
        except errors.FolkmootError as error:
            status, title, words = told(error)
            return bare(title, words, status=status)
        response = await _shown(of, visit)
        keep_seed(visit, response)
        return response

    return endpoint


async def _shown(of: Page, visit: Visit) -> Response:
    try:
        if of.right is not None:
            if visit.caller is None:
                return to_sign_in(visit)
            visit.caller.require(of.right)
        return await of.show(visit)
    except errors.FolkmootError as error:
        status, title, words = told(error)
        return page(visit, "told.html", title=title, status=status, words=words)


async def _of_framework(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        made = bare("Not that way", "This page cannot be asked for in this way.", status=405)
        made.headers.update(error.headers or {})
        return made
    if error.status_code == 413:
        return bare("Too much at once", "A form may have 256 KiB at most; send less.", status=413)
    return bare("Not found", "There is no such page.", status=404)


async def _of_fault(request: Request, error: Exception) -> Response:
    _log.error("An unexpected error at %s %s", request.method, request.url.path, exc_info=error)
    return bare("The server failed", "The server failed unexpectedly. Its log says more; please report it.", status=500)
