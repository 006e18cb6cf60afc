"""Pages out of templates, and the headers that every answer has (F48, F64).

Templates escape whatever they are given, and name nothing that they were not. Deliberately absent: scripts, and anything from another host.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folkmoot.console import shown
from folkmoot.console.forms import TOKEN_FIELD
from folkmoot.console.visits import Visit

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@cache
def _templates() -> Environment:
    folder = str(files("folkmoot.console").joinpath("templates"))
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(shown=shown.text, moment=shown.moment, pretty=shown.pretty, call=shown.call)
    return made


@cache
def stylesheet() -> bytes:
    return files("folkmoot.console").joinpath("static/style.css").read_bytes()


def page(visit: Visit, template: str, *, title: str, status: int = 200, **values: Any) -> Response:
    """`title`: of the page and its first heading."""
    text = _templates().get_template(template).render(
        title=title, caller=visit.caller, form_token=visit.form_token, token_field=TOKEN_FIELD, **values
    )  # fmt: skip
    return HTMLResponse(text, status_code=status)


def bare(title: str, words: str, *, status: int) -> Response:
    """A page for a request of which nothing else is known."""
    text = _templates().get_template("bare.html").render(title=title, words=words, caller=None)
    return HTMLResponse(text, status_code=status)


class Guarded:
    """An ASGI wrapper that puts HEADERS on every answer, errors and the stylesheet included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, sending)
