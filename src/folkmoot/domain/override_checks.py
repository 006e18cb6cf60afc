"""What must hold of the models that a start gives one run in place of what its definitions say.

Pointers are into the start's request. Deliberately absent: whether a model of the catalogue is there; that takes the store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from folkmoot.domain.definitions import ModelOverride
from folkmoot.domain.model_calls import ModelPurpose
from folkmoot.domain.model_checks import faults_of_model
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schema_reports import shortened
from folkmoot.kernel.errors import Fault

OVERRIDES = "/aiModelOverrides"


_LATER = {
    ModelPurpose.WEAVER: "memory, web and knowledge",
    ModelPurpose.VET: "memory, web and knowledge",
}


def faults_of_overrides(overrides: Sequence[ModelOverride]) -> Iterator[Fault]:
    """What is wrong with them in themselves."""
    seen: set[tuple[str, ModelPurpose]] = set()
    for index, override in enumerate(overrides):
        pointer, key = step(OVERRIDES, index), (override.agent_name, override.purpose)
        if key in seen:
            who = shortened(override.agent_name, 60)
            yield Fault(pointer, f"'{who}' has two overrides of purpose '{override.purpose}'; leave one out.")
        seen.add(key)
        if (override.model_id is None) == (override.custom_model is None):
            yield Fault(
                pointer,
                "An override names its model by aiModelId, or gives a whole one as customModel; set one of the two.",
            )
        elif override.custom_model is not None:
            for fault in faults_of_model(override.custom_model):
                yield Fault(f"{pointer}/customModel{fault.pointer}", fault.message)


def faults_of_override_names(overrides: Sequence[ModelOverride], names: Sequence[str]) -> Iterator[Fault]:
    """A fault for each override of somebody who takes no part."""
    for index, override in enumerate(overrides):
        if override.agent_name not in names:
            who, known = shortened(override.agent_name, 60), ", ".join(names) or "none"
            yield Fault(
                f"{step(OVERRIDES, index)}/agentName", f"No participant is called '{who}'. The participants: {known}."
            )


def faults_of_router_overrides(
    overrides: Sequence[ModelOverride], names: Collection[str], routed: Collection[str]
) -> Iterator[Fault]:
    """A fault for each override of a router's model for a participant without such a router. `routed`: those with one."""
    for index, override in enumerate(overrides):
        if (
            override.purpose is ModelPurpose.ROUTER
            and override.agent_name in names
            and override.agent_name not in routed
        ):
            who = shortened(override.agent_name, 60)
            message = f"'{who}' has no router that asks a model, which could be replaced. Leave this override out."
            yield Fault(f"{step(OVERRIDES, index)}/purpose", message)


def later_purposes(overrides: Sequence[ModelOverride]) -> Iterator[Fault]:
    """A fault for each override of a purpose that nothing has yet."""
    for index, override in enumerate(overrides):
        part = _LATER.get(override.purpose)
        if part is not None:
            yield Fault(
                f"{step(OVERRIDES, index)}/purpose",
                f"Overrides of purpose '{override.purpose}' come to work with a later part ({part}). Leave it out to start a run now.",
            )
