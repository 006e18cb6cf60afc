"""Runs as the API shows them: whole, with details, and as a row of a list.

Deliberately absent: the kernel's claims, sequences and signals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from folkmoot.api.mapping import overrides
from folkmoot.api.mapping.credentials import credential_failures, run_keys
from folkmoot.api.mapping.items import context
from folkmoot.api.mapping.pending import LISTED_CHARACTERS, deferred_tool_calls, pending_approval
from folkmoot.api.mapping.swarms import swarm
from folkmoot.api.mapping.teams import agents_of_turns, managed_dispatch, routing_decisions
from folkmoot.api.mapping.usage import counts
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import MAIN_THREAD, Floor, StoredItem, ToolResult
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import ProcessType, Run
from folkmoot.services.runs import RunDetails, RunView, WholeRun
from folkmoot.store.conversations import ModelCallRecord
from folkmoot.wire import runs as wire
from folkmoot.wire.formats import NameValuePair, VersionReference


def status_of(run: Run) -> wire.InteractionProcessStatus:
    return wire.InteractionProcessStatus(run.status)


def process(whole: WholeRun) -> wire.InteractionProcess:
    return wire.InteractionProcess(**_whole_fields(whole))


def process_with_details(details: RunDetails) -> wire.InteractionProcessWithDetails:
    """With the names that a page about the run shows. `cost` is null where a part of it is not known."""
    tree = details.tree
    return wire.InteractionProcessWithDetails(
        **_whole_fields(details.whole),
        interaction_name=details.whole.resolved.interaction_name,
        namespace_name=details.whole.resolved.namespace,
        user_created_by_name=details.user_name,
        automation_name=None,
        cost=details.total.whole_cost,
        tree_counts=wire.ProcessTreeCounts(total=tree.total, active=tree.active, ended=tree.total - tree.active),
        gated_tools=_gated(details.whole.resolved),
    )


def row(view: RunView) -> wire.InteractionProcess:
    """A row of a list: its conversation and usage are empty (B63)."""
    return wire.InteractionProcess(
        **_fields(view, limit=LISTED_CHARACTERS),
        context=context(()),
        token_usage=(),
        credential_failures=(),
        routing_decisions=(),
    )


def execution_time(view: RunView) -> timedelta:
    """Time at work, the stretch under way included, be it spent waiting for sub-runs."""
    run = view.run
    since = run.started_at if run.type is ProcessType.APP else run.claimed_at
    if run.status is RunStatus.RUNNING and since is not None:
        return run.execution_time + max(view.now - since, timedelta(0))
    if run.awaits_since is not None:
        return run.execution_time + max(view.now - run.awaits_since, timedelta(0))
    return run.execution_time


def token_usage(
    calls: Sequence[ModelCallRecord], *, agents: Mapping[str, UUID] | None = None, chosen: Mapping[UUID, UUID] | None = None,
    open_turns: frozenset[UUID] | None = None,
) -> tuple[wire.InteractionProcessTokenUsage, ...]:  # fmt: skip
    """A record per turn, participant, model, key and tier, in the order of their first calls.

    `agents`: the agents' ids by the participants' names; `chosen`: those whom routers gave a turn to, by its id. `open_turns`: turns that go on; if it is not known, that of the call
    which began last. A call whose usage nobody told counts with zeros.
    """
    if open_turns is None:
        open_turns = frozenset({_turn(calls[-1])}) if calls else frozenset()
    groups: dict[tuple[Any, ...], list[ModelCallRecord]] = {}
    for call in calls:
        key = (
            _turn(call), call.participant, call.provider, call.model, call.credential, call.is_own_license, call.service_tier,
        )  # fmt: skip
        groups.setdefault(key, []).append(call)
    return tuple(_usage(group, agents or {}, chosen or {}, open_turns) for group in groups.values())


def turns_under_way(items: Iterable[StoredItem], *, is_ended: bool) -> frozenset[UUID]:
    """The turn that has the floor; while a direct question is answered in it, the answering one; and those of dispatched work."""
    turns: list[UUID] = []
    dispatched: dict[str, UUID] = {}
    for stored in items:
        item = stored.item
        if item.turn_id is None:
            continue
        if isinstance(item.detail, Floor) and item.detail.dispatch is not None:
            dispatched[item.detail.dispatch] = item.turn_id
        elif item.thread_id != MAIN_THREAD:
            continue
        elif isinstance(item.body, ToolResult):
            dispatched.pop(item.body.tool_call_id, None)
        elif isinstance(item.detail, Floor):
            turns = [*turns[:1], item.turn_id] if item.detail.question is not None else [item.turn_id]
        elif turns[1:] and item.turn_id == turns[0]:
            turns = turns[:1]
    return frozenset() if is_ended else frozenset((*turns, *dispatched.values()))


def _usage(
    group: Sequence[ModelCallRecord],
    agents: Mapping[str, UUID],
    chosen: Mapping[UUID, UUID],
    open_turns: frozenset[UUID],
) -> wire.InteractionProcessTokenUsage:
    first = group[0]
    return wire.InteractionProcessTokenUsage(
        turn_id=_turn(first),
        date=first.started_at,
        provider=first.provider,
        model=first.model,
        agent_name=first.participant,
        agent_id=chosen.get(_turn(first)) or agents.get(first.participant),
        usages=counts(*(call.usage for call in group if call.usage is not None)),
        finished=_turn(first) not in open_turns and all(call.ended_at is not None for call in group),
        credential_id=first.credential,
        is_own_license=first.is_own_license,
        tier=first.service_tier,
    )


def _turn(call: ModelCallRecord) -> UUID:
    return call.turn_id or call.model_call_id


def _whole_fields(whole: WholeRun) -> dict[str, Any]:
    is_ended = whole.view.run.status in FINAL
    return {
        **_fields(whole.view),
        "context": context(whole.items),
        "routing_decisions": tuple(routing_decisions(whole.items)),
        "credential_failures": credential_failures(whole.credential_failures),
        "token_usage": token_usage(
            whole.calls,
            agents=_agents(whole.resolved),
            chosen=agents_of_turns(whole.items),
            open_turns=turns_under_way(whole.items, is_ended=is_ended),
        ),
    }


def _gated(resolved: ResolvedInteraction) -> tuple[wire.GatedTool, ...]:
    gated = (
        wire.GatedTool(agent_name=participant.name, function_name=tool.name)
        for participant in resolved.participants
        for variant in participant.variants
        for tool in variant.tools
        if tool.is_gated and tool.name not in resolved.disabled_tools
    )
    return tuple(dict.fromkeys(gated))


def _agents(resolved: ResolvedInteraction) -> dict[str, UUID]:
    return {participant.name: participant.agent_id for participant in resolved.participants}


def _approval(view: RunView, *, limit: int | None) -> dict[str, Any]:
    """The gated call that the run waits for, those behind it, and the dispatch that it is of: null unless it does."""
    entry = view.pending
    if (
        view.run.status is not RunStatus.PENDING_APPROVAL
        or entry is None
        or entry.pending.kind is not PendingKind.APPROVAL
    ):
        return {"pending_approval": None, "deferred_tool_calls": None, "managed_dispatch": None}
    return {
        "pending_approval": pending_approval(entry, limit=limit),
        "deferred_tool_calls": deferred_tool_calls(entry.pending.card, limit=limit),
        "managed_dispatch": managed_dispatch(entry.pending.card, view.dispatch_began_at, limit=limit),
    }


def _fields(view: RunView, *, limit: int | None = None) -> dict[str, Any]:
    """Every field but those that grow. `limit`: how many characters of a pending call's texts are shown; null for all."""
    run = view.run
    return {
        "id": run.run_id,
        "tenant_id": run.tenant_id,
        "user_created_by_id": run.created_by,
        "date_created": run.created_at,
        "date_updated": run.updated_at,
        "interaction": VersionReference(id=run.interaction_id, version=run.interaction_version),
        "date_started": run.started_at,
        "date_ended": run.ended_at,
        "execution_time": execution_time(view),
        "inputs": tuple(NameValuePair(name=name, value=value) for name, value in view.inputs),
        "output": run.output,
        "failure_details": run.failure_details,
        "status": status_of(run),
        "date_runner_ping": run.pinged_at,
        "date_runner_claimed": run.claimed_at,
        "hostname": run.hostname,
        "parent_process_id": run.parent_id,
        "parent_process_type": wire.ProcessType(run.parent_type) if run.parent_type is not None else None,
        "root_process_id": run.tree_root_id if run.tree_root_id != run.run_id else None,
        "response_json_schema": run.response_json_schema,
        "disabled_tools": view.disabled_tools or None,
        "duration_auto_termination": run.duration_auto_termination,
        "duration_warning_to_ai": view.duration_warning_to_ai,
        "ai_model_overrides": overrides.shown(view.ai_model_overrides),
        "retention_lease_active": False,
        "before_timeout_status": wire.InteractionProcessStatus(run.before_timeout_status)
        if run.before_timeout_status
        else None,
        **_approval(view, limit=limit),
        **run_keys(view.keys),
        "swarm": swarm(view.swarm) if view.swarm is not None else None,
        **_OF_LATER_PARTS,
    }


# Nothing sets these yet.
_OF_LATER_PARTS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "waiting_for_lane_since_utc",
            "triggered_by_automated_action_id",
            "triggered_by_automated_action_name",
            "retention_lease_applied_at_utc",
            "retention_lease_applied_by_user_id",
            "retention_lease_applied_by_user_name",
            "retention_lease_note",
            "retention_lease_inherited_from_process_id",
            "web_download_partition_id",
            "web_access_overrides",
        )
    ),
    **dict.fromkeys(("looms", "loom_gifts"), ()),
}
