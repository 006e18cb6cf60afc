"""Resolves the whole closure of a start: interaction, agents, routers, models, functions, external tools, prompts filled in.

What is found is settled for the run's whole life (B09). Everything wrong is gathered, so that it can be put right at once;
pointers are into the start's request. Deliberately absent: writing, and any use of what has been disabled or deleted.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from folkmoot.domain.budgets import faults_of_budget, lower
from folkmoot.domain.checking import faults_of_inputs, faults_of_names
from folkmoot.domain.contexts import effective
from folkmoot.domain.definitions import (
    InteractionVersion,
    Participant,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.prompts import fill
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schemas import check_schema
from folkmoot.domain.swarms import PinnedSwarm
from folkmoot.domain.time_checks import LIMIT, WARNING, faults_of_warning, is_usable
from folkmoot.domain.tool_names import PROTOCOL_TOOLS, SWARM_TOOLS
from folkmoot.kernel.errors import Fault
from folkmoot.services.model_closure import Models
from folkmoot.services.overrides import Overrides
from folkmoot.services.seats import Seats
from folkmoot.services.start_fields import StartFields, Workbench
from folkmoot.services.swarm_closure import pinned_swarm
from folkmoot.services.tooling import Tooling
from folkmoot.store.database import Reader

__all__ = ["Closure", "StartFields", "Workbench"]


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
            reader, tenant_id, interaction=interaction, given=given, disabled=request.all_disabled_tools, is_survey=is_survey
        )  # fmt: skip
        self._places: dict[str, str] = {}
        self._models = Models(reader, tenant_id, namespace=interaction.definition.namespace, bench=bench)
        self._overrides = Overrides(
            request.ai_model_overrides, find=self._models.find, choose=self._models.choose, for_all=request.model
        )
        self._seats = Seats(
            reader, tenant_id, interaction=interaction, values=self._values, bench=bench, tooling=self._tooling,
            models=self._models, overrides=self._overrides,
        )  # fmt: skip
        self.faults: list[Fault] = []
        self.later: list[Fault] = []

    async def resolve(self) -> ResolvedInteraction:
        """The closure; it is only of use if `faults` and `later` are empty afterwards."""
        if not self._is_survey:
            self._check_request()
        seats = self._seats
        seats.note_later(self._interaction)
        await self._overrides.settle(self._body)
        participants = [p for binding in self._body.bindings if (p := await seats.participant(binding))]
        swarm = await self._swarm()
        self.faults += [*seats.faults, *self._models.faults]
        self.faults += faults_of_names(("", participant.name) for participant in participants)
        self.later += [*seats.later, *self._overrides.later]
        self.faults += self._overrides.faults
        if len(seats.names) == len(self._body.bindings):  # else who takes part is not known
            self.faults += self._overrides.faults_of_names(seats.names, routed=seats.routed)
        self.faults += [self._placed(fault) for fault in self._tooling.faults]
        self._check_disabled_tools()
        return replace(self._resolved(tuple(participants)), swarm=swarm)

    async def _swarm(self) -> PinnedSwarm | None:
        settings = self._body.swarm
        if settings is None:
            return None
        return await pinned_swarm(
            self._reader, self._tenant_id, settings=settings, namespace=self._interaction.definition.namespace,
            faults=self.faults,
        )  # fmt: skip

    def _resolved(self, participants: tuple[Participant, ...]) -> ResolvedInteraction:
        body, definition, request = self._body, self._interaction.definition, self._request
        return ResolvedInteraction(
            interaction_id=definition.definition_id,
            interaction_name=definition.name,
            interaction_version=self._interaction.number,
            namespace=definition.namespace,
            participants=participants,
            manager=self._seats.names[0] if body.manager is not None and self._seats.names else None,
            maximum_concurrent_dispatches=body.maximum_concurrent_dispatches,
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
            disabled_tools=request.all_disabled_tools,
            duration_warning_to_ai=request.duration_warning_to_ai or body.duration_warning_to_ai,
            ai_model_overrides=request.ai_model_overrides,
            budget=lower(body.budget, request.budget),
            model_for_all=request.model,
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
            chooses_secrets=request.chooses_secrets,
        )
        self.faults += [self._placed(fault) for fault in found]
        if request.response_json_schema is not None:
            self.faults += check_schema(request.response_json_schema, "/responseJsonSchema")
        if request.duration_auto_termination is not None and not is_usable(request.duration_auto_termination):
            message = "A run needs some time to work, of at most 999,999 days; name such a time."
            self.faults.append(Fault("/durationAutoTermination", message))
        if request.duration_human_timeout is not None and not is_usable(request.duration_human_timeout):
            message = "A person needs some time to answer, of at most 999,999 days; name such a time."
            self.faults.append(Fault("/durationHumanTimeout", message))
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

    def _check_disabled_tools(self) -> None:
        known = sorted({*self._seats.tool_names, *(SWARM_TOOLS if self._body.swarm is not None else ())})
        for index, name in enumerate(self._request.disabled_tools or ()):
            if name in PROTOCOL_TOOLS:
                message = f"'{name}' follows the interaction's own settings; leave it out."
            elif name not in known:
                message = f"No participant has a tool '{name}'. The tools: {', '.join(known) or 'none'}."
            else:
                continue
            self.faults.append(Fault(f"/disabledTools/{index}", message))
