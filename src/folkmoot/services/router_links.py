"""Whether a router that is to be saved would close a circle of routers, or make a chain of them too long (conversation.md, Routers).

Chains are looked at as they would be with it: from it on, and up to it, for another router may lead to it. Deliberately absent: its
own links, which `definition_links` settles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from uuid import UUID

from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.router_chains import circle, too_long
from folkmoot.domain.routers import MAX_DEPTH, RouterVersion
from folkmoot.kernel.errors import Fault, NotFound
from folkmoot.services import references
from folkmoot.store import routers
from folkmoot.store.database import Reader
from folkmoot.store.routers import RouterLink

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
    titles = {link.router_id: link.title for link in known} | {own: f"{namespace}/{name}"}
    links, start = _graph(known, own, version), (own, _NEW)
    return tuple(faults_of_chains(_named(circle(links, start), titles), lambda: _named(too_long(links, start), titles)))


def faults_of_chains(closed: Sequence[str], long: Callable[[], Sequence[str]]) -> Iterator[Fault]:
    """Of the names of routers: those of a circle, and those of a chain that is too long, asked for only without a circle."""
    if closed:
        message = f"These routers choose each other in a circle: {' -> '.join(closed)}. Take one of them out."
        yield Fault(_POINTER, message)
    elif names := long():
        message = f"Routers may follow each other {MAX_DEPTH} deep; here are more: {' -> '.join(names)}. Take one out."
        yield Fault(_POINTER, message)


def _graph(known: Sequence[RouterLink], own: UUID | None, version: RouterVersion) -> dict[Node, list[Node]]:
    """What leads to what, `own` without a version leading to the version that is to be."""
    latest: dict[UUID | None, int] = {**{link.router_id: link.number for link in known}, own: _NEW}
    routed = [each.router for each in version.candidates if each.router is not None]
    chosen: list[tuple[Node, UUID | None, int | None]] = [
        *(((link.router_id, link.number), link.chosen_id, link.chosen_version) for link in known),
        *(((own, _NEW), link.definition_id, link.version) for link in routed),
    ]
    links: dict[Node, list[Node]] = {}
    for node, router_id, number in chosen:
        if router_id is not None and router_id in latest:
            links.setdefault(node, []).append((router_id, number or latest[router_id]))
    return links


def _named(chain: Sequence[Node], titles: Mapping[UUID | None, str]) -> list[str]:
    return [titles[router_id] for router_id, _ in chain]
