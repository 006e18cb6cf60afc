"""What a start's request says."""

from __future__ import annotations

from folkmoot.api.mapping import overrides
from folkmoot.api.mapping.budgets import budget_of
from folkmoot.services.starting import StartFields
from folkmoot.wire.runs import StartRequest

_NOW = (
    "version", "inputs", "response_json_schema", "disabled_tools", "duration_auto_termination", "duration_human_timeout",
    "duration_warning_to_ai", "ai_model_overrides", "priority", "tags", "budget",
)  # fmt: skip


def start_fields(request: StartRequest) -> StartFields:
    """All but the version, which belongs to the reference to the interaction."""
    later = request.model_dump(mode="json", by_alias=True, exclude=set(_NOW))
    return StartFields(
        inputs=tuple((pair.name, pair.value) for pair in request.inputs),
        response_json_schema=request.response_json_schema,
        disabled_tools=request.disabled_tools,
        duration_auto_termination=request.duration_auto_termination,
        duration_human_timeout=request.duration_human_timeout,
        duration_warning_to_ai=request.duration_warning_to_ai,
        ai_model_overrides=overrides.overrides_of(request.ai_model_overrides),
        tags=request.tags,
        priority=request.priority,
        budget=budget_of(request.budget),
        later=later,
    )
