"""The models of a start that are not an agent's own: those that it gives participants for this run, and the one that compacts.

What a start gives for a participant goes before what a command gives for all, and that before what the definitions say.
Deliberately absent: what a model is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from folkmoot.domain.definitions import (
    AiModelVersion,
    InteractionVersion,
    ModelOverride,
    Reference,
    StoredVersion,
)
from folkmoot.domain.model_calls import ModelChoice, ModelPurpose
from folkmoot.domain.override_checks import (
    OVERRIDES,
    faults_of_override_names,
    faults_of_overrides,
    faults_of_router_overrides,
    later_purposes,
)
from folkmoot.domain.schema_documents import step
from folkmoot.kernel.errors import Fault

Json = Any
FindModel = Callable[[Reference], Awaitable[StoredVersion | str]]
Choose = Callable[[str, AiModelVersion, str], ModelChoice]


class Overrides:
    """`find`: a model of the catalogue, or why there is none. `choose`: how a version is asked, from what a sentence calls it,
    and where the request names it. `for_all`: the model that a command gives in place of every one of the definitions.
    """

    def __init__(
        self, given: tuple[ModelOverride, ...], *, find: FindModel, choose: Choose, for_all: ModelChoice | None
    ) -> None:
        self._given = given
        self._find = find
        self._choose = choose
        self._for_all = for_all
        self._chosen: dict[tuple[str, ModelPurpose], ModelChoice] = {}
        self._compacting: ModelChoice | None = None
        self._lacks_compacting = False
        self.later = list(later_purposes(given))
        self.faults = list(faults_of_overrides(given))

    async def settle(self, body: InteractionVersion) -> None:
        """Finds every model that is named, before the participants are known."""
        wrong = {fault.pointer for fault in self.faults}
        for index, override in enumerate(self._given):
            pointer = step(OVERRIDES, index)
            if any(each == pointer or each.startswith(f"{pointer}/") for each in wrong):
                continue
            choice = await self._choice_of(override, pointer)
            if choice is not None:
                self._chosen[override.agent_name, override.purpose] = choice
        await self._settle_compaction(body)

    async def _choice_of(self, override: ModelOverride, pointer: str) -> ModelChoice | None:
        if override.custom_model is not None:
            title = f"the custom model of '{override.agent_name}'"
            return self._choose(title, override.custom_model, f"{pointer}/customModel")
        return await self._from_catalogue(Reference(definition_id=override.model_id), f"{pointer}/aiModelId")

    async def _from_catalogue(self, link: Reference, pointer: str) -> ModelChoice | None:
        found = await self._find(link)
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return None
        assert isinstance(found.body, AiModelVersion)
        return self._choose(f"AI model '{found.definition.name}'", found.body, pointer)

    async def _settle_compaction(self, body: InteractionVersion) -> None:
        if body.context_settings.get("compactionType") != "DedicatedModel":
            return
        self._compacting = self._for_all
        if self._for_all is None and body.compaction_model is not None:
            self._compacting = await self._from_catalogue(body.compaction_model, "")
        self._lacks_compacting = self._for_all is None and body.compaction_model is None

    def own(self, name: str) -> ModelChoice | None:
        """What the participant is asked with in place of its agent's model; null: that one."""
        return self._chosen.get((name, ModelPurpose.AGENT), self._for_all)

    def compacting(self, name: str) -> ModelChoice | None:
        """What compacts for the participant; null: its own model."""
        return self._chosen.get((name, ModelPurpose.COMPACTION), self._compacting)

    def routing(self, name: str) -> ModelChoice | None:
        """What the participant's routers ask in place of their own models; null: those."""
        return self._chosen.get((name, ModelPurpose.ROUTER), self._for_all)

    def faults_of_names(self, names: list[str], *, routed: Collection[str]) -> list[Fault]:
        """Overrides of nobody, overrides for routers that there are none of, and participants for whom a dedicated model is asked
        for that nothing names. `routed`: those for whom a router's model is asked."""
        found = list(faults_of_override_names(self._given, names))
        found += faults_of_router_overrides(self._given, names, routed)
        given = {override.agent_name for override in self._given if override.purpose is ModelPurpose.COMPACTION}
        lacking = [name for name in names if name not in given] if self._lacks_compacting else []
        if lacking:
            message = (
                "compactionType is 'DedicatedModel', but no model is named for it. Set contextSettings.compactionModel in the "
                f"interaction, or give an override of purpose 'Compaction' for: {', '.join(lacking)}."
            )
            found.append(Fault(OVERRIDES, message))
        return found
