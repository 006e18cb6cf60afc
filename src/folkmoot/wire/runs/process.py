"""The run as the API shows it, whole and with details. Deliberately absent: the kernel's claims and sequences."""

from enum import StrEnum

from folkmoot.wire.formats import Amount, Datetime, NameValuePair, Page, ResponseShape, Timespan, Uuid, VersionReference
from folkmoot.wire.items import InteractionProcessContext
from folkmoot.wire.runs.accounts import (
    CredentialStackSnapshot,
    InteractionProcessCredential,
    InteractionProcessCredentialFailure,
    InteractionProcessTokenUsage,
)
from folkmoot.wire.runs.overrides import AiModelOverride, LoomMapping, LoomStartGift, WebAccessOverride
from folkmoot.wire.runs.progress import (
    DeferredToolCall,
    InteractionProcessManagedDispatch,
    InteractionProcessStatus,
    InteractionProcessSwarm,
    InteractionRoutingDecision,
    PendingToolCallApproval,
)


class ProcessType(StrEnum):
    """The kinds of runs."""

    INTERACTION = "Interaction"
    AGENT_RUN = "AgentRun"
    APP = "App"


class InteractionProcess(ResponseShape):
    """A run of an interaction. `output` is the agreed answer, exactly; under a schema it is JSON as text."""

    interaction: VersionReference
    date_started: Datetime | None
    date_ended: Datetime | None
    execution_time: Timespan
    inputs: tuple[NameValuePair, ...]
    output: str | None
    failure_details: str | None
    status: InteractionProcessStatus
    context: InteractionProcessContext
    date_runner_ping: Datetime | None
    date_runner_claimed: Datetime | None
    waiting_for_lane_since_utc: Datetime | None
    hostname: str | None
    parent_process_id: Uuid | None
    parent_process_type: ProcessType | None
    root_process_id: Uuid | None
    triggered_by_automated_action_id: Uuid | None
    triggered_by_automated_action_name: str | None
    retention_lease_active: bool | None
    retention_lease_applied_at_utc: Datetime | None
    retention_lease_applied_by_user_id: Uuid | None
    retention_lease_applied_by_user_name: str | None
    retention_lease_note: str | None
    retention_lease_inherited_from_process_id: Uuid | None
    before_timeout_status: InteractionProcessStatus | None
    response_json_schema: str | None
    pending_approval: PendingToolCallApproval | None
    deferred_tool_calls: tuple[DeferredToolCall, ...] | None
    disabled_tools: tuple[str, ...] | None
    web_download_partition_id: Uuid | None
    web_access_overrides: tuple[WebAccessOverride, ...] | None
    looms: tuple[LoomMapping, ...]
    loom_gifts: tuple[LoomStartGift, ...]
    ai_model_overrides: tuple[AiModelOverride, ...]
    duration_auto_termination: Timespan | None
    duration_warning_to_ai: Timespan | None
    token_usage: tuple[InteractionProcessTokenUsage, ...]
    routing_decisions: tuple[InteractionRoutingDecision, ...]
    managed_dispatch: InteractionProcessManagedDispatch | None
    swarm: InteractionProcessSwarm | None
    credentials: tuple[InteractionProcessCredential, ...]
    allow_platform_fallback: bool | None
    credential_stack: CredentialStackSnapshot | None
    credential_failures: tuple[InteractionProcessCredentialFailure, ...]
    user_created_by_id: Uuid
    tenant_id: Uuid
    id: Uuid
    date_created: Datetime
    date_updated: Datetime


class InteractionProcessPage(Page[InteractionProcess]):
    """A page of runs; their conversations and usage lists are empty unless they were asked for."""


class ProcessTreeCounts(ResponseShape):
    """How many runs the tree has, this one's root included. Of more than 10,000 the oldest 10,000 are counted."""

    total: int
    active: int
    ended: int


class GatedTool(ResponseShape):
    """A tool of a participant's whose calls may wait for a person."""

    agent_name: str
    function_name: str


class InteractionProcessWithDetails(InteractionProcess):
    """A run with what a page about it shows beside. `cost` is in US dollars; null where a price is not known."""

    interaction_name: str
    namespace_name: str
    user_created_by_name: str
    automation_name: str | None
    cost: Amount | None
    tree_counts: ProcessTreeCounts
    gated_tools: tuple[GatedTool, ...]
