"""Whether an agent that is to be saved would close a circle of specialists, or make a chain of them too long (agent-runs.md, Delegation).

Chains are looked at as they would be with it: from it on, and up to it, for it may be another's specialist. Deliberately absent: its
own links, which `agent_links` settles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from folkmoot.domain.agent_settings import MOST_DELEGATIONS_DEEP
from folkmoot.domain.references import Reference
from folkmoot.kernel.errors import Fault
from folkmoot.services.router_links import Graph
from folkmoot.store import specialists
from folkmoot.store.database import Reader

MOST_AGENTS = MOST_DELEGATIONS_DEEP + 1  # of a chain: a root, and so many below it
_POINTER = "/specialists"


async def chain_faults(
    reader: Reader, tenant_id: UUID, *, own: UUID | None, title: str, links: Sequence[Reference]
) -> tuple[Fault, ...]:
    """`own`: the agent that is saved again; null: a new one. `links`: its specialists, settled."""
    graph = Graph(await specialists.links(reader, tenant_id), own, links, title=title)
    return tuple(faults_of_chains(graph.circle(), lambda: graph.too_long(MOST_AGENTS)))


def faults_of_chains(closed: Sequence[str], long: Callable[[], Sequence[str]]) -> Iterator[Fault]:
    """Of the names of agents: those of a circle, and those of a chain that is too long, asked for only without a circle."""
    if closed:
        message = f"These agents are each other's specialists in a circle: {' -> '.join(closed)}. Take one of them out."
        yield Fault(_POINTER, message)
    elif names := long():
        message = f"Runs delegate at most {MOST_DELEGATIONS_DEEP} deep; here they could more: {' -> '.join(names)}. Take one out."
        yield Fault(_POINTER, message)
