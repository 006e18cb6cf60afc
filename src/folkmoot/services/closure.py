"""Resolves the whole closure of a start: interaction, agents, models, functions, external tools, prompts filled in.

What is found is settled for the run's whole life (B09). Everything wrong is gathered, so that it can be put right at once;
pointers are into the start's request. Deliberately absent: writing, and any use of what has been disabled or deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from folkmoot.domain.budgets import Budget, faults_of_budget, lower
from folkmoot.domain.calls import Tool
from folkmoot.domain.checking import faults_of_inputs, faults_of_names, later_fields, operations_of
from folkmoot.domain.contexts import effective
from folkmoot.domain.costs import Prices, own_prices
from folkmoot.domain.credentials import StackEntry
from folkmoot.domain.definitions import (
    DEFAULT_WINDOW,
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    DefinitionKind,
    InteractionVersion,
    ModelOverride,
    Participant,
    Reference,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.model_calls import ModelChoice, Sampling
from folkmoot.domain.operations import OperationTarget, Stdio
from folkmoot.domain.participant_checks import faults_of_participant
from folkmoot.domain.prompts import fill
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schemas import check_schema
from folkmoot.domain.time_checks import LIMIT, WARNING, faults_of_warning
from folkmoot.domain.tool_names import PROTOCOL_TOOLS
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import references
from folkmoot.services.overrides import Overrides
from folkmoot.services.tooling import Tooling
from folkmoot.store.database import Reader

Json = Any
FindFunction = Callable[[str], Tool | None]
ReadScript = Callable[[str], Json]


@dataclass(frozen=True, slots=True)
class StartFields:
    """What a start says beside the interaction and its version.

    `inputs`: names and values as text, in the order given. `response_json_schema` takes the place of the definition's;
    the durations likewise. `disabled_tools` null: none were named. `later`: the fields of later parts that were
    sent, by their wire names. `model`: one to use in place of all that the definitions name; only commands set it. `budget`:
    lowers the definition's. `credentials`: entries without names; `credential_stack`: `name` or `namespace/name`.
    `parent_process_id`: the App run that the run is started under; null: none.
    """

    inputs: tuple[tuple[str, str], ...] = ()
    response_json_schema: str | None = None
    disabled_tools: tuple[str, ...] | None = None
    duration_auto_termination: timedelta | None = None
    duration_human_timeout: timedelta | None = None
    duration_warning_to_ai: timedelta | None = None
    ai_model_overrides: tuple[ModelOverride, ...] = ()
    tags: tuple[str, ...] = ()
    priority: int = 0
    credentials: tuple[StackEntry, ...] = ()
    credential_stack: str | None = None
    allow_platform_fallback: bool | None = None
    model: ModelChoice | None = None
    budget: Budget | None = None
    parent_process_id: UUID | None = None
    later: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workbench:
    """What the operator's machine adds: its functions by name, and a reader of scripted models' files (BadInput, OSError).

    `lack_of`: a sentence about what a model lacks on this machine, or null; set where the run will be worked on here.
    `read_key`: the value of an environment variable now; set likewise. `allows_stdio`: whether the operator lets connectors run
    commands. `window_of`: what the catalogue of known models says that a model holds, in tokens; `prices_of`: what it costs now.
    """

    find_function: FindFunction
    read_script: ReadScript
    lack_of: Callable[[ModelChoice], str | None] = lambda _: None
    read_key: Callable[[str], str | None] | None = None
    allows_stdio: bool = True
    window_of: Callable[[AiModelVersion], int | None] = lambda _: None
    prices_of: Callable[[ModelChoice], Prices] = lambda model: own_prices(model.prices)


class Closure:
    """One resolution under way. `later` are faults of fields that come to work with later parts; `faults` all others.

    `is_survey`: only to see what a start would find; inputs are not asked for.
    """

    def __init__(
        self,
        reader: Reader,
        tenant_id: UUID,
        *,
        interaction: StoredVersion,
        request: StartFields,
        bench: Workbench,
        is_survey: bool = False,
    ) -> None:
        assert isinstance(interaction.body, InteractionVersion)
        self._reader = reader
        self._tenant_id = tenant_id
        self._interaction = interaction
        self._body = interaction.body
        self._request = request
        self._bench = bench
        self._is_survey = is_survey
        given = dict(request.inputs)
        self._values = {item.name: given.get(item.name, "") for item in self._body.inputs_prompt}
        self._tooling = Tooling(
            reader, tenant_id, interaction=interaction, given=given, disabled=request.disabled_tools or (), is_survey=is_survey
        )  # fmt: skip
        self._tool_names: set[str] = set()
        self._models: dict[tuple[UUID, int], ModelChoice] = {}
        self._places: dict[str, str] = {}
        self._names: list[str] = []
        self._overrides = Overrides(
            request.ai_model_overrides, find=self._catalogue_model, choose=self._choice, for_all=request.model
        )
        self.faults: list[Fault] = []
        self.later: list[Fault] = []

    async def resolve(self) -> ResolvedInteraction:
        """The closure; it is only of use if `faults` and `later` are empty afterwards."""
        if not self._is_survey:
            self._check_request()
        self._note_later(self._interaction)
        await self._overrides.settle(self._body)
        participants = [p for binding in self._body.agents if (p := await self._participant(binding))]
        self.faults += faults_of_names(("", participant.name) for participant in participants)
        self.later += self._overrides.later
        self.faults += self._overrides.faults
        if len(self._names) == len(self._body.agents):  # else who takes part is not known
            self.faults += self._overrides.faults_of_names(self._names)
        self.faults += [self._placed(fault) for fault in self._tooling.faults]
        self._check_disabled_tools()
        return self._resolved(tuple(participants))

    def _resolved(self, participants: tuple[Participant, ...]) -> ResolvedInteraction:
        body, definition, request = self._body, self._interaction.definition, self._request
        return ResolvedInteraction(
            interaction_id=definition.definition_id,
            interaction_name=definition.name,
            interaction_version=self._interaction.number,
            namespace=definition.namespace,
            participants=participants,
            task=fill(body.prompt, self._values),
            system_prompts=tuple(fill(text, self._values) for text in body.system_prompts),
            system_prompt_mode=body.system_prompt_mode,
            inputs=request.inputs,
            is_no_action_allowed=body.is_no_action_allowed,
            is_voting_allowed=body.is_voting_allowed,
            is_direct_questioning_allowed=body.is_direct_questioning_allowed,
            is_solution_proposal_allowed=body.is_solution_proposal_allowed,
            human_settings=body.human_settings,
            maximum_no_action_loops=body.maximum_no_action_loops,
            maximum_rounds=body.maximum_rounds,
            solution_schema=body.solution_schema
            if request.response_json_schema is None
            else request.response_json_schema,
            solution_rule=body.solution_rule,
            vote_rule=body.vote_rule,
            context=effective(body.context_settings),
            duration_auto_termination=request.duration_auto_termination or body.duration_auto_termination,
            duration_human_timeout=request.duration_human_timeout or body.duration_human_timeout,
            disabled_tools=request.disabled_tools or (),
            duration_warning_to_ai=request.duration_warning_to_ai or body.duration_warning_to_ai,
            ai_model_overrides=request.ai_model_overrides,
            budget=lower(body.budget, request.budget),
        )

    def _check_request(self) -> None:
        request, body = self._request, self._body
        for index, (name, _) in enumerate(request.inputs):
            if step("/inputs", name) in self._places:
                self.faults.append(Fault(f"/inputs/{index}", f"The input '{name}' is given twice; leave one out."))
            self._places.setdefault(step("/inputs", name), f"/inputs/{index}")
        found = faults_of_inputs(
            body.inputs_prompt,
            dict(request.inputs),
            secrets=body.inputs_connector_authentication_secret,
            bindings=body.inputs_connector_binding,
        )
        self.faults += [self._placed(fault) for fault in found]
        if request.response_json_schema is not None:
            self.faults += check_schema(request.response_json_schema, "/responseJsonSchema")
        if request.duration_auto_termination is not None and request.duration_auto_termination <= timedelta(0):
            self.faults.append(Fault("/durationAutoTermination", "A run needs some time to work; name a longer time."))
        if request.duration_human_timeout is not None and request.duration_human_timeout <= timedelta(0):
            self.faults.append(
                Fault("/durationHumanTimeout", "A person needs some time to answer; name a longer time.")
            )
        self.faults += faults_of_budget(request.budget, body.budget)
        self._check_warning()

    def _check_warning(self) -> None:
        request, body = self._request, self._body
        given, limit = request.duration_warning_to_ai, request.duration_auto_termination
        if given is not None and given <= timedelta(0):
            self.faults.append(
                Fault(WARNING, "The participants are warned after some time at work; name a longer time.")
            )
        pointer = WARNING if given is not None else LIMIT if limit is not None else ""
        self.faults += faults_of_warning(
            given or body.duration_warning_to_ai, limit or body.duration_auto_termination, pointer=pointer
        )

    def _placed(self, fault: Fault) -> Fault:
        """An input's fault at the place where the request has that input."""
        return Fault(self._places.get(fault.pointer, fault.pointer), fault.message)

    def _note_later(self, stored: StoredVersion) -> None:
        title = f"{references.NOUNS[stored.definition.kind]} '{stored.definition.name}'"
        for fault in later_fields(stored.body):
            self.later.append(Fault("", f"The {title} sets {fault.pointer}: {fault.message}"))

    async def _participant(self, binding: AgentBinding) -> Participant | None:
        agent = await self._enabled(DefinitionKind.AGENT, binding.agent)
        if agent is None:
            return None
        assert isinstance(agent.body, AgentVersion)
        self._note_later(agent)
        self.faults += faults_of_participant(
            "", agent=agent.body, name=agent.definition.name, binding=binding, interaction=self._body
        )
        name = binding.name if binding.name is not None else agent.definition.name
        self._names.append(name)
        model = self._overrides.own(name) or await self._model(agent.body.model, agent)
        compacting = self._overrides.compacting(name)
        self._tool_names |= {
            *agent.body.function_tools,
            *(bound.name for holder in (agent.body, binding, self._body) for _, bound in operations_of(holder)),
        }
        tools = (*self._functions(agent), *await self._tooling.tools_of(agent, binding))
        self.faults += self._commands_refused(tools)
        if model is None:
            return None
        lack = self._bench.lack_of(model)
        if lack is not None:
            self.faults.append(Fault("", f"Agent '{agent.definition.name}' cannot be asked. {lack}"))
        if compacting is not None and (lack := self._bench.lack_of(compacting)) is not None:
            self.faults.append(Fault("", f"The model that compacts for '{name}' cannot be asked. {lack}"))
        return Participant(
            name=name,
            agent_id=agent.definition.definition_id,
            agent_name=agent.definition.name,
            agent_version=agent.number,
            description=agent.body.description,
            prompts=tuple(fill(text, self._values) for text in agent.body.prompts),
            model=model,
            sampling=self._sampling(agent.body.settings),
            tools=tools,
            compaction_model=compacting,
        )

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

    async def _model(self, reference: Reference, agent: StoredVersion) -> ModelChoice | None:
        stored = await self._enabled(DefinitionKind.AI_MODEL, reference, agent.definition.namespace)
        if stored is None:
            return None
        key = (stored.definition.definition_id, stored.number)
        if key not in self._models:
            assert isinstance(stored.body, AiModelVersion)
            self._models[key] = self._choice(f"AI model '{stored.definition.name}'", stored.body)
        return self._models[key]

    async def _catalogue_model(self, reference: Reference) -> StoredVersion | str:
        return await references.enabled(
            self._reader, self._tenant_id, kind=DefinitionKind.AI_MODEL, reference=reference,
            namespace=self._interaction.definition.namespace,
        )  # fmt: skip

    def _choice(self, title: str, version: AiModelVersion, pointer: str = "") -> ModelChoice:
        script: Json = None
        if version.provider == "scripted" and version.path is not None:
            try:
                script = self._bench.read_script(version.path)
            except BadInput as error:
                self.faults.append(Fault(pointer, f"The script of {title} cannot be used. {error}"))
            except (OSError, UnicodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
                self.faults.append(Fault(pointer, f"The script of {title} cannot be read ({version.path}): {reason}."))
        return ModelChoice(
            provider=version.provider,
            model_name=version.model_name,
            context_window=version.context_window or self._bench.window_of(version) or DEFAULT_WINDOW,
            largest_response=version.largest_response,
            base_url=version.base_url,
            api_key_variable=version.api_key_variable,
            path=version.path,
            script=script,
            structured_output=version.capabilities.get("structuredOutput", True),
            tools=version.capabilities.get("tools", True),
            prices=version.prices,
        )

    def _functions(self, agent: StoredVersion) -> tuple[Tool, ...]:
        assert isinstance(agent.body, AgentVersion)
        found = {name: self._bench.find_function(name) for name in agent.body.function_tools}
        for name in (name for name, tool in found.items() if tool is None):
            message = f"Agent '{agent.definition.name}' has the function '{name}', which this server does not have. Install it, or take it from the agent."
            self.faults.append(Fault("", message))
        return tuple(tool for tool in found.values() if tool is not None)

    def _check_disabled_tools(self) -> None:
        known = sorted(self._tool_names)
        for index, name in enumerate(self._request.disabled_tools or ()):
            if name in PROTOCOL_TOOLS:
                message = f"'{name}' follows the interaction's own settings; leave it out."
            elif name not in known:
                message = f"No participant has a tool '{name}'. The tools: {', '.join(known) or 'none'}."
            else:
                continue
            self.faults.append(Fault(f"/disabledTools/{index}", message))

    async def _enabled(
        self, kind: DefinitionKind, reference: Reference, namespace: str | None = None
    ) -> StoredVersion | None:
        place = namespace or self._interaction.definition.namespace
        found = await references.enabled(self._reader, self._tenant_id, kind=kind, reference=reference, namespace=place)
        if isinstance(found, StoredVersion):
            return found
        self.faults.append(Fault("", found))
        return None
