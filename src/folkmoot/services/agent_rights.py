"""Whether the people in whose name an agent acts may have it do so, now: the rights of its owner are the context of every phase.

Looked at when a run starts and again before each call, so that what was taken away takes effect at once. Deliberately absent: the
rights of whoever started the run, which decide nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from folkmoot.domain.agent_runs import PinnedLoop
from folkmoot.domain.rights import MEANINGS, Right, least_role, rights_of
from folkmoot.store import users
from folkmoot.store.database import Database, Reader

NEEDED = Right.START  # who may start no runs has no tools used for them either


async def refusal_of_call(database: Database, tenant_id: UUID, loop: PinnedLoop) -> str | None:
    """Why no tool is called in this run now; null where tools may be. In a delegation those above must be allowed to, too."""
    async with database.reader() as reader:
        return await refusal_of(reader, tenant_id, user_ids=(loop.owner_id, *loop.owners_above))


async def refusal_of(reader: Reader, tenant_id: UUID, *, user_ids: Sequence[UUID]) -> str | None:
    """The first of these owners who may not, as a sentence with what to do."""
    for user_id in dict.fromkeys(user_ids):
        user = await users.get(reader, tenant_id, user_id=user_id)
        if user is None or user.removed_at is not None:
            name = user.name if user is not None else str(user_id)
            return f"The agent acts for {name}, who is no user here any more. Give the agent another owner."
        if NEEDED not in rights_of(user.role, None):
            return (
                f"The agent acts for {user.name}, whose role {user.role} lacks the right '{NEEDED}' ({MEANINGS[NEEDED]}). An owner or admin can "
                f"give them the role {least_role(NEEDED)}, or give the agent another owner."
            )
    return None
