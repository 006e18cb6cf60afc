"""What must hold of the runs that a run may start. Pointers are into the version, by the wire's names.

Deliberately absent: whether the interactions are there; that takes the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from folkmoot.domain.context_checks import LARGEST_COUNT
from folkmoot.domain.link_checks import faults_of_link
from folkmoot.domain.references import Reference
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.kernel.errors import Fault

MOST_INTERACTIONS = 50
MOST_CONCURRENT, MOST_TOTAL = (
    10_000,
    100_000,
)  # what one run shows of its tree, and one await holds, stays within bounds


def faults_of_swarm(swarm: SwarmSettings, names: Sequence[str | None]) -> Iterator[Fault]:
    """`names`: of those who take part; null: one whose agent's name is not known here."""
    yield from _interaction_faults(swarm.interactions)
    if not swarm.participants:
        yield Fault("/swarm/participants", "Nobody may start these interactions; name at least one participant.")
    yield from faults_of_starters(swarm, names)
    limits = {
        "maxDepth": (swarm.max_depth, LARGEST_COUNT),
        "maxConcurrent": (swarm.max_concurrent, MOST_CONCURRENT),
        "maxTotal": (swarm.max_total, MOST_TOTAL),
    }
    for name, (limit, most) in limits.items():
        if limit is not None and not 1 <= limit <= most:
            message = f"This is a number from 1 to {most:,}, or null for the usual limit; correct it."
            yield Fault(f"/swarm/{name}", message)


def faults_of_starters(swarm: SwarmSettings, names: Sequence[str | None]) -> Iterator[Fault]:
    """A fault for each that may start interactions and takes no part, or is named twice."""
    seen: set[str] = set()
    for index, name in enumerate(swarm.participants):
        if name in seen:
            yield Fault(f"/swarm/participants/{index}", f"'{shortened(name, 60)}' is named twice; leave one out.")
        elif name not in names and None not in names:
            known = ", ".join(f"'{each}'" for each in names)
            message = f"No participant is called '{shortened(name, 60)}'. The participants: {known or 'none'}."
            yield Fault(f"/swarm/participants/{index}", message)
        seen.add(name)


def _interaction_faults(links: Sequence[Reference]) -> Iterator[Fault]:
    if not 1 <= len(links) <= MOST_INTERACTIONS:
        message = f"A swarm has 1 to {MOST_INTERACTIONS} interactions to start; this has {len(links)}."
        yield Fault("/swarm/interactions", message)
    seen: set[tuple[object, object]] = set()
    for index, link in enumerate(links):
        pointer = f"/swarm/interactions/{index}"
        yield from faults_of_link(pointer, link, "an interaction")
        key = (link.definition_id, None) if link.definition_id is not None else (link.namespace, link.name)
        if key in seen:
            yield Fault(pointer, f"The interaction '{link}' is named twice; leave one out.")
        seen.add(key)
