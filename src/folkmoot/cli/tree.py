"""A tree of runs on a terminal: each below what started it. Deliberately absent: their conversations."""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.cli import screen
from folkmoot.domain.trees import MOST_COUNTED, Node, Tree


def lines(tree: Tree) -> Iterator[str]:
    """A line for each run: name, status, whether it was asked to stop, how much it asks people, id; then what was left out."""
    last: dict[int, int] = {}  # of each node whether something follows beside it: the index of the last of its level
    nodes = tree.nodes
    for index, node in enumerate(nodes):
        last = {depth: end for depth, end in last.items() if depth <= node.depth}
        if last.get(node.depth, -1) < index:
            last[node.depth] = _last_beside(nodes, index)
        yield f"{_branch(last, node.depth, index)}{_words(node)}"
    if tree.is_cut:
        more = " or more" if tree.total >= MOST_COUNTED else ""
        yield f"… and {tree.total - len(nodes):,}{more} later runs, which `folkmoot runs list --root {tree.root_id}` lists"


def _last_beside(nodes: tuple[Node, ...], index: int) -> int:
    """Where the last run stands that has the same parent."""
    found = index
    for later in range(index + 1, len(nodes)):
        if nodes[later].depth < nodes[index].depth:
            break
        if nodes[later].depth == nodes[index].depth:
            found = later
    return found


def _branch(last: dict[int, int], depth: int, index: int) -> str:
    if depth == 0:
        return ""
    trunk = "".join("│  " if last.get(level, -1) > index else "   " for level in range(1, depth))
    return f"{trunk}{'├─' if last[depth] > index else '└─'} "


def _words(node: Node) -> str:
    name = node.name if node.namespace is None else f"{node.namespace}/{node.name}"
    kind = "" if node.namespace is not None else f" ({node.type.value})"
    stops = ", asked to stop" if node.is_to_stop else ""
    asks = f", asks {node.waiting}" if node.waiting else ""
    return f"{screen.printable(name)}{kind}: {node.status.value}{stops}{asks}  {node.run_id}"
