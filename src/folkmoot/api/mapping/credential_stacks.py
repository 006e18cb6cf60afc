"""Credential stacks: a request as a version, a stored version as it is shown, and which one is the default."""

from __future__ import annotations

from uuid import UUID

from folkmoot.api.mapping.bindings import link
from folkmoot.api.mapping.credentials import key_fields, key_of
from folkmoot.api.mapping.references import refuse
from folkmoot.api.mapping.resources import definition_fields, version_fields
from folkmoot.domain.credentials import CredentialStackVersion, StackEntry, StackRule, WhenUsedUp
from folkmoot.domain.definitions import StoredVersion
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire


def version_of(request: wire.CredentialStackVersionRequest) -> CredentialStackVersion:
    """Raises BadInput with a fault for each link that is no reference."""
    faults: list[Fault] = []
    made = CredentialStackVersion(
        entries=tuple(_entry_of(entry, f"/entries/{index}", faults) for index, entry in enumerate(request.entries)),
        rules=tuple(
            StackRule(
                rule.participant, rule.model, rule.provider, rule.purpose, rule.entries, WhenUsedUp(rule.when_used_up)
            )
            for rule in request.rules
        ),
        passes_to_children=request.passes_to_children,
        description=request.description,
    )
    refuse(faults)
    return made


def _entry_of(request: wire.CredentialStackEntryRequest, pointer: str, faults: list[Fault]) -> StackEntry:
    secret = link(request.credential_id, request.credential, f"{pointer}/credential", faults)
    return key_of(request, secret, name=request.name)


def version(stored: StoredVersion) -> wire.CredentialStackVersion:
    body = stored.body
    assert isinstance(body, CredentialStackVersion)
    return wire.CredentialStackVersion(
        **version_fields(stored),
        description=body.description,
        entries=tuple(_entry(entry) for entry in body.entries),
        rules=tuple(_rule(rule) for rule in body.rules),
        passes_to_children=body.passes_to_children,
    )


def _entry(entry: StackEntry) -> wire.CredentialStackEntry:
    return wire.CredentialStackEntry(
        name=entry.name,
        credential_id=entry.credential.definition_id if entry.credential is not None else None,
        **key_fields(entry),
    )


def _rule(rule: StackRule) -> wire.CredentialStackRule:
    return wire.CredentialStackRule.model_validate(
        {
            "participant": rule.participant,
            "model": rule.model,
            "provider": rule.provider,
            "purpose": rule.purpose,
            "entries": rule.entries,
            "whenUsedUp": rule.when_used_up.value,
        }
    )


def stack(stored: StoredVersion, tenant_id: UUID) -> wire.CredentialStack:
    """A stack with its newest version."""
    return wire.CredentialStack(**definition_fields(stored, tenant_id), latest_version=version(stored))
