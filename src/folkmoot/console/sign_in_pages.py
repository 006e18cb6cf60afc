"""Signing in with a key, and out. Deliberately absent: the key, from the moment it was looked at."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from folkmoot.console.pages import page
from folkmoot.console.visits import SIGN_IN, Visit, drop_session, keep_session, safe_next
from folkmoot.kernel.errors import NotAllowed
from folkmoot.services import web_sessions

_TITLE = "Sign in"


async def show(visit: Visit) -> Response:
    there = safe_next(visit.request.query_params.get("next"))
    if visit.caller is not None:
        return RedirectResponse(there, status_code=303)
    return page(visit, "sign_in.html", title=_TITLE, next=there, fault=None)


async def sign_in(visit: Visit) -> Response:
    """A new session in place of whatever the browser had, or the form again with one sentence for every wrong key."""
    there = safe_next(visit.form.get("next"))
    doors = visit.doors
    try:
        token = await web_sessions.sign_in(
            doors.database, key=visit.form.get("key", "").strip(), earlier=visit.session, random_bytes=doors.random_bytes
        )  # fmt: skip
    except NotAllowed as error:
        return page(visit, "sign_in.html", title=_TITLE, status=401, next=there, fault=str(error))
    response = RedirectResponse(there, status_code=303)
    keep_session(visit, response, token)
    return response


async def sign_out(visit: Visit) -> Response:
    if visit.session is not None:
        await web_sessions.sign_out(visit.doors.database, token=visit.session)
    response = RedirectResponse(SIGN_IN, status_code=303)
    drop_session(visit, response)
    return response
