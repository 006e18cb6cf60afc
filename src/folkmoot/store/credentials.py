"""The keys that calls may take, as they are now; which one a call took; what failed and rests.

Deliberately absent: which key is taken (`domain.key_choice`), and opened values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.credentials import CredentialEntry, CredentialFailure
from folkmoot.domain.key_choice import Rest
from folkmoot.domain.model_calls import FailureClass
from folkmoot.domain.runs import Claim
from folkmoot.store.codecs import json_value, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("credentials")
_DETAIL_CHARACTERS = 1_000
_FORGOTTEN_SECONDS = 600.0  # after so long awake a rest is the first again


@dataclass(frozen=True, slots=True)
class SecretNow:
    """A secret with what the vault opens. `version`: when its value was last set."""

    name: str
    version: str
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeysNow:
    """`now`: Unix seconds by the database's clock. `secrets`: those there are, by id. `rests`: by what they are kept under."""

    now: float
    allows_platform: bool
    model_keys: tuple[CredentialEntry, ...]
    secrets: dict[UUID, SecretNow]
    rests: dict[str, list[Rest]]


async def keys_now(
    reader: Reader, tenant_id: UUID, *, provider: str, secret_ids: Sequence[UUID], reads_tenant: bool
) -> KeysNow:
    """All that a choice looks at, in one statement. `reads_tenant`: the tenant's keys count."""
    row = await _sql.keys_now(
        reader.connection, tenant_id=tenant_id, provider=provider, secret_ids=list(secret_ids), reads_tenant=reads_tenant
    )  # fmt: skip
    entries = tuple(
        CredentialEntry(id_, provider, secret_id, base_url, json_value(overrides), is_own, priority, name)
        for id_, name, secret_id, base_url, overrides, is_own, priority in row["model_keys"]
    )
    secrets = {id_: _secret(space, name, sealed, at) for id_, space, name, sealed, at in row["secrets"]}
    rests: dict[str, list[Rest]] = {}
    for key, model, version, reason, detail, until in row["rests"]:
        rests.setdefault(key, []).append(Rest(model, version, FailureClass(reason), detail, until))
    return KeysNow(row["now"], row["allows_platform"], entries, secrets, rests)


def _secret(namespace: str, name: str, sealed: bytes, updated_at: datetime) -> SecretNow:
    return SecretNow(f"{namespace}/{name}", updated_at.isoformat(), sealed)


async def note_key(
    writer: Writer, claim: Claim, *, model_call_id: UUID, credential: str | None, is_own_license: bool
) -> bool:
    """Note whose key the call takes; false where the claim is no more."""
    done = await _sql.note_key(
        writer.connection, tenant_id=claim.tenant_id, run_id=claim.run_id, model_call_id=model_call_id,
        credential=credential, is_own_license=is_own_license, number=claim.number, claim_id=claim.claim_id,
    )  # fmt: skip
    return done is not None


@dataclass(frozen=True, slots=True)
class RestSeconds:
    """How long: from `first`, doubling from rest to rest up to `longest`, and at least `least`."""

    first: float
    longest: float
    least: float = 0.0


async def rest(
    writer: Writer, claim: Claim, *, key: str, model: str, version: str, reason: FailureClass, detail: str, provider: str,
    seconds: RestSeconds, is_recorded: bool,
) -> float | None:  # fmt: skip
    """Begin the key's rest: its seconds; null where it rests already, or the claim is no more. `is_recorded`: as a failure of the run.

    One statement, in a commit of its own: a crash after it loses the reply's record, never the rest.
    """
    seconds_long: float | None = await _sql.rest(
        writer.connection, tenant_id=claim.tenant_id, run_id=claim.run_id, number=claim.number, claim_id=claim.claim_id, key=key,
        model=safe(model), version=version, reason=reason.value, detail=safe(detail[:_DETAIL_CHARACTERS]), provider=safe(provider),
        first=seconds.first, longest=seconds.longest, least=seconds.least, forgotten=_FORGOTTEN_SECONDS, is_recorded=is_recorded,
    )  # fmt: skip
    return seconds_long


async def failures_of_run(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[CredentialFailure]:
    """Those whose rest a call of this run began, in order."""
    rows = _sql.failures_of_run(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return [CredentialFailure(*row.values()) async for row in rows]
