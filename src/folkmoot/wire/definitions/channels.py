"""Channels: through which app a run reaches its owner. Deliberately absent: values of secrets, and what an app makes of its settings."""

from typing import Any

from pydantic import Field

from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import Name, Page, RequestShape, Uuid


class ChannelVersion(DefinitionVersion):
    """One version of a channel. `settings`: as the app asks for them. `secrets`: ids of secrets, by the app's names for them."""

    app: str
    settings: dict[str, Any]
    secrets: dict[str, Uuid]


class Channel(DefinitionResource):
    """A channel and its newest version, disabled or not."""

    latest_version: ChannelVersion


class ChannelPage(Page[Channel]):
    """A page of channels."""


class ChannelVersionPage(Page[ChannelVersion]):
    """A page of versions, the newest first."""


class ChannelVersionRequest(RequestShape):
    """A new version of a channel. `settings`: as the app asks for them, without secrets. `secrets`: by the app's names for them, each a
    secret's `name`, `namespace/name` or id."""

    app: Name
    settings: dict[str, Any] = Field(default_factory=dict)
    secrets: dict[Name, LinkText] = Field(default_factory=dict)


class ChannelRequest(RequestShape):
    """Creates a channel with its first version."""

    name: Name
    version: ChannelVersionRequest
