"""How a long conversation is kept within a model's window: what was set, and what applies by default."""

from __future__ import annotations

from typing import Any

from folkmoot.api.mapping import references
from folkmoot.domain.definitions import DEFAULT_TOOL_LOOPS, Reference
from folkmoot.wire.definitions import InteractionContextSettings, InteractionContextSettingsRequest

DEFAULT_TRIMMING_STYLE = "Placeholder"
DEFAULT_COMPACTION = "SameAgent"
DEFAULT_LOW_WATER = 50  # per cent of the window


def settings_of(request: InteractionContextSettingsRequest) -> dict[str, Any]:
    """What was set, by the wire's names; the link to a model is none of it."""
    every = request.model_dump(mode="json", by_alias=True, exclude={"compaction_model"})
    return {name: value for name, value in every.items() if value is not None}


def shown(stored: dict[str, Any], compaction_model: Reference | None) -> InteractionContextSettings:
    every = InteractionContextSettingsRequest.model_validate(stored).model_dump(mode="json", by_alias=True)
    return InteractionContextSettings.model_validate(
        {
            **every,
            "compactionModel": references.shown(compaction_model) if compaction_model is not None else None,
            "effectiveToolResultTrimmingStyle": every["toolResultTrimmingStyle"] or DEFAULT_TRIMMING_STYLE,
            "effectiveCompactionType": every["compactionType"] or DEFAULT_COMPACTION,
            # A low water above the mark at which trimming starts would trim at every turn.
            "effectiveLowWaterUtilization": every["lowWaterUtilization"]
            or min(DEFAULT_LOW_WATER, every["targetUtilization"] or DEFAULT_LOW_WATER),
            "effectiveMaxToolCallLoops": every["maxToolCallLoops"] or DEFAULT_TOOL_LOOPS,
        }
    )
