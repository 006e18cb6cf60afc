"""The runs of a tree. Deliberately absent: their conversations."""

from folkmoot.wire.formats import Datetime, ResponseShape, Uuid, VersionReference
from folkmoot.wire.runs.process import ProcessTreeCounts, ProcessType
from folkmoot.wire.runs.progress import InteractionProcessStatus


class ProcessNode(ResponseShape):
    """A run in its tree: `depth` is 0 at the root, `name` its interaction's, agent's or app's, `startedBy` the name of who started it.
    `agentRun`: of an agent run its number, by which it is asked for.

    `children`: how many runs it started itself, 10,000 at most; `waiting`: how many things it asks people now.
    """

    id: Uuid
    type: ProcessType
    agent_run: int | None
    name: str
    namespace_name: str | None
    interaction: VersionReference | None
    status: InteractionProcessStatus
    parent_process_id: Uuid | None
    depth: int
    children: int
    waiting: int
    user_created_by_id: Uuid
    started_by: str
    date_created: Datetime
    date_started: Datetime | None
    date_ended: Datetime | None


class ProcessTree(ResponseShape):
    """All runs of a tree, each after its parent. `isCut`: it has more, and these are the oldest; `counts` are of these and the others."""

    root_process_id: Uuid
    counts: ProcessTreeCounts
    is_cut: bool
    nodes: tuple[ProcessNode, ...]
