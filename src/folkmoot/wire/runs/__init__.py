"""Runs of interactions: the whole `InteractionProcess`, the parts it is made of, and what starts one or speaks to one.

Deliberately absent: a way to set a status. Only the kernel's transitions do.
"""

from folkmoot.wire.runs.accounts import (
    CredentialStackSnapshot,
    CredentialStackSnapshotEntry,
    InteractionProcessCredential,
    InteractionProcessCredentialFailure,
    InteractionProcessCredentialRequest,
    InteractionProcessTokenUsage,
    ModelFailureReason,
    TokenUsageCount,
)
from folkmoot.wire.runs.overrides import (
    AiModelOverride,
    AiModelOverrideRequest,
    LoomGiftOrigin,
    LoomMapping,
    LoomMappingRequest,
    LoomStartGift,
    LoomStartGiftRequest,
    WebAccessOverride,
    WebAccessOverrideRequest,
)
from folkmoot.wire.runs.process import (
    GatedTool,
    InteractionProcess,
    InteractionProcessPage,
    InteractionProcessWithDetails,
    ProcessTreeCounts,
    ProcessType,
)
from folkmoot.wire.runs.progress import (
    DeferredToolCall,
    InteractionProcessManagedDispatch,
    InteractionProcessStatus,
    InteractionProcessSwarm,
    InteractionProcessSwarmAwait,
    InteractionProcessSwarmChild,
    InteractionProcessSwarmLimits,
    InteractionRoutingDecision,
    PendingToolCallApproval,
)
from folkmoot.wire.runs.start import MessageRequest, RetentionLeaseRequest, StartRequest
from folkmoot.wire.runs.tree import ProcessNode, ProcessTree

__all__ = [
    "AiModelOverride",
    "AiModelOverrideRequest",
    "CredentialStackSnapshot",
    "CredentialStackSnapshotEntry",
    "DeferredToolCall",
    "GatedTool",
    "InteractionProcess",
    "InteractionProcessCredential",
    "InteractionProcessCredentialFailure",
    "InteractionProcessCredentialRequest",
    "InteractionProcessManagedDispatch",
    "InteractionProcessPage",
    "InteractionProcessStatus",
    "InteractionProcessSwarm",
    "InteractionProcessSwarmAwait",
    "InteractionProcessSwarmChild",
    "InteractionProcessSwarmLimits",
    "InteractionProcessTokenUsage",
    "InteractionProcessWithDetails",
    "InteractionRoutingDecision",
    "LoomGiftOrigin",
    "LoomMapping",
    "LoomMappingRequest",
    "LoomStartGift",
    "LoomStartGiftRequest",
    "MessageRequest",
    "ModelFailureReason",
    "PendingToolCallApproval",
    "ProcessNode",
    "ProcessTree",
    "ProcessTreeCounts",
    "ProcessType",
    "RetentionLeaseRequest",
    "StartRequest",
    "TokenUsageCount",
    "WebAccessOverride",
    "WebAccessOverrideRequest",
]
