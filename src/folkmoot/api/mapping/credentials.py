"""The keys that a run may use, and those that failed, as the API shows them; a tenant's keys. Deliberately absent: values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from folkmoot.domain.credentials import CredentialEntry, CredentialFailure, ModelKey, StackEntry, StackSnapshot
from folkmoot.domain.model_calls import FailureClass
from folkmoot.domain.references import Reference
from folkmoot.store.run_lists import RunKeys
from folkmoot.wire import definitions as definition_wire
from folkmoot.wire import model_keys as tenant_wire
from folkmoot.wire import runs as wire

KeyRequest = (
    wire.InteractionProcessCredentialRequest | tenant_wire.ModelKeyRequest | definition_wire.CredentialStackEntryRequest
)


def key_of(request: KeyRequest, secret: Reference | None, *, name: str = "") -> StackEntry:
    """A key as it is asked for, the link to its secret read."""
    return StackEntry(
        name=name,
        provider=request.provider,
        credential=secret,
        base_url=request.base_url,
        model_name_overrides=dict(request.model_name_overrides),
        is_own_license=request.is_own_license,
        priority=request.priority,
    )


def key_fields(entry: CredentialEntry | StackEntry) -> dict[str, Any]:
    """What is shown of every key: what it is for, and where it goes."""
    return {
        "provider": entry.provider,
        "base_url": entry.base_url,
        "model_name_overrides": entry.model_name_overrides,
        "is_own_license": entry.is_own_license,
        "priority": entry.priority,
    }


def run_keys(keys: RunKeys) -> dict[str, Any]:
    """The fields of a run that tell what its start settled."""
    return {
        "credentials": tuple(
            wire.InteractionProcessCredential(credential_id=_id_of(entry), **key_fields(entry))
            for entry in keys.credentials
        ),
        "credential_stack": _stack(keys.credential_stack) if keys.credential_stack is not None else None,
        "allow_platform_fallback": keys.allow_platform_fallback,
    }


def _stack(stack: StackSnapshot) -> wire.CredentialStackSnapshot:
    return wire.CredentialStackSnapshot(
        stack_id=stack.stack_id,
        stack_name=stack.stack_name,
        stack_version=stack.stack_version,
        source=stack.source.value,
        resolved_at_utc=stack.resolved_at,
        entries=tuple(
            wire.CredentialStackSnapshotEntry(id=entry.entry_id, credential_id=_id_of(entry), **key_fields(entry))
            for entry in stack.entries
        ),
        passes_to_children=stack.passes_to_children,
    )


def credential_failures(
    failures: Iterable[CredentialFailure],
) -> tuple[wire.InteractionProcessCredentialFailure, ...]:
    return tuple(
        wire.InteractionProcessCredentialFailure(
            credential_id=failure.key,
            provider=failure.provider,
            failure_reason=wire.ModelFailureReason(_reason(failure.reason)),
            detail=failure.detail,
            date_utc=failure.at,
            retry_after_seconds=failure.retry_after_seconds,
        )
        for failure in failures
    )


def _reason(reason: str) -> str:
    """A model that is not there for a key is one that the key may not use: the wire has no class of its own for it."""
    return FailureClass.AUTHENTICATION.value if reason == FailureClass.NOT_FOR_KEY else reason


def model_key(key: ModelKey) -> tenant_wire.ModelKey:
    entry = key.entry
    return tenant_wire.ModelKey(
        id=entry.entry_id,
        tenant_id=key.tenant_id,
        user_created_by_id=key.created_by,
        date_created=key.created_at,
        date_updated=key.updated_at,
        name=key.name,
        credential_id=_id_of(entry),
        credential_name=key.secret_name,
        **key_fields(entry),
    )


def _id_of(entry: CredentialEntry) -> str | None:
    return str(entry.secret_id) if entry.secret_id is not None else None
