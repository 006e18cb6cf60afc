"""All that a router can lead to: further routers, and the agents among whom it is chosen in the end.

Each is there once, as the version that a start would take now. Deliberately absent: models and prompts (`router_closure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from folkmoot.domain.definitions import DefinitionKind, StoredVersion
from folkmoot.domain.router_chains import circle, too_long
from folkmoot.domain.routers import CandidateKind, RouterVersion
from folkmoot.services import references
from folkmoot.services.references import NOUNS
from folkmoot.services.router_links import faults_of_chains
from folkmoot.store.database import Reader

KINDS = {CandidateKind.AGENT: DefinitionKind.AGENT, CandidateKind.ROUTER: DefinitionKind.ROUTER}


@dataclass(slots=True)
class Reached:
    """`routers`: the first is the one that was asked about. `candidates`: those of each router, in its order, by its id.

    `problems`: sentences about what cannot be used; what it leads to is only whole without any.
    """

    routers: dict[UUID, StoredVersion] = field(default_factory=dict)
    agents: dict[UUID, StoredVersion] = field(default_factory=dict)
    candidates: dict[UUID, tuple[StoredVersion, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def agent_by_fallbacks(self) -> StoredVersion:
        """Who is there until somebody was chosen. Only without problems."""
        found = next(iter(self.routers.values()))
        while isinstance(body := found.body, RouterVersion):
            of_it = self.candidates[found.definition.definition_id]
            found = next(
                stored for each, stored in zip(body.candidates, of_it, strict=True) if each.called == body.fallback
            )
        return found


async def reach(reader: Reader, tenant_id: UUID, router: StoredVersion) -> Reached:
    found = Reached({router.definition.definition_id: router})
    to_visit = [router]
    while to_visit:
        visited = to_visit.pop(0)
        assert isinstance(visited.body, RouterVersion)
        of_it = []
        for candidate in visited.body.candidates:
            stored = await references.enabled(
                reader, tenant_id, kind=KINDS[candidate.kind], reference=candidate.link, namespace=visited.definition.namespace
            )  # fmt: skip
            if isinstance(stored, str):
                found.problems.append(f"Router '{visited.definition.name}' cannot be used. {stored}")
                continue
            of_it.append(stored)
            if _is_new(found, stored) and candidate.kind is CandidateKind.ROUTER:
                to_visit.append(stored)
        found.candidates[visited.definition.definition_id] = tuple(of_it)
    found.problems += _chain_problems(found, router)
    return found


def _is_new(found: Reached, stored: StoredVersion) -> bool:
    """Keeps what was not there yet; one version of each is enough for a seat, and two could not be told apart."""
    known = found.agents if stored.definition.kind is DefinitionKind.AGENT else found.routers
    definition = stored.definition
    first = known.setdefault(definition.definition_id, stored)
    if first.number != stored.number:
        found.problems.append(
            f"The {NOUNS[definition.kind]} '{definition.namespace}/{definition.name}' could be chosen in two versions, "
            f"{first.number} and {stored.number}. Let all candidates take the same one."
        )
    return first is stored


def _chain_problems(found: Reached, router: StoredVersion) -> Iterator[str]:
    """Disabling a version can make an older one the latest, so that a circle comes to be which no saving saw."""
    links = {
        router_id: [each.definition.definition_id for each in of_it if each.definition.definition_id in found.routers]
        for router_id, of_it in found.candidates.items()
    }
    start = router.definition.definition_id

    def named(chain: tuple[UUID, ...]) -> list[str]:
        definitions = (found.routers[router_id].definition for router_id in chain)
        return [f"{definition.namespace}/{definition.name}" for definition in definitions]

    faults = faults_of_chains(named(circle(links, start)), lambda: named(too_long(links, start)))
    yield from (fault.message for fault in faults)
