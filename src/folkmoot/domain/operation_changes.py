"""What becomes of an operation when its server describes it anew: which settings hold on, and which fall back.

A server's word never loosens anything: neither the approval that is required, nor what may be repeated or run side by side
(F53). Deliberately absent: when a server is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from folkmoot.domain.operations import (
    ApprovalMode,
    Descriptor,
    OpenApiDescriptor,
    OperationVersion,
    is_destructive,
    is_gated,
)

_READING = ("GET", "HEAD")
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class OperationSettings:
    """What the operator says of an operation; null leaves it as it is."""

    approval_mode: ApprovalMode | None = None
    is_idempotent: bool | None = None
    is_read_only: bool | None = None
    limit_seconds: float | None = None
    limit_bytes: int | None = None


def first_version(descriptor: Descriptor) -> OperationVersion:
    """A new operation, with what its method or its server's hints say. Approval is by its annotations."""
    is_idempotent, is_read_only = _traits(descriptor)
    return OperationVersion(1, descriptor, is_idempotent=is_idempotent, is_read_only=is_read_only)


def next_version(before: OperationVersion, descriptor: Descriptor) -> OperationVersion:
    """The version that follows when the server describes the operation otherwise."""
    was, now = _traits(before.descriptor), _traits(descriptor)
    return replace(
        before,
        number=before.number + 1,
        descriptor=descriptor,
        approval_mode=_mode(before, descriptor),
        is_idempotent=before.is_idempotent and not (was[0] and not now[0]),
        is_read_only=before.is_read_only and not (was[1] and not now[1]),
    )


def with_settings(before: OperationVersion, settings: OperationSettings) -> OperationVersion:
    """The version that follows when the operator decides otherwise; the same if nothing changes."""
    said = {
        "approval_mode": settings.approval_mode,
        "is_idempotent": settings.is_idempotent,
        "is_read_only": settings.is_read_only,
        "limit_seconds": settings.limit_seconds,
        "limit_bytes": settings.limit_bytes,
    }
    changed = {name: value for name, value in said.items() if value is not None and value != getattr(before, name)}
    return replace(before, number=before.number + 1, **changed) if changed else before  # type: ignore[arg-type]


def _mode(before: OperationVersion, descriptor: Descriptor) -> ApprovalMode:
    was_gated = is_gated(before.approval_mode, before.descriptor)
    if was_gated and not is_gated(before.approval_mode, descriptor):
        return ApprovalMode.ALWAYS
    turned = is_destructive(descriptor) and not is_destructive(before.descriptor)
    if before.approval_mode is ApprovalMode.NEVER and turned:
        return ApprovalMode.DESTRUCTIVE  # it was freed when it did no harm
    return before.approval_mode


def _traits(descriptor: Descriptor) -> tuple[bool, bool]:
    """Whether it may be repeated, and whether it only reads, as far as the descriptor says."""
    if isinstance(descriptor, OpenApiDescriptor):
        method = descriptor.method.upper()
        return method in _REPEATABLE, method in _READING
    return descriptor.idempotent_hint, descriptor.read_only_hint
