"""Routers that choose routers, and agents that have specialists: circles, and chains that are too long. Nodes are versions, whatever stands for them.

Deliberately absent: where routers are kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from folkmoot.domain.routers import MAX_DEPTH

Node = TypeVar("Node", bound=Hashable)
Links = Mapping[Node, Sequence[Node]]


def circle(links: Links[Node], start: Node) -> tuple[Node, ...]:
    """A way from `start` on that comes back to a router on it, ending with that one; () if there is none."""
    done: set[Node] = set()
    way: list[Node] = [start]
    open_ends: list[Iterator[Node]] = [iter(links.get(start, ()))]
    while way:
        following = next(open_ends[-1], None)
        if following is None:
            done.add(way.pop())
            open_ends.pop()
        elif following in way:
            return (*way[way.index(following) :], following)
        elif following not in done:
            way.append(following)
            open_ends.append(iter(links.get(following, ())))
    return ()


def too_long(links: Links[Node], start: Node, most: int = MAX_DEPTH) -> tuple[Node, ...]:
    """A chain through `start` of more than `most` of them, as far as it shows that; () if there is none.

    No circle can be reached from `start`.
    """
    down = _longest(links, start, most)
    backwards: dict[Node, list[Node]] = {}
    for node, following in links.items():
        for each in following:
            backwards.setdefault(each, []).append(node)
    up = _longest(backwards, start, most)
    chain = (*reversed(up), *down[1:])
    return chain if len(chain) > most else ()


def _longest(links: Links[Node], start: Node, most: int) -> list[Node]:
    """The longest way from `start`, cut at one more than may be. Layer by layer: each is what the one before leads to."""
    layers: list[dict[Node, Node | None]] = [{start: None}]
    while len(layers) <= most:
        found = {each: node for node in layers[-1] for each in links.get(node, ())}
        if not found:
            break
        layers.append({**found})
    node: Node | None = next(iter(layers[-1]))
    way: list[Node] = []
    for layer in reversed(layers):
        assert node is not None
        way.append(node)
        node = layer[node]
    return way[::-1]
