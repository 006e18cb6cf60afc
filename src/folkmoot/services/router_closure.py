"""The routers of a seat as a run is pinned to them: exact versions, models settled, prompts filled in.

Deliberately absent: whom they may choose in the end (`router_reach`), and the choosing (`engine`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from folkmoot.domain.definitions import AgentVersion, InteractionVersion, StoredVersion
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.participant_checks import faults_of_router_in
from folkmoot.domain.prompts import fill
from folkmoot.domain.routers import PinnedCandidate, PinnedRouter, RouterCandidate, RouterVersion
from folkmoot.kernel.errors import Fault
from folkmoot.services.model_closure import Models
from folkmoot.services.overrides import Overrides
from folkmoot.services.router_reach import Reached


class Routers:
    """`values`: of the inputs of prompts, by name."""

    def __init__(
        self, *, interaction: InteractionVersion, values: Mapping[str, str], models: Models, overrides: Overrides
    ) -> None:
        self._interaction = interaction
        self._values = values
        self._models = models
        self._overrides = overrides

    async def pinned(self, name: str, reached: Reached) -> tuple[PinnedRouter, ...]:
        """All that were reached, the seat's own first; () if they lead to something that cannot be had. `name`: of the seat."""
        if reached.problems:
            return ()
        return tuple([await self._pinned(name, router, reached) for router in reached.routers.values()])

    async def _pinned(self, name: str, router: StoredVersion, reached: Reached) -> PinnedRouter:
        body, definition = router.body, router.definition
        assert isinstance(body, RouterVersion)
        of_it = reached.candidates[definition.definition_id]
        return PinnedRouter(
            router_id=definition.definition_id,
            name=definition.name,
            version=router.number,
            candidates=tuple(_candidate(each, stored) for each, stored in zip(body.candidates, of_it, strict=True)),
            fallback=body.fallback,
            rules=body.rules,
            model=await self._model(name, router, body),
            prompt=fill(body.prompt, self._values) if body.prompt is not None else None,
        )

    async def _model(self, name: str, router: StoredVersion, body: RouterVersion) -> ModelChoice | None:
        """Null: its rules and its fallback choose alone, whatever model a start gives."""
        if body.model is None:
            return None
        model = self._overrides.routing(name) or await self._models.of(body.model, router.definition)
        if model is not None:
            self._models.note_lack(f"Router '{router.definition.name}'", model)
        return model

    def faults_of(self, reached: Reached) -> Iterator[Fault]:
        for router in reached.routers.values():
            assert isinstance(router.body, RouterVersion)
            yield from faults_of_router_in(
                "", router=router.body, name=router.definition.name, interaction=self._interaction
            )


def _candidate(candidate: RouterCandidate, stored: StoredVersion) -> PinnedCandidate:
    assert isinstance(stored.body, AgentVersion | RouterVersion)
    return PinnedCandidate(
        name=candidate.called or stored.definition.name,
        kind=candidate.kind,
        definition_id=stored.definition.definition_id,
        version=stored.number,
        description=candidate.description or stored.body.description,
    )
