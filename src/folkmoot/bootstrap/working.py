"""Workers, and the signals that drain them."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from uuid import UUID

from folkmoot import __version__
from folkmoot.bootstrap.installation import Installation, bench_of, read_key
from folkmoot.bootstrap.messages import sending
from folkmoot.bootstrap.outside import Outside, open_outside
from folkmoot.domain.operations import SecretHeader, header_value
from folkmoot.domain.providers import is_usual_way
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.llm.catalogue import prices_of
from folkmoot.runtime.delegations import Delegations
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.sub_runs import SubRuns
from folkmoot.runtime.tool_calls import ToolCalls
from folkmoot.runtime.watched import Watched
from folkmoot.runtime.worker import Identity, Worker
from folkmoot.runtime.workshop import Workshop
from folkmoot.services import consent_secrets
from folkmoot.services.secrets import open_sealed, open_secret
from folkmoot.settings import Settings
from folkmoot.store.appends import Appender
from folkmoot.vault.masks import OF_PROCESS

_APART_COMMAND = ("-m", "folkmoot", "worker", "--apart")


def worker_options(found: Settings) -> WorkerOptions:
    return WorkerOptions(
        lease_seconds=found.lease_seconds,
        ping_seconds=min(found.ping_seconds, found.lease_seconds / 4),
        own_deadline_seconds=found.lease_seconds * 55 / 60,
        sweep_seconds=found.sweep_seconds,
        poll_seconds=found.poll_seconds,
        drain_seconds=found.drain_seconds,
        slots=found.slots,
        poison_limit=found.poison_limit,
        backoff_first_seconds=found.retry_seconds,
    )


@asynccontextmanager
async def open_worker(
    installation: Installation, *, is_apart: bool = False, worker_id: UUID | None = None
) -> AsyncIterator[Worker]:
    """A worker in this process, ready to be run."""
    appender = Appender(installation.database)
    watched = Watched(installation.notifier.tell)
    identity = Identity(socket.gethostname(), os.getpid(), __version__, is_apart, worker_id)
    async with open_outside(installation.settings) as outside:
        workshop = Workshop(
            installation.database, appender, installation.models, tool_calls(installation, outside), watched, installation.new_id,
            worker_options(installation.settings), lambda: True, read_key, prices_of=prices_of,
            delegations=_delegations(installation), seal_consent=partial(consent_secrets.seal, installation.vault),
            open_secret=partial(open_sealed, installation.vault), may_send_key=partial(may_send_key, installation.settings.allow_keys),
        )  # fmt: skip
        _quiet_collector()
        try:
            # a worker apart is there for one run at a time, and may be taken down by it
            if is_apart:
                yield Worker(workshop, identity)
            else:
                async with sending(installation, outside) as nudge:
                    yield Worker(workshop, identity, apart_command=_APART_COMMAND, on_inbox=nudge)
        finally:
            await appender.close()


def _delegations(installation: Installation) -> Delegations:
    return Delegations(
        installation.database, bench_of(installation), installation.new_id, lambda: token_of(secrets.token_bytes(TOKEN_BYTES)),
        installation.notifier.tell,
    )  # fmt: skip


def may_send_key(allowed: Collection[tuple[str, str]], provider: str, variable: str, url: str | None) -> bool:
    """Whether the operator lets the key in this variable go there: a provider's usual key to that provider, and what a setting names."""
    return is_usual_way(provider, variable, url) or (url is not None and (variable, url.rstrip("/")) in allowed)


def tool_calls(installation: Installation, outside: Outside) -> ToolCalls:
    """How this process calls tools."""

    async def read_header(tenant_id: UUID, header: SecretHeader) -> str:
        secret = await open_secret(installation.database, installation.vault, tenant_id, secret_id=header.secret_id)
        return header_value(header.scheme, secret.reveal())

    starts = SubRuns(installation.database, bench_of(installation), installation.new_id, installation.notifier.tell)
    return ToolCalls(installation.database, installation.functions, outside, read_header, OF_PROCESS.mask, starts)


def _quiet_collector() -> None:
    """A worker makes many small things that die young: what is there by now is no garbage, and looking for cycles can wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@contextmanager
def signals(on_signal: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Within the block, in a running loop, requests to end (SIGTERM, Ctrl-C, a closed terminal) are `on_signal`'s to handle."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    if before[signal.SIGHUP] is signal.SIG_IGN:  # nohup
        del before[signal.SIGHUP]
    for number in before:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


async def run_until_drained(
    worker: Worker, *, ends_with_stdin: bool = False, on_begin: Callable[[], None] = lambda: None
) -> None:
    """Run a worker until a signal drains it; a second one cuts the drain short. `on_begin`: called once signals are heard."""
    task = asyncio.create_task(worker.run())
    hits = 0

    def on_signal(_: signal.Signals) -> None:
        nonlocal hits
        hits += 1
        worker.drain() if hits == 1 else task.cancel()

    watcher = asyncio.create_task(_when_stdin_closes(worker.drain)) if ends_with_stdin else None
    try:
        with signals(on_signal), suppress(asyncio.CancelledError):
            on_begin()
            await task
    finally:
        if watcher is not None:
            watcher.cancel()


async def _when_stdin_closes(then: Callable[[], None]) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass
    then()
