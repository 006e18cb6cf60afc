"""The models that a start gives participants for one run: as they are asked for, and as the run shows them."""

from __future__ import annotations

from collections.abc import Iterable

from folkmoot.api.mapping import ai_models
from folkmoot.domain.definitions import ModelOverride
from folkmoot.domain.model_calls import ModelPurpose
from folkmoot.wire import runs as wire


def overrides_of(requests: Iterable[wire.AiModelOverrideRequest]) -> tuple[ModelOverride, ...]:
    return tuple(
        ModelOverride(
            request.agent_name,
            ModelPurpose(request.purpose),
            request.ai_model_id,
            ai_models.version_of(request.custom_model) if request.custom_model is not None else None,
        )
        for request in requests
    )


def shown(overrides: Iterable[ModelOverride]) -> tuple[wire.AiModelOverride, ...]:
    return tuple(
        wire.AiModelOverride(
            agent_name=override.agent_name,
            ai_model_id=override.model_id,
            custom_model=ai_models.custom(override.custom_model) if override.custom_model is not None else None,
            purpose=override.purpose.value,
        )
        for override in overrides
    )
