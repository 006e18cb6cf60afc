"""Trees of runs: who started whom, and how each stands. Deliberately absent: how a stop goes down (`services.trees`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ProcessType

MOST_NODES = 1000  # of a tree that is shown
MOST_COUNTED = 10_000  # of a tree's runs, and of a run's children: where there are more, so many are said


@dataclass(frozen=True, slots=True)
class Node:
    """A run in its tree. `name`: its interaction's or app's; `namespace` and the interaction are null for an App run. `depth`: 0 at
    the root. `children`: the runs it started itself; `waiting`: the things that it asks people now; `is_to_stop`: it was asked to, and has not
    ended yet. `agent_run`: the number of an agent run, whose agent stands for its interaction."""

    run_id: UUID
    type: ProcessType
    parent_id: UUID | None
    status: RunStatus
    name: str
    namespace: str | None
    interaction_id: UUID | None
    interaction_version: int | None
    created_by: UUID
    started_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    children: int
    waiting: int
    depth: int = 0
    is_to_stop: bool = False
    agent_run: int | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """The oldest MOST_NODES runs of a tree, a parent before its children. `total`, `active`: of its oldest MOST_COUNTED."""

    root_id: UUID
    total: int
    active: int
    nodes: tuple[Node, ...]

    @property
    def is_cut(self) -> bool:
        return len(self.nodes) < self.total


def with_depths(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes, each with its depth, a parent before what it started, siblings in the order given."""
    below: dict[UUID | None, list[Node]] = {}
    known = {node.run_id: node for node in nodes}
    for node in known.values():
        below.setdefault(node.parent_id if node.parent_id in known else None, []).append(node)
    made: list[Node] = []
    waiting = [(node, 0) for node in reversed(below.get(None, []))]
    while waiting:
        node, depth = waiting.pop()
        made.append(replace(node, depth=depth))
        waiting += [(child, depth + 1) for child in reversed(below.get(node.run_id, []))]
    return tuple(made)
