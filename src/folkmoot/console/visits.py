"""One request of a page: who is signed in, what the browser keeps, and the form it sent.

Cookies are HttpOnly and SameSite=Strict, and Secure wherever the page was asked for over https; then their names are bound to this host as
well. A link from a mail therefore comes without them, and leads to a page with a way on. Deliberately absent: what a page shows.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from folkmoot.console.doors import ConsoleDoors
from folkmoot.console.forms import check_form, read_form, token_of
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotAllowed
from folkmoot.services import web_sessions

SIGN_IN = "/web/sign-in"
HOME = "/web/agent-runs"
_SESSION = "folkmoot_session"
_FORM = "folkmoot_form"
_SEED_BYTES = 32
_LONGEST_SEED = 100
_OURS = re.compile(r"/web/[A-Za-z0-9/_-]*(\?[A-Za-z0-9=&_-]*)?")


@dataclass(frozen=True, slots=True)
class Visit:
    """`caller` null: nobody is signed in. `session`: the token the browser has, whatever it is worth. `seed`: what its forms' tokens are
    made of; `is_new_seed`: it gets it only now. `form`: of a POST, once it is known to be ours."""

    request: Request
    doors: ConsoleDoors
    caller: Caller | None
    session: str | None
    seed: str
    is_new_seed: bool
    form: Mapping[str, str]

    @property
    def who(self) -> Caller:
        assert self.caller is not None  # the page asked for a right
        return self.caller

    @property
    def form_token(self) -> str:
        return token_of(self.seed)


async def arrive(request: Request, doors: ConsoleDoors) -> Visit:
    """Raises NotPermitted for a form that is not ours, TooLarge, BadInput."""
    session, seed = _cookie(request, doors, _SESSION), _cookie(request, doors, _FORM)
    caller = None
    if session is not None:
        try:
            caller = await web_sessions.whose(doors.database, token=session)
        except NotAllowed:
            caller = None  # its forms are not those of a session any more, either
    kept = session if caller is not None else seed
    form: Mapping[str, str] = {}
    if request.method == "POST":
        form = await read_form(request)
        check_form(request, form, seed=kept, origins=_origins(request, doors))
    made = kept or base64.urlsafe_b64encode(doors.random_bytes(_SEED_BYTES)).decode("ascii").rstrip("=")
    return Visit(request, doors, caller, session, made, kept is None, form)


def keep_seed(visit: Visit, response: Response) -> None:
    """The browser keeps what the forms on this page are bound to, until it is closed."""
    if visit.is_new_seed:
        _set(visit, response, _FORM, visit.seed, seconds=None)


def keep_session(visit: Visit, response: Response, token: str) -> None:
    _set(visit, response, _SESSION, token, seconds=web_sessions.SECONDS)
    _set(visit, response, _FORM, "", seconds=0)


def drop_session(visit: Visit, response: Response) -> None:
    _set(visit, response, _SESSION, "", seconds=0)


def to_sign_in(visit: Visit) -> Response:
    """On to signing in, and from there back to the page that was asked for; after a POST to where a page begins."""
    path, query = visit.request.url.path, visit.request.url.query
    there = safe_next(f"{path}?{query}" if query else path) if visit.request.method != "POST" else HOME
    return RedirectResponse(f"{SIGN_IN}?next={quote(there, safe='')}", status_code=303)


def safe_next(wanted: str | None) -> str:
    """A page of ours to go on to; for anything else, such as another host's, the first page (no open redirect)."""
    return wanted if wanted is not None and _OURS.fullmatch(wanted) and wanted != SIGN_IN else HOME


def _is_secure(request: Request, doors: ConsoleDoors) -> bool:
    public = urlsplit(doors.public_url or "")
    return request.url.scheme == "https" or (public.scheme == "https" and public.netloc == request.url.netloc.lower())


def _origins(request: Request, doors: ConsoleDoors) -> frozenset[str]:
    here = f"{request.url.scheme}://{request.url.netloc.lower()}"
    return frozenset({here} | ({doors.public_url} if doors.public_url else set()))


def _name(request: Request, doors: ConsoleDoors, name: str) -> str:
    return f"__Host-{name}" if _is_secure(request, doors) else name


def _cookie(request: Request, doors: ConsoleDoors, name: str) -> str | None:
    found = request.cookies.get(_name(request, doors, name))
    return found if found and len(found) <= _LONGEST_SEED else None


def _set(visit: Visit, response: Response, name: str, value: str, *, seconds: int | None) -> None:
    response.set_cookie(
        _name(visit.request, visit.doors, name), value, max_age=seconds, path="/", httponly=True, samesite="strict",
        secure=_is_secure(visit.request, visit.doors),
    )  # fmt: skip
