"""The API and the pages over an installation, and the server that they listen with."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

import uvicorn
from fastapi import FastAPI

from folkmoot.api.app import make_app
from folkmoot.api.doors import Doors, Inbound
from folkmoot.bootstrap.channels import channel_apps
from folkmoot.bootstrap.installation import Installation, bench_of
from folkmoot.bootstrap.outside import Outside, open_outside
from folkmoot.bootstrap.reaching import reach_of
from folkmoot.console.app import make_console, to_home
from folkmoot.console.doors import ConsoleDoors
from folkmoot.kernel.errors import BadInput
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.services import inbound
from folkmoot.services.closure import Workbench
from folkmoot.services.events import Hub

_DEAD_MILLISECONDS = 60_000
_NO_WALLS = (
    "Row-level security is off, since the database's user may not make the role 'folkmoot_api': tenants are kept apart by the statements"
    " alone. As an administrator of the server run `create role folkmoot_api nologin; grant folkmoot_api to USER with set true, inherit"
    " false;` with Folkmoot's user for USER, and start Folkmoot again."
)
_log = logging.getLogger("folkmoot.serving")


@asynccontextmanager
async def open_api(
    installation: Installation, readiness: Callable[[], Mapping[str, str | None]] = dict
) -> AsyncIterator[FastAPI]:
    """The application of the API, with the pages below `/web`, over an installation. `readiness`: what else must be ready, with why it is not."""
    if not installation.database.has_walls:
        _log.warning(_NO_WALLS)
    hub = Hub(installation.database)
    await hub.start()
    try:
        async with open_outside(installation.settings) as outside:
            doors = Doors(
                installation.database, hub, installation.notifier.tell, installation.new_id, bench_of(installation),
                secrets.token_bytes, installation.vault, readiness, reach_of(installation, outside), installation.channel_apps, _inbound(installation, outside),
            )  # fmt: skip
            app = make_app(doors)
            for address in ("/", "/web"):  # as typed into a browser
                app.add_route(address, to_home, include_in_schema=False)
            app.mount("/web", make_console(_console_doors(installation, doors.bench)))
            yield app
    finally:
        await hub.close()


def _inbound(installation: Installation, outside: Outside) -> Inbound:
    apps = channel_apps(outside, installation.settings)

    async def take_in(channel_id: UUID, read: inbound.ReadRequest) -> inbound.Taken:
        return await inbound.receive(
            installation.database, installation.vault, apps, channel_id=channel_id, read=read, tell=installation.notifier.tell
        )  # fmt: skip

    return take_in


def _console_doors(installation: Installation, bench: Workbench) -> ConsoleDoors:
    return ConsoleDoors(
        installation.database, installation.notifier.tell, installation.new_id, lambda: token_of(secrets.token_bytes(TOKEN_BYTES)),
        secrets.token_bytes, bench, installation.settings.public_url,
    )  # fmt: skip


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; raises BadInput that says who may be in the way."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
        _set_options(listening)
        return listening
    except OSError as error:
        where = f"{host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise BadInput(
                f"{where} is in use, perhaps by another `folkmoot serve`. Stop it, or choose another port with --port or FOLKMOOT_PORT."
            ) from error
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
        raise BadInput(
            f"{where} cannot be listened on ({reason}). Choose an address of this machine with --host or FOLKMOOT_HOST."
        ) from error


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _set_options(listening: socket.socket) -> None:
    """Accepted connections have the same. Without the first an answer's body waits for the receipt of its head, 40 ms."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(
        socket, "TCP_USER_TIMEOUT"
    ):  # whoever takes nothing for so long, as a dead reader of a stream, is cut off
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_MILLISECONDS)


class _Server(uvicorn.Server):
    """A server whose signals are handled by whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def make_server(app: FastAPI) -> uvicorn.Server:
    """Set its `should_exit` to end it; open streams are then given five seconds."""
    return _Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5, lifespan="off"))
