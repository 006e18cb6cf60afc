"""`folkmoot serve`, `api` and `openapi`: the API, with or without a worker beside it in the process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import typer
import uvicorn

from folkmoot.api.app import make_app
from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap import serving, working
from folkmoot.cli import screen
from folkmoot.cli.opening import FIRST_KEY
from folkmoot.runtime.worker import Worker

Host = typer.Option(None, help="The address to listen on; FOLKMOOT_HOST if left out.")
AsJson = typer.Option(False, "--json", help="Print the URL and, on an empty database, the first key as JSON.")
Port = typer.Option(None, min=0, max=65535, help="The port to listen on; FOLKMOOT_PORT if left out.")


def add_to(app: typer.Typer) -> None:
    app.command("serve")(serve)
    app.command("api")(api)
    app.command("openapi")(openapi)


def serve(host: str | None = Host, port: int | None = Port, as_json: bool = AsJson) -> None:
    """Serve the API and run conversations in one process, until SIGTERM or Ctrl-C."""
    asyncio.run(_serve(host, port, has_worker=True, as_json=as_json))


def api(host: str | None = Host, port: int | None = Port, as_json: bool = AsJson) -> None:
    """Serve the API alone; conversations are run by `folkmoot worker`, on this host or others."""
    asyncio.run(_serve(host, port, has_worker=False, as_json=as_json))


def openapi(as_json: bool = typer.Option(False, "--json", help="Print it on one line.")) -> None:
    """Print the API's OpenAPI document."""
    document = make_app().openapi()
    if as_json:
        screen.put_json(document)
    else:
        screen.put(json.dumps(document, indent=1, ensure_ascii=False))


async def _serve(host: str | None, port: int | None, *, has_worker: bool, as_json: bool) -> None:
    found = installations.read_settings()
    async with AsyncExitStack() as stack:
        listening = serving.listening_socket(host or found.host, found.port if port is None else port)
        stack.callback(listening.close)
        installation = await stack.enter_async_context(installations.open_installation(found, connections=16))
        worker = await stack.enter_async_context(working.open_worker(installation)) if has_worker else None
        readiness = {"worker": "The worker's lease is not live."}
        app = await stack.enter_async_context(
            serving.open_api(installation, lambda: readiness if worker and not worker.is_ready else {})
        )
        url = serving.url_of(listening)

        def say_ready() -> None:
            if as_json:
                screen.put_json({"url": url, "key": installation.new_key})
            elif installation.new_key:
                screen.say(FIRST_KEY)
                screen.put(installation.new_key)
            screen.say(
                f"folkmoot: listening on {url} (its pages: {url}/web, its document: {url}/docs). Ctrl-C ends it."
            )

        await _run(serving.make_server(app), worker, listening, on_begin=say_ready)


async def _run(
    server: uvicorn.Server, worker: Worker | None, listening: socket.socket, *, on_begin: Callable[[], None]
) -> None:
    """Both until a signal; then no new requests, and the worker hands its runs back. A second signal cuts that short."""
    tasks = [asyncio.create_task(server.serve(sockets=[listening]))]
    if worker is not None:
        tasks.append(asyncio.create_task(worker.run()))
    hits = 0

    def on_signal(_: signal.Signals) -> None:
        nonlocal hits
        hits += 1
        server.should_exit = True
        if hits > 1:
            server.force_exit = True
            for task in tasks:
                task.cancel()
        elif worker is not None:
            worker.drain()

    with working.signals(on_signal):
        on_begin()
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in pending:
            task.cancel()
        for task in (*done, *pending):
            with suppress(asyncio.CancelledError):
                await task
