"""How a long conversation is kept within a model's window: what was set, and what applies by default."""

from __future__ import annotations

from typing import Any

from folkmoot.domain.contexts import effective
from folkmoot.wire.definitions import InteractionContextSettings, InteractionContextSettingsRequest


def settings_of(request: InteractionContextSettingsRequest) -> dict[str, Any]:
    """What was set, by the wire's names."""
    return {name: value for name, value in request.model_dump(mode="json", by_alias=True).items() if value is not None}


def shown(stored: dict[str, Any]) -> InteractionContextSettings:
    every = InteractionContextSettingsRequest.model_validate(stored).model_dump(mode="json", by_alias=True)
    applies = effective(stored)
    return InteractionContextSettings.model_validate(
        {
            **every,
            "effectiveToolResultTrimmingStyle": applies.trimming_style.value,
            "effectiveCompactionType": applies.compaction.value,
            "effectiveLowWaterUtilization": applies.low_water_utilization,
            "effectiveMaxToolCallLoops": applies.max_tool_call_loops,
        }
    )
