"""What starts a run and what speaks to one. Deliberately absent: checks against the definition."""

from typing import Annotated

from pydantic import Field

from folkmoot.wire.definitions import InteractionBudgetRequest
from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.formats import Count, Flag, Name, NameValuePairRequest, RequestShape, Text, Timespan, Uuid, Whole
from folkmoot.wire.runs.accounts import InteractionProcessCredentialRequest
from folkmoot.wire.runs.overrides import (
    AiModelOverrideRequest,
    LoomMappingRequest,
    LoomStartGiftRequest,
    WebAccessOverrideRequest,
)


class RetentionLeaseRequest(RequestShape):
    """Keeps a run and its descendants from being deleted."""

    note: Annotated[str, Field(max_length=500)] | None = None


class StartRequest(RequestShape):
    """Starts a run. `version` 0 or null: the latest enabled one; `responseJsonSchema` replaces the definition's.

    `budget` can only lower the definition's.
    """

    version: Count | None = None
    inputs: tuple[NameValuePairRequest, ...] = ()
    response_json_schema: Text | None = None
    disabled_tools: tuple[Name, ...] | None = None
    web_download_partition_id: Uuid | None = None
    web_access_overrides: tuple[WebAccessOverrideRequest, ...] | None = None
    looms: tuple[LoomMappingRequest, ...] = ()
    loom_gifts: tuple[LoomStartGiftRequest, ...] = ()
    ai_model_overrides: tuple[AiModelOverrideRequest, ...] = ()
    duration_auto_termination: Timespan | None = None
    duration_warning_to_ai: Timespan | None = None
    duration_human_timeout: Timespan | None = None
    credentials: tuple[InteractionProcessCredentialRequest, ...] = ()
    credential_stack: LinkText | None = None
    allow_platform_fallback: Flag | None = None
    lane: Name | None = None
    priority: Whole = 0
    parent_process_id: Uuid | None = None
    retention_lease: RetentionLeaseRequest | None = None
    tags: tuple[Name, ...] = ()
    budget: InteractionBudgetRequest | None = None


class MessageRequest(RequestShape):
    """What a person says to a run."""

    message: Annotated[Text, Field(min_length=1)]
