"""Bodies of forms, read within a bound, and whether a form is one of ours (F48).

A form carries a token that is made from what its browser keeps in a cookie which no other page can read: the session's, or one of its own
before there is a session. Beside that the browser's own word is taken, where it gives one. Deliberately absent: uploads.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from folkmoot.kernel.errors import BadInput, NotPermitted

FORM_BYTES = 256 * 1024
TOKEN_FIELD = "formToken"
_MOST_FIELDS = 50
_KIND = "application/x-www-form-urlencoded"
_FOREIGN = "This form was not sent by a page of this server, or the page is from before you signed in. Open the page again and send it from there."


class TooLarge(Exception):
    """More than FORM_BYTES came."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields; of two with one name the last. Raises TooLarge, BadInput."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise BadInput(f"Send the form as {_KIND}.")
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > FORM_BYTES:
        raise TooLarge
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > FORM_BYTES:
            raise TooLarge
    try:
        text = body.decode("ascii")
        return dict(
            parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MOST_FIELDS)
        )
    except ValueError:
        raise BadInput("The form cannot be read. Open the page again and send it from there.") from None


def token_of(seed: str) -> str:
    """What forms carry in a browser that keeps `seed`: of no use without it, and nothing of it can be read from this."""
    return hmac.new(seed.encode(), b"folkmoot form", hashlib.sha256).hexdigest()


def check_form(request: Request, form: Mapping[str, str], *, seed: str | None, origins: frozenset[str]) -> None:
    """Raises NotPermitted for a form that is not ours. `seed` null: the browser keeps nothing, so no page of ours was shown to it.

    Pages are sent with no referrer, for which some browsers give the origin `null`: this says nothing either way, and the token decides.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    is_foreign = site not in (None, "same-origin") or (origin not in (None, "null") and origin not in origins)
    token = form.get(TOKEN_FIELD, "")
    if is_foreign or seed is None or not hmac.compare_digest(token.encode(), token_of(seed).encode()):
        raise NotPermitted(_FOREIGN)
