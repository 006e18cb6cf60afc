"""Who takes part in a run: each seat with all that its turns need, be it one agent's or those of a router's choice.

Everything wrong is gathered, so that it can be put right at once. Deliberately absent: the interaction's own part (`closure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import UUID

from folkmoot.domain.calls import Tool
from folkmoot.domain.checking import later_fields, operations_of
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    DefinitionKind,
    InteractionVersion,
    Participant,
    StoredVersion,
)
from folkmoot.domain.model_calls import Sampling
from folkmoot.domain.operations import OperationTarget, Stdio
from folkmoot.domain.participant_checks import faults_of_participant
from folkmoot.domain.prompts import fill
from folkmoot.domain.routers import CandidateKind, RouterVersion
from folkmoot.kernel.errors import Fault
from folkmoot.services import references
from folkmoot.services.model_closure import Models
from folkmoot.services.overrides import Overrides
from folkmoot.services.router_closure import Routers
from folkmoot.services.router_reach import reach
from folkmoot.services.start_fields import Workbench
from folkmoot.services.tooling import Tooling
from folkmoot.store.database import Reader


class Seats:
    """`values`: of the inputs of prompts, by name. `names`: of the participants so far, whatever is wrong with them; `routed`: of
    those for whom a router's model is asked. `tool_names`: of all that there would be if none was disabled."""

    def __init__(
        self, reader: Reader, tenant_id: UUID, *, interaction: StoredVersion, values: Mapping[str, str], bench: Workbench,
        tooling: Tooling, models: Models, overrides: Overrides,
    ) -> None:  # fmt: skip
        assert isinstance(interaction.body, InteractionVersion)
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = interaction.definition.namespace
        self._body = interaction.body
        self._values = values
        self._bench = bench
        self._tooling = tooling
        self._models = models
        self._overrides = overrides
        self._routers = Routers(interaction=interaction.body, values=values, models=models, overrides=overrides)
        self.names: list[str] = []
        self.routed: set[str] = set()
        self.tool_names: set[str] = set()
        self.faults: list[Fault] = []
        self.later: list[Fault] = []

    async def participant(self, binding: AgentBinding) -> Participant | None:
        """Null if it cannot be had; `faults`, those of the models and of the tooling say why."""
        kind = DefinitionKind.ROUTER if binding.kind is CandidateKind.ROUTER else DefinitionKind.AGENT
        found = await references.enabled(
            self._reader, self._tenant_id, kind=kind, reference=binding.agent, namespace=self._namespace
        )
        if isinstance(found, str):
            self.faults.append(Fault("", found))
            return None
        name = binding.name if binding.name is not None else found.definition.name
        self.names.append(name)
        if isinstance(found.body, RouterVersion):
            return await self._routed(name, found, found.body, binding)
        return await self._of_agent(name, found, binding)

    async def _routed(
        self, name: str, router: StoredVersion, body: RouterVersion, binding: AgentBinding
    ) -> Participant | None:
        """A seat with each agent that can be chosen for it; until one is, that is whom the fallbacks lead to."""
        reached = await reach(self._reader, self._tenant_id, router)
        self.faults += [Fault("", problem) for problem in reached.problems]
        routers = await self._routers.pinned(name, reached)
        self.faults += self._routers.faults_of(reached)
        if any(each.model is not None for each in routers):
            self.routed.add(name)
        made = [await self._of_agent(name, agent, binding) for agent in reached.agents.values()]
        candidates = tuple(each for each in made if each is not None)
        if reached.problems or len(candidates) < len(made):
            return None
        first = reached.agent_by_fallbacks().definition.definition_id
        seat = next(each for each in candidates if each.agent_id == first)
        description = binding.description or body.description or seat.description
        return replace(seat, description=description, routers=routers, candidates=candidates)

    async def _of_agent(self, name: str, agent: StoredVersion, binding: AgentBinding) -> Participant | None:
        assert isinstance(agent.body, AgentVersion)
        definition = agent.definition
        self.note_later(agent)
        self.faults += faults_of_participant(
            "", agent=agent.body, name=definition.name, binding=binding, interaction=self._body
        )
        model = self._overrides.own(name) or await self._models.of(agent.body.model, definition)
        compacting = self._overrides.compacting(name)
        self.tool_names |= {
            *agent.body.function_tools,
            *(bound.name for holder in (agent.body, binding, self._body) for _, bound in operations_of(holder)),
        }
        tools = (*self._functions(agent), *await self._tooling.tools_of(agent, binding))
        self.faults += self._commands_refused(tools)
        if model is None:
            return None
        self._models.note_lack(f"Agent '{definition.name}'", model)
        if compacting is not None:
            self._models.note_lack(f"The model that compacts for '{name}'", compacting)
        return Participant(
            name=name,
            agent_id=definition.definition_id,
            agent_name=definition.name,
            agent_version=agent.number,
            description=binding.description or agent.body.description,
            prompts=tuple(fill(text, self._values) for text in agent.body.prompts),
            model=model,
            sampling=self._sampling(agent.body.settings),
            tools=tools,
            compaction_model=compacting,
        )

    def note_later(self, stored: StoredVersion) -> None:
        title = f"{references.NOUNS[stored.definition.kind]} '{stored.definition.name}'"
        for fault in later_fields(stored.body):
            self.later.append(Fault("", f"The {title} sets {fault.pointer}: {fault.message}"))

    def _commands_refused(self, tools: Iterable[Tool]) -> Iterator[Fault]:
        """A fault for each connector whose server is a command, where the operator allows none."""
        if self._bench.allows_stdio:
            return
        targets = [tool.target for tool in tools if isinstance(tool.target, OperationTarget)]
        for name in sorted({t.connector_name for t in targets if isinstance(t.server, Stdio)}):
            advice = "Use a server at a URL, or let the operator set FOLKMOOT_ALLOW_STDIO=yes."
            yield Fault("", f"The connector '{name}' runs a command, which is not allowed here. {advice}")

    def _sampling(self, settings: Sampling) -> Sampling:
        """An agent's settings; the interaction's bound on a reply's tokens holds for all of them."""
        bound = self._body.context_settings.get("responseMaxTokens")
        if bound is None:
            return settings
        return replace(settings, max_tokens=min(bound, settings.max_tokens or bound))

    def _functions(self, agent: StoredVersion) -> tuple[Tool, ...]:
        assert isinstance(agent.body, AgentVersion)
        found = {name: self._bench.find_function(name) for name in agent.body.function_tools}
        for name in (name for name, tool in found.items() if tool is None):
            message = (
                f"Agent '{agent.definition.name}' has the function '{name}', which this server does not have. Install the package that "
                "offers it, name its file in FOLKMOOT_FUNCTIONS, or take it from the agent."
            )
            self.faults.append(Fault("", message))
        return tuple(tool for tool in found.values() if tool is not None)
