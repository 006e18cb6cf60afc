"""How a long conversation is kept within a model's window. Deliberately absent: defaults; the domain knows them."""

from typing import Literal

from folkmoot.wire.formats import (
    Count,
    Percentage,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    VersionReference,
)

ContextMode = Literal["None", "Trim", "Compact"]
TrimmingMode = Literal["Never", "AfterCycles", "OnPressure"]
TrimmingStyle = Literal["Placeholder", "HeadTail", "Remove"]
CompactionType = Literal["SameAgent", "DedicatedModel"]


class InteractionContextSettings(ResponseShape):
    """What was set, and (`effective…`) what applies. Utilizations are percentages of the model's window. `compactionModel` is ours."""

    mode: ContextMode
    target_utilization: int | None
    tool_result_trimming_mode: TrimmingMode
    tool_result_trimming_max_cycles: int | None
    tool_result_trimming_style: TrimmingStyle | None
    effective_tool_result_trimming_style: TrimmingStyle
    tool_result_trimming_replacement: str | None
    compaction_type: CompactionType | None
    effective_compaction_type: CompactionType
    compaction_model: VersionReference | None
    low_water_utilization: int | None
    effective_low_water_utilization: int
    compact_at_utilization: int | None
    compact_keep_recent_tokens: int | None
    compact_target_tokens: int | None
    max_tool_call_loops: int | None
    effective_max_tool_call_loops: int
    response_max_tokens: int | None
    compact_max_tokens: int | None


class InteractionContextSettingsRequest(RequestShape):
    """What to set; what is null has its default. `compactionModel`: the AI model of compactionType `DedicatedModel`."""

    mode: ContextMode = "None"
    target_utilization: Percentage | None = None
    tool_result_trimming_mode: TrimmingMode = "Never"
    tool_result_trimming_max_cycles: Count | None = None
    tool_result_trimming_style: TrimmingStyle | None = None
    tool_result_trimming_replacement: Text | None = None
    compaction_type: CompactionType | None = None
    compaction_model: ReferenceRequest | None = None
    low_water_utilization: Percentage | None = None
    compact_at_utilization: Percentage | None = None
    compact_keep_recent_tokens: Count | None = None
    compact_target_tokens: Positive | None = None
    max_tool_call_loops: Positive | None = None
    response_max_tokens: Positive | None = None
    compact_max_tokens: Positive | None = None
