"""Signing in on the server's pages: a key makes a session, and whatever ends the key ends the session at its next request (F43).

Each sign-in makes a token of its own, and the one that the browser had is gone with it (F48). Deliberately absent: cookies and forms
(`console`), and passwords.
"""

from __future__ import annotations

import base64
from dataclasses import replace

from folkmoot.domain.channels import WEB
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotAllowed
from folkmoot.services import keys
from folkmoot.store import audit, tenancy, web_sessions
from folkmoot.store.database import Database
from folkmoot.store.tenancy import RandomBytes

SECONDS = 12 * 60 * 60
_TOKEN_BYTES = 32
_WRONG = (
    "This key opens nothing here. It may be mistyped, revoked or expired. Paste a key that `folkmoot keys create` made."
)


async def sign_in(database: Database, *, key: str, earlier: str | None, random_bytes: RandomBytes) -> str:
    """The token of a new session; `earlier`, what the browser had before, is no session any more.

    Raises NotAllowed, in the same words whatever is wrong with the key.
    """
    async with database.reader() as reader:
        found = await tenancy.find_key(reader, text=key)
    try:
        caller = await keys.admitted(database, found)
    except NotAllowed:
        raise NotAllowed(_WRONG) from None
    assert caller.key_id is not None
    token = base64.urlsafe_b64encode(random_bytes(_TOKEN_BYTES)).rstrip(b"=").decode("ascii")
    async with database.writer() as writer:
        if earlier is not None:
            await web_sessions.delete(writer, token=earlier)
        await web_sessions.insert(
            writer, caller.tenant_id, token=token, key_id=caller.key_id, user_id=caller.user_id, seconds=SECONDS
        )
        await audit.note(
            writer, replace(caller, over=WEB), action="session.began", subject_kind="key", subject_id=caller.key_id
        )
    return token


async def whose(database: Database, *, token: str) -> Caller:
    """Who is signed in, with what their key may now. Raises NotAllowed for no session, and for one whose key is of no use any more."""
    async with database.reader() as reader:
        found = await web_sessions.find_key(reader, token=token)
    if found is None:
        raise NotAllowed("You are not signed in, or were for too long. Sign in with a key.")
    return replace(await keys.admitted(database, found), over=WEB)


async def sign_out(database: Database, *, token: str) -> None:
    async with database.writer() as writer:
        await web_sessions.delete(writer, token=token)
