"""The apps of channels with what they may use of the world, behind the guard; and what they ask of a definition.

Deliberately absent: any app's name.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from functools import cache

from folkmoot.bootstrap.outside import Outside
from folkmoot.channels.channel import ChannelWorld, HttpReply
from folkmoot.channels.registry import AppUnavailable, ChannelApps
from folkmoot.domain.channels import AppShape
from folkmoot.settings import Settings


def channel_apps(outside: Outside, found: Settings) -> ChannelApps:
    """The apps as they are used; good as long as `outside` is open."""
    return ChannelApps(ChannelWorld(outside.connect, outside.send, outside.tls, found.slack_api_url))


@cache
def channel_shapes() -> Mapping[str, AppShape]:
    """What the installed apps ask of a definition, by their names; those that cannot be used are left out."""
    apps = ChannelApps(ChannelWorld(_nowhere, _nothing, _tls))
    shapes: dict[str, AppShape] = {}
    for name in apps.names:
        try:
            app = apps.find(name)
        except AppUnavailable:
            continue
        secrets = app.secret_names
        shapes[name] = AppShape(
            dict(app.settings_schema), tuple(sorted(secrets.required)), tuple(sorted(secrets.optional))
        )
    return shapes


def _tls() -> ssl.SSLContext:
    raise OSError("this process reaches no channel")


async def _nowhere(host: str, port: int) -> socket.socket:
    raise OSError("this process reaches no channel")


async def _nothing(url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
    raise OSError("this process reaches no channel")
