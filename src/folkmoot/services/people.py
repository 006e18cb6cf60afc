"""What a person's words and answers to a run have in common: under which name they stand, and who is told of them.

Deliberately absent: what was said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import ORCHESTRATOR, Author, AuthorKind
from folkmoot.domain.participant_names import name_key
from folkmoot.domain.pending import PERSON
from folkmoot.domain.tenancy import Caller

Tell = Callable[[dict[str, Any]], None]


def author_of(caller: Caller, resolved: ResolvedInteraction) -> Author:
    """A person whose name a participant bears, or looks like bearing, speaks as the reserved `Human`."""
    taken = {name_key(participant.name) for participant in resolved.participants} | {name_key(ORCHESTRATOR.name)}
    name = PERSON if name_key(caller.user_name) in taken else caller.user_name
    return Author(AuthorKind.HUMAN, name, caller.user_id)


def tell_of_answer(tell: Tell, tenant_id: UUID, *, run_id: UUID, sequence: int | None) -> None:
    """After the commit: workers, who may claim the run; its worker, if it has one; its watchers; and those who watch the inbox."""
    tell({"to": "workers"})
    tell({"to": "run", "run": str(run_id)})
    if sequence is not None:
        tell({"to": "watchers", "run": str(run_id), "sequence": sequence})
    tell({"to": "inbox", "tenant": str(tenant_id)})
