"""Resolves what an agent run starts with: the agent with its model and tools as any participant, and the loop that it is pinned to.

An agent run is resolved as an interaction of the agent alone, whose prompt is the goal: what a start checks of a participant holds here
too. Of its tools only those of the whitelist are left. Deliberately absent: writing, and channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.agent_runs import PinnedLoop, PinnedSpecialist
from folkmoot.domain.agent_settings import AgentRunSettings
from folkmoot.domain.budgets import Budget, faults_of_budget, lower
from folkmoot.domain.calls import Tool
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    DataType,
    DefinitionKind,
    InteractionVersion,
    Participant,
    PromptInput,
    Reference,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.routers import CandidateKind
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.tool_names import problem_in_agent_runs
from folkmoot.kernel.errors import BadInput, Fault, FolkmootError, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_rights, budgets, references
from folkmoot.services.closure import Closure, StartFields, Workbench
from folkmoot.services.start_credentials import StartCredentials, lacks
from folkmoot.store.database import Reader

GOAL = "goal"
_LONGEST_GOAL = 200_000


@dataclass(frozen=True, slots=True)
class Above:
    """The run that delegates: its loop, and whose rights its calls need."""

    loop: PinnedLoop


async def resolve(
    reader: Reader, caller: Caller, *, agent: StoredVersion, goal: str, request: StartFields, bench: Workbench, new_id: NewId,
    budget: Budget | None = None, above: Above | None = None,
) -> ResolvedInteraction:  # fmt: skip
    """The closure with its keys. `budget`: lowers the agent's own. `above`: of a delegation.

    Raises BadInput (all that is wrong, each thing a fault), BudgetSpent, and NotPermitted where the agent's owner may not have tools used.
    """
    assert isinstance(agent.body, AgentVersion)
    settings = agent.body.runs
    day = await budgets.refuse_where_used_up(reader, caller)
    owner_id = settings.owner or agent.definition.created_by
    refusal = await agent_rights.refusal_of(reader, caller.tenant_id, user_ids=(owner_id,))
    if refusal is not None:
        raise NotPermitted(f"The run was not started. {refusal}")
    stored = _as_interaction(agent)
    request = replace(request, inputs=((GOAL, goal),))
    closure = Closure(reader, caller.tenant_id, interaction=stored, request=request, bench=bench)
    keys = StartCredentials(reader, caller, stored, request, new_id, [])
    resolved = await keys.settled(await closure.resolve())
    lacking = [] if closure.faults or keys.faults else await lacks(reader, caller, resolved=resolved, bench=bench)
    specialists, missing = await _specialists(reader, caller.tenant_id, agent, settings)
    found = [*_faults_of_goal(goal), *closure.faults, *closure.later, *keys.faults, *lacking, *missing]
    found += [*_faults_of_tools(resolved, agent, settings), *faults_of_budget(budget, None)]
    made = _in_loop(resolved, settings, _pinned(agent, settings, owner_id, specialists, above), budget)
    found += budgets.unpriced(made, day, bench.prices_of)
    faults = tuple(dict.fromkeys(_placed(fault) for fault in found))
    if faults:
        name = f"{agent.definition.namespace}/{agent.definition.name}"
        raise BadInput(f"The run of the agent '{name}' was not started. {faults[0].message}", faults)
    return made


def _as_interaction(agent: StoredVersion) -> StoredVersion:
    """The agent alone, with the goal for a task."""
    link = Reference(definition_id=agent.definition.definition_id, version=agent.number)
    body = InteractionVersion(
        agents=(AgentBinding(link, kind=CandidateKind.AGENT),),
        prompt=f"%%{GOAL}%%",
        inputs_prompt=(PromptInput(DataType.STRING, GOAL, is_required=True),),
        context_settings={"mode": "Compact"},
    )
    return replace(agent, body=body)


def _pinned(
    agent: StoredVersion, settings: AgentRunSettings, owner_id: UUID, specialists: tuple[PinnedSpecialist, ...], above: Above | None
) -> PinnedLoop:  # fmt: skip
    lineage = above.loop.lineage if above is not None else ()
    owners = (*above.loop.owners_above, above.loop.owner_id) if above is not None else ()
    return PinnedLoop(
        owner_id,
        (*lineage, agent.definition.definition_id),
        specialists,
        tuple(dict.fromkeys(owners)),
        settings.maximum_iterations,
        settings.budget.tool_calls,
    )


def _in_loop(
    resolved: ResolvedInteraction, settings: AgentRunSettings, loop: PinnedLoop, budget: Budget | None
) -> ResolvedInteraction:
    own = Budget(settings.budget.tokens, settings.budget.money, settings.budget.calls)
    return replace(
        resolved,
        participants=tuple(_within(participant, settings) for participant in resolved.participants),
        loop=loop,
        budget=lower(own if own.is_limit else None, budget),
        duration_auto_termination=settings.budget.working_time,
        duration_human_timeout=settings.consent_time,
    )


def _within(participant: Participant, settings: AgentRunSettings) -> Participant:
    """With the tools of the whitelist alone, each with the rules that its calls are held against."""
    allowed = [tool for tool in participant.tools if tool.name in settings.tool_whitelist]
    return replace(participant, tools=tuple(_ruled(tool, settings) for tool in allowed))


def _ruled(tool: Tool, settings: AgentRunSettings) -> Tool:
    return replace(tool, consent_rules=tuple(rule for rule in settings.consent_rules if rule.tool == tool.name))


async def _specialists(
    reader: Reader, tenant_id: UUID, agent: StoredVersion, settings: AgentRunSettings
) -> tuple[tuple[PinnedSpecialist, ...], list[Fault]]:
    """Whom the agent may delegate to, at the versions of now (B09)."""
    found: list[PinnedSpecialist] = []
    faults: list[Fault] = []
    for link in settings.specialists:
        stored = await references.enabled(
            reader, tenant_id, kind=DefinitionKind.AGENT, reference=link, namespace=agent.definition.namespace
        )
        if isinstance(stored, str):
            faults.append(Fault("", f"A specialist cannot be had. {stored}"))
            continue
        assert isinstance(stored.body, AgentVersion)
        definition = stored.definition
        found.append(
            PinnedSpecialist(definition.name, definition.definition_id, stored.number, stored.body.description)
        )
    return tuple(found), faults


def _faults_of_goal(goal: str) -> Iterator[Fault]:
    if not goal.strip():
        yield Fault("/goal", "Say what the run is to achieve.")
    if len(goal) > _LONGEST_GOAL:
        yield Fault(
            "/goal", f"A goal has at most {_LONGEST_GOAL:,} characters, and this one {len(goal):,}; shorten it."
        )


def _faults_of_tools(
    resolved: ResolvedInteraction, agent: StoredVersion, settings: AgentRunSettings
) -> Iterator[Fault]:
    """A function that the agent names and this server lacks is a fault already, and none of the whitelist."""
    assert isinstance(agent.body, AgentVersion)
    names = {tool.name for participant in resolved.participants for tool in participant.tools}
    names.update(agent.body.function_tools)
    for name in settings.tool_whitelist:
        if name not in names:
            yield Fault("", f"The agent's whitelist names the tool '{name}', which it has not. Correct the agent.")
        problem = problem_in_agent_runs(name)
        if problem is not None:
            yield Fault("", problem)


def _placed(fault: Fault) -> Fault:
    """What is wrong with the goal is wrong there in the request."""
    return Fault("/goal", fault.message) if fault.pointer.startswith("/inputs") else fault


def shown(error: FolkmootError) -> str:
    """All that is wrong with a start, so that a model can put it right at once."""
    faults = error.faults if isinstance(error, BadInput) else ()
    return "\n".join([str(error), *(f"- {fault}" for fault in faults[1:])])
