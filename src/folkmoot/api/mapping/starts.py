"""What a start's request says."""

from __future__ import annotations

from folkmoot.api.mapping import overrides
from folkmoot.api.mapping.budgets import budget_of
from folkmoot.api.mapping.credentials import key_of
from folkmoot.api.mapping.references import reference, refuse
from folkmoot.domain.credentials import StackEntry
from folkmoot.kernel.errors import Fault
from folkmoot.services.starting import StartFields
from folkmoot.wire.runs import InteractionProcessCredentialRequest, StartRequest

_NOW = (
    "version", "inputs", "response_json_schema", "disabled_tools", "duration_auto_termination", "duration_human_timeout",
    "duration_warning_to_ai", "ai_model_overrides", "priority", "tags", "budget", "credentials", "credential_stack",
    "allow_platform_fallback", "parent_process_id",
)  # fmt: skip


def start_fields(request: StartRequest) -> StartFields:
    """All but the version, which belongs to the reference to the interaction. Raises BadInput where a link is none."""
    faults: list[Fault] = []
    credentials = tuple(_credential(each, index, faults) for index, each in enumerate(request.credentials))
    refuse(faults)
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
        credentials=credentials,
        credential_stack=request.credential_stack,
        allow_platform_fallback=request.allow_platform_fallback,
        parent_process_id=request.parent_process_id,
        later=later,
    )


def _credential(request: InteractionProcessCredentialRequest, index: int, faults: list[Fault]) -> StackEntry:
    """`credentialId` is a secret's id; its name, as `name` or `namespace/name`, does as well."""
    named = request.credential_id
    secret = reference(named, f"/credentials/{index}/credentialId", faults) if named is not None else None
    return key_of(request, secret)
