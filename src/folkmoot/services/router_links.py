"""Whether a router that is to be saved would close a circle of routers, or make a chain of them too long (conversation.md, Routers).

Chains are looked at as they would be with it: from it on, and up to it, for another router may lead to it. Deliberately absent: its
own links, which `definition_links` settles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.references import VersionLink
from folkmoot.domain.router_chains import circle, too_long
from folkmoot.domain.routers import MAX_DEPTH, RouterVersion
from folkmoot.kernel.errors import Fault, NotFound
from folkmoot.services import references
from folkmoot.store import routers
from folkmoot.store.database import Reader

_POINTER = "/candidates"
_NEW = -1  # the number of the version that is to be
Node = tuple[UUID | None, int]


async def chain_faults(
    reader: Reader, tenant_id: UUID, *, namespace: str, name: str, version: RouterVersion
) -> tuple[Fault, ...]:
    """`version`: with its links settled. A new router can be in no circle, for nothing leads to it yet; its chains may be too long."""
    try:
        reference = Reference(name, namespace)
        found = await references.find(reader, tenant_id, kind=DefinitionKind.ROUTER, reference=reference)
        own: UUID | None = found.definition_id
    except NotFound:
        own = None
    known = await routers.links(reader, tenant_id)
    routed = [each.router for each in version.candidates if each.router is not None]
    graph = Graph(known, own, routed, title=f"{namespace}/{name}")
    return tuple(faults_of_chains(graph.circle(), graph.too_long))


def faults_of_chains(closed: Sequence[str], long: Callable[[], Sequence[str]]) -> Iterator[Fault]:
    """Of the names of routers: those of a circle, and those of a chain that is too long, asked for only without a circle."""
    if closed:
        message = f"These routers choose each other in a circle: {' -> '.join(closed)}. Take one of them out."
        yield Fault(_POINTER, message)
    elif names := long():
        message = f"Routers may follow each other {MAX_DEPTH} deep; here are more: {' -> '.join(names)}. Take one out."
        yield Fault(_POINTER, message)


class Graph:
    """Which versions lead to which once `own` (null: it is new) has a version with `links`. What leads to the latest one leads to that."""

    def __init__(
        self, known: Sequence[VersionLink], own: UUID | None, links: Sequence[Reference], *, title: str
    ) -> None:
        self._titles: dict[UUID | None, str] = {**{link.definition_id: link.title for link in known}, own: title}
        self._links: dict[Node, list[Node]] = {}
        self._start: Node = (own, _NEW)
        latest: dict[UUID | None, int] = {**{link.definition_id: link.number for link in known}, own: _NEW}
        followed: list[tuple[Node, UUID | None, int | None]] = [
            *(((link.definition_id, link.number), link.linked_id, link.linked_version) for link in known),
            *((self._start, link.definition_id, link.version) for link in links),
        ]
        for node, following, number in followed:
            if following is not None and following in latest:
                self._links.setdefault(node, []).append((following, number or latest[following]))

    def circle(self) -> list[str]:
        """The titles of a circle that the version closes; none if it closes none."""
        return self._named(circle(self._links, self._start))

    def too_long(self, most: int = MAX_DEPTH) -> list[str]:
        """The titles of a chain of more than `most` through the version; only where it reaches no circle."""
        return self._named(too_long(self._links, self._start, most))

    def _named(self, chain: Sequence[Node]) -> list[str]:
        return [self._titles[definition_id] for definition_id, _ in chain]
