"""What a server answered, as the text of a result. Secrets that it sends back are masked.

Deliberately absent: a cut answer that looks whole; what is too large is an error that shows how it begins.
"""

from __future__ import annotations

import codecs

import httpx2

from folkmoot.domain.calls import CallResult
from folkmoot.domain.json_text import visible
from folkmoot.tools.bodies import Body
from folkmoot.tools.functions import UNKNOWN_OUTCOME
from folkmoot.tools.sent_secrets import SentSecrets

HEAD_CHARACTERS = 2_000
_TEXTS = ("json", "xml", "javascript", "yaml", "x-www-form-urlencoded", "graphql", "csv", "toml")
_CHARSETS = ("utf", "iso8859", "cp", "ascii", "koi8", "shift_jis", "euc_", "gb", "big5", "mac")
# The server passes on that another did not answer in time, or broke off: what happened there is open.
_OPEN_STATUSES = (502, 504)


def result_of(
    response: httpx2.Response, body: Body, *, limit_bytes: int, is_repeatable: bool, secrets: SentSecrets
) -> CallResult:
    """The result of an answered call. `is_repeatable`: nothing is lost if it is made twice."""
    status = response.status_code
    kind = response.headers.get("Content-Type", "")
    text = _text(kind, body, secrets)
    if 200 <= status < 300:
        if text is None:
            size = f"more than {len(body.data):,}" if body.is_cut else f"{len(body.data):,}"
            shown = kind.partition(";")[0].strip()[:80] or "an unnamed type"
            return _result(secrets.masked(f"The answer is binary and is not shown: {size} bytes of {shown}."))
        if body.is_cut or len(text.encode()) > limit_bytes:
            return _result(_too_large(status, text, body, limit_bytes, secrets), is_error=True)
        return _result(text or f"Done. The server answered {status} without content.")
    return _refused(response, text, body, is_repeatable=is_repeatable, secrets=secrets)


def _refused(
    response: httpx2.Response, text: str | None, body: Body, *, is_repeatable: bool, secrets: SentSecrets
) -> CallResult:
    status = response.status_code
    reason = httpx2.codes.get_reason_phrase(status)
    said = f"The server answered {status}{' ' + reason if reason else ''}"
    if 300 <= status < 400 and "Location" in response.headers:
        return _result(
            f"{said}: it redirects this call, which is not followed. Correct the connector's URL.", is_error=True
        )
    unknown = status in _OPEN_STATUSES and not is_repeatable
    said += f"; what came of the call is unknown: {UNKNOWN_OUTCOME}." if unknown else "."
    shown = _head(text, body, secrets) if text is not None else ""
    return _result(f"{said} It says:\n{shown}" if shown else said, is_error=True, unknown=unknown)


def _too_large(status: int, text: str, body: Body, limit_bytes: int, secrets: SentSecrets) -> str:
    return (
        f"The call was made, and the server answered {status}, but its answer has more than {limit_bytes:,} bytes and is not "
        f"shown whole. Ask for less at once. It begins:\n{_head(text, body, secrets)}"
    )


def _head(text: str, body: Body, secrets: SentSecrets) -> str:
    if body.is_cut and secrets.longest:
        text = text[: -secrets.longest]  # half a secret is not recognized
    return text if len(text) <= HEAD_CHARACTERS else f"{text[:HEAD_CHARACTERS]}…"


def _text(content_type: str, body: Body, secrets: SentSecrets) -> str | None:
    """The body as text; null if it is none."""
    kind, _, rest = content_type.partition(";")
    kind = kind.strip().lower()
    is_named = kind.startswith("text/") or kind.endswith(_TEXTS)
    named = (part.partition("=")[2] for part in rest.split(";") if part.strip().lower().startswith("charset="))
    decoder = codecs.getincrementaldecoder(_known(next(named, "utf-8")))("replace" if is_named else "strict")
    try:
        # A cut body may end within a character.
        text = decoder.decode(body.data, not body.is_cut)
    except UnicodeError:
        return None
    if "\x00" in text and not is_named:
        return None
    return secrets.masked(visible(text))


def _known(charset: str) -> str:
    """A character set; UTF-8 for what is none, as some of Python's codecs do more than that, slowly."""
    try:
        name = codecs.lookup(charset.strip().strip("\"'")[:40]).name
    except (LookupError, ValueError):
        return "utf-8"
    return name if name.startswith(_CHARSETS) else "utf-8"


def _result(text: str, *, is_error: bool = False, unknown: bool = False) -> CallResult:
    return CallResult(text=text, is_error=is_error, unknown=unknown)
