"""Routers: a request as a version, a stored version as it is shown."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from folkmoot.api.mapping.references import reference, refuse, shown
from folkmoot.api.mapping.resources import definition_fields, version_fields
from folkmoot.domain.definitions import StoredVersion
from folkmoot.domain.references import Reference
from folkmoot.domain.routers import RouterCandidate, RouterRule, RouterVersion
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire
from folkmoot.wire.formats import VersionReference, VersionReferenceRequest


def version_of(request: wire.RouterVersionRequest) -> RouterVersion:
    """Raises BadInput with a fault for each link that is no reference."""
    faults: list[Fault] = []
    made = RouterVersion(
        candidates=tuple(
            RouterCandidate(
                _link_of(candidate.agent, f"/candidates/{index}/agent", faults),
                _link_of(candidate.router, f"/candidates/{index}/router", faults),
                candidate.name,
                candidate.description,
            )
            for index, candidate in enumerate(request.candidates)
        ),
        fallback=request.fallback,
        rules=tuple(
            RouterRule(
                rule.candidate, rule.participant, rule.input, rule.input_value, rule.thread, rule.turn_number, rule.last_author
            )
            for rule in request.rules
        ),
        model=_link_of(request.model, "/model", faults),
        prompt=request.prompt,
        description=request.description,
    )  # fmt: skip
    refuse(faults)
    return made


def version(stored: StoredVersion) -> wire.RouterVersion:
    body = stored.body
    assert isinstance(body, RouterVersion)
    return wire.RouterVersion(
        **version_fields(stored),
        description=body.description,
        candidates=tuple(
            wire.RouterCandidate(
                name=each.name, agent=_link(each.agent), router=_link(each.router), description=each.description
            )
            for each in body.candidates
        ),
        rules=tuple(wire.RouterRule(**asdict(rule)) for rule in body.rules),
        model=_link(body.model),
        prompt=body.prompt,
        fallback=body.fallback,
    )


def router(stored: StoredVersion, tenant_id: UUID) -> wire.Router:
    """A router with its newest version."""
    return wire.Router(**definition_fields(stored, tenant_id), latest_version=version(stored))


def _link_of(value: str | VersionReferenceRequest | None, pointer: str, faults: list[Fault]) -> Reference | None:
    return reference(value, pointer, faults) if value is not None else None


def _link(link: Reference | None) -> VersionReference | None:
    return shown(link) if link is not None else None
