"""Workers inside a test's own process, with a scripted model that notes what it is asked and can be held.

Deliberately absent: processes (`processes`), and any fake of a store or an engine.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import panels

from folkmoot.bootstrap.outside import Outside
from folkmoot.domain.calls import CallResult, ResultTarget, SwarmTarget, Tool
from folkmoot.domain.model_calls import Model, ModelChoice, ModelFailure, ModelReply, ModelRequest, OnText
from folkmoot.domain.operations import SecretHeader
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.llm.catalogue import prices_of
from folkmoot.llm.registry import Models
from folkmoot.llm.scripted import ScriptedModel
from folkmoot.runtime import large_results
from folkmoot.runtime.delegations import Delegations
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.sub_runs import Caller, SubRuns
from folkmoot.runtime.tool_calls import ToolCalls
from folkmoot.runtime.watched import Watched
from folkmoot.runtime.worker import Identity, Worker
from folkmoot.runtime.workshop import Workshop
from folkmoot.services import consent_secrets
from folkmoot.services.closure import Workbench
from folkmoot.store.appends import Appender
from folkmoot.store.database import Database, Notifier
from folkmoot.tools.functions import CallContext, FunctionTools
from folkmoot.vault.masks import OF_PROCESS
from folkmoot.vault.sealing import Vault
from folkmoot.vault.texts import SecretText

QUICK = WorkerOptions(
    lease_seconds=1000.0, ping_seconds=0.2, own_deadline_seconds=900.0, sweep_seconds=0.2, poll_seconds=0.2, drain_seconds=20.0,
    slots=20, backoff_first_seconds=0.01, backoff_longest_seconds=0.02,
)  # fmt: skip
PATIENCE = 30.0
OpenSecret = Callable[[UUID, UUID, bytes], SecretText]


def new_token() -> str:
    return token_of(secrets.token_bytes(TOKEN_BYTES))


class Listening:
    """The scripted provider: `requests` are all it was asked, `cancelled` those whose reply nobody waited for.

    A participant in `held` is not answered before its event is set.
    """

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.cancelled: list[ModelRequest] = []
        self.held: dict[str, asyncio.Event] = {}
        self._scripted = ScriptedModel()

    def adapter_of(self, choice: ModelChoice) -> Model:
        return self

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        self.requests.append(replace(request, view=tuple(request.view[: request.view_length])))
        try:
            if request.participant in self.held:
                await self.held[request.participant].wait()
            return await self._scripted.ask(request, on_text)
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise

    async def close(self) -> None:
        await self._scripted.close()

    @property
    def asked(self) -> list[str]:
        return [request.participant for request in self.requests]


class Asking(Listening):
    """The adapters of the product in place of the scripted one; what they are asked is not noted."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.models = Models(data_dir=folder)

    def adapter_of(self, choice: ModelChoice) -> Model:
        return self.models.adapter_of(choice)

    async def close(self) -> None:
        await self.models.close()


@dataclass(frozen=True, slots=True)
class Functions:
    tools: FunctionTools
    database: Database
    sub_runs: SubRuns

    async def call(
        self, tool: Tool, arguments: dict[str, Any], *, call_id: str, claim: Claim, participant: str
    ) -> CallResult:
        tenant_id, run_id = claim.tenant_id, claim.run_id
        if isinstance(tool.target, SwarmTarget):
            caller = Caller(UUID(call_id), claim, participant)
            return await self.sub_runs.call(tool.target.action, arguments, caller)
        if isinstance(tool.target, ResultTarget):
            return await large_results.read(self.database, arguments, tenant_id=tenant_id, run_id=run_id)
        return await self.tools.run(tool.name, json.dumps(arguments), CallContext(call_id, call_id, str(run_id)))


@dataclass
class Crew:
    """One worker under way. `tell` notifies all processes, this one included."""

    worker: Worker
    model: Listening
    task: asyncio.Task[None]
    notifier: Notifier
    functions: FunctionTools
    database: Database

    def tell(self, message: dict[str, Any]) -> None:
        self.notifier.tell(message)

    async def read_result(self, arguments: dict[str, Any], *, tenant_id: UUID, run_id: UUID) -> CallResult:
        return await large_results.read(self.database, arguments, tenant_id=tenant_id, run_id=run_id)

    async def drain(self) -> None:
        self.worker.drain()
        await asyncio.wait_for(self.task, PATIENCE)


@asynccontextmanager
async def crew(
    database: Database,
    new_id: NewId,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    model: Listening | None = None,
    is_apart: bool = False,
    outside: Outside | None = None,
    open_secret: OpenSecret | None = None,
    bench: Workbench | None = None,
    vault: Vault | None = None,
    **options: Any,
) -> AsyncIterator[Crew]:
    """A worker that runs until the block ends, and is then drained. `outside`: where its external operations are called.
    `open_secret`: without it there is no vault. `bench`: what sub-runs are started with. `vault`: seals the secrets of consents."""
    appender, notifier = Appender(database), Notifier(database)
    model = model or Listening()
    tools = FunctionTools.discover(functions or {})
    sub_runs = SubRuns(database, bench or Workbench(lambda _: None, lambda _: panels.TALK), new_id, notifier.tell)
    calls = (
        Functions(tools, database, sub_runs)
        if outside is None
        else ToolCalls(database, tools, outside, _no_header, OF_PROCESS.mask, sub_runs)
    )
    workshop = Workshop(
        database, appender, model, calls, Watched(notifier.tell), new_id, replace(QUICK, **options), lambda: True, os.environ.get,
        lambda: 1.0, prices_of, delegations=Delegations(database, sub_runs.bench, new_id, new_token, notifier.tell),
        seal_consent=partial(consent_secrets.seal, vault) if vault is not None else lambda _, __, ___: None,
    )  # fmt: skip
    if open_secret is not None:
        workshop = replace(workshop, open_secret=open_secret)
    worker = Worker(workshop, Identity("here", os.getpid(), "0", is_apart))
    made = Crew(worker, model, asyncio.create_task(worker.run()), notifier, tools, database)
    try:
        yield made
    finally:
        for event in model.held.values():
            event.set()
        worker.drain()
        await asyncio.wait({made.task}, timeout=PATIENCE)
        await notifier.close()
        await appender.close()
    if not made.task.cancelled():
        made.task.result()


async def _no_header(tenant_id: UUID, header: SecretHeader) -> str:
    raise NotFound("There are no secrets here.")


@asynccontextmanager
async def rescuers(
    database: Database,
    new_id: NewId,
    functions: Mapping[str, Callable[..., Any]],
    outside: Outside | None = None,
    **more: Any,
) -> AsyncIterator[None]:
    """Two workers in this process, one of them for suspects, for tests that need but one process of its own."""
    quick: dict[str, Any] = {"lease_seconds": 60.0, "sweep_seconds": 0.2, "poll_seconds": 0.1, **more}
    is_over = asyncio.Event()

    async def take_suspects() -> None:
        # such a worker ends by itself when there are no suspects
        while not is_over.is_set():
            async with crew(database, new_id, functions=functions, is_apart=True, outside=outside, **quick) as apart:
                await asyncio.wait({apart.task})
            with suppress(TimeoutError):
                await asyncio.wait_for(is_over.wait(), 0.1)

    async with crew(database, new_id, functions=functions, outside=outside, **quick):
        apart = asyncio.create_task(take_suspects())
        try:
            yield
        finally:
            is_over.set()
            await asyncio.wait({apart}, timeout=PATIENCE)


async def until(condition: Callable[[], Awaitable[bool] | bool], *, seconds: float = PATIENCE) -> None:
    """Waits for a thing to be so."""
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.01)
