"""Channels: a request as a version, a stored version as it is shown."""

from __future__ import annotations

from uuid import UUID

from folkmoot.api.mapping.bindings import link
from folkmoot.api.mapping.references import NOTHING, refuse
from folkmoot.api.mapping.resources import definition_fields, version_fields
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.definitions import StoredVersion
from folkmoot.domain.references import Reference
from folkmoot.domain.schema_documents import step
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire


def version_of(request: wire.ChannelVersionRequest) -> ChannelVersion:
    """Raises BadInput with a fault for each link that is no reference."""
    faults: list[Fault] = []
    links = {name: link(None, text, step("/secrets", name), faults) for name, text in request.secrets.items()}
    refuse(faults)
    return ChannelVersion(request.app, request.settings, {name: each or Reference() for name, each in links.items()})


def version(stored: StoredVersion) -> wire.ChannelVersion:
    body = stored.body
    assert isinstance(body, ChannelVersion)
    return wire.ChannelVersion(
        **version_fields(stored),
        app=body.app,
        settings=body.settings,
        secrets={name: each.definition_id or NOTHING for name, each in body.secrets.items()},
    )


def channel(stored: StoredVersion, tenant_id: UUID) -> wire.Channel:
    """A channel with its newest version."""
    return wire.Channel(**definition_fields(stored, tenant_id), latest_version=version(stored))
