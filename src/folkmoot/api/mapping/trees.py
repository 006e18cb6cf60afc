"""Trees of runs as the API shows them."""

from __future__ import annotations

from folkmoot.domain.runs import ProcessType
from folkmoot.domain.trees import Node, Tree
from folkmoot.wire import runs as wire
from folkmoot.wire.formats import VersionReference


def tree(found: Tree) -> wire.ProcessTree:
    counts = wire.ProcessTreeCounts(total=found.total, active=found.active, ended=found.total - found.active)
    return wire.ProcessTree(
        root_process_id=found.root_id, counts=counts, is_cut=found.is_cut, nodes=tuple(node(each) for each in found.nodes)
    )  # fmt: skip


def node(found: Node) -> wire.ProcessNode:
    interaction = None
    if (
        found.type is ProcessType.INTERACTION
        and found.interaction_id is not None
        and found.interaction_version is not None
    ):
        interaction = VersionReference(id=found.interaction_id, version=found.interaction_version)
    return wire.ProcessNode(
        id=found.run_id, type=wire.ProcessType(found.type), agent_run=found.agent_run, name=found.name, namespace_name=found.namespace, interaction=interaction,
        status=wire.InteractionProcessStatus(found.status), parent_process_id=found.parent_id, depth=found.depth,
        children=found.children, waiting=found.waiting, user_created_by_id=found.created_by, started_by=found.started_by,
        date_created=found.created_at, date_started=found.started_at, date_ended=found.ended_at,
    )  # fmt: skip
