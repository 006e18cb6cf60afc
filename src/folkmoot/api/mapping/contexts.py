"""How a long conversation is kept within a model's window: what was set, and what applies by default."""

from __future__ import annotations

from typing import Any

from folkmoot.api.mapping import references
from folkmoot.domain.contexts import effective
from folkmoot.domain.definitions import Reference
from folkmoot.wire.definitions import InteractionContextSettings, InteractionContextSettingsRequest


def settings_of(request: InteractionContextSettingsRequest) -> dict[str, Any]:
    """What was set, by the wire's names; the link to a model is none of it."""
    every = request.model_dump(mode="json", by_alias=True, exclude={"compaction_model"})
    return {name: value for name, value in every.items() if value is not None}


def shown(stored: dict[str, Any], compaction_model: Reference | None) -> InteractionContextSettings:
    every = InteractionContextSettingsRequest.model_validate(stored).model_dump(mode="json", by_alias=True)
    applies = effective(stored)
    return InteractionContextSettings.model_validate(
        {
            **every,
            "compactionModel": references.shown(compaction_model) if compaction_model is not None else None,
            "effectiveToolResultTrimmingStyle": applies.trimming_style.value,
            "effectiveCompactionType": applies.compaction.value,
            "effectiveLowWaterUtilization": applies.low_water_utilization,
            "effectiveMaxToolCallLoops": applies.max_tool_call_loops,
        }
    )
