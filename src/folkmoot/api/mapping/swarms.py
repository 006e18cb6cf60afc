"""A run's place in its tree of sub-runs, as the API shows it."""

from __future__ import annotations

from folkmoot.api.mapping.items import author
from folkmoot.domain.items import Author, AuthorKind
from folkmoot.domain.swarms import AwaitView, SubRun, SwarmView
from folkmoot.wire import runs as wire
from folkmoot.wire.formats import VersionReference


def swarm(found: SwarmView) -> wire.InteractionProcessSwarm:
    limits = found.limits
    return wire.InteractionProcessSwarm(
        root_id=found.root_id,
        depth=found.depth,
        limits=wire.InteractionProcessSwarmLimits(
            max_depth=limits.max_depth, max_concurrent=limits.max_concurrent, max_total=limits.max_total
        ),
        started=found.started,
        running=found.running,
        children=tuple(_child(child) for child in found.children),
        released=found.is_released,
        awaiting=_await(found.awaiting) if found.awaiting is not None else None,
    )


def _child(child: SubRun) -> wire.InteractionProcessSwarmChild:
    return wire.InteractionProcessSwarmChild(
        process_id=child.run_id,
        interaction=VersionReference(id=child.interaction_id, version=child.interaction_version),
        name=child.name,
        status=wire.InteractionProcessStatus(child.status),
        started_by=child.started_by,
        date_started=child.started_at,
        date_ended=child.ended_at,
    )


def _await(found: AwaitView) -> wire.InteractionProcessSwarmAwait:
    awaits = found.awaits
    taken_by = author(Author(AuthorKind.AGENT, awaits.participant, awaits.author_id))
    return wire.InteractionProcessSwarmAwait(
        id=awaits.await_id,
        process_ids=awaits.run_ids,
        all=awaits.is_all,
        participant_name=awaits.participant,
        thread_id=awaits.thread_id,
        taken_by=taken_by if found.is_taken else None,
        date_started=found.started_at,
    )
