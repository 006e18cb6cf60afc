"""Agent runs that await their owner's consent: an agent that plans one step, wants to sign, and may not without being asked.

Its owner is reached over a `webhook` channel, so that every request and what became of it is sent, too. Runs are started and answered as the API
does it, and workers drive them. Deliberately absent: what is measured (`consents`), and rows that no worker wrote.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from bench import gated_functions
from bench.course import Course
from bench.endpoint import Endpoint, open_endpoint
from bench.ground import Ground
from bench.roundtable import Driver, new_id, reply_text
from bench.workers import WorkerProcess, server, worker
from folkmoot import settings
from folkmoot.bootstrap.installation import Installation, bench_of, open_installation
from folkmoot.domain.agent_settings import AgentRunSettings
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.definitions import AgentVersion, AiModelVersion, Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.services import agent_runs, apply
from folkmoot.services import secrets as secret_service
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.apply import Document
from folkmoot.services.closure import Workbench
from folkmoot.store import tenancy
from folkmoot.vault.keys import KEY_BYTES, write_key
from folkmoot.vault.texts import SecretText

_CONNECTIONS = 8
_LOOK_SECONDS = 0.05
_NAMESPACE, _AGENT = "default", "clerk"
# so many await, as many have ended, no worker holds a run or could claim one, and all messages are delivered
_SETTLED = """
select (select count(*) from agent_run where tenant_id = $1 and status = 'awaiting_consent') = $2
    and not exists (select from process where tenant_id = $1 and ended_at is null and (worker_id is not null or ready_at is not null))
    and not exists (select from channel_message where tenant_id = $1 and ready_at is not null)
"""
_AWAITING = """
select a.id, a.run_id, a.chat_item_id, a.pending_tool_id, encode(c.arguments_hash, 'hex') from agent_run a
join chat_item c on c.tenant_id = a.tenant_id and c.chat_item_id = a.chat_item_id
where a.tenant_id = $1 and a.status = 'awaiting_consent' order by a.id limit $2
"""


@dataclass(frozen=True, slots=True)
class Awaiting:
    """An agent run with what it asks. `shown_hash`: what the answer must name."""

    id: int
    run_id: UUID
    chat_item_id: UUID
    call_id: UUID
    shown_hash: str


@dataclass(frozen=True, slots=True)
class Office:
    """A database in which the agent is published, and the endpoint that its owner is told at. `log`: of the calls that were made."""

    ground: Ground
    dsn: str
    drive: Driver
    caller: Caller
    key: str
    bench: Workbench
    endpoint: Endpoint
    log: Path
    settings: dict[str, Any]

    def worker(self) -> AbstractAsyncContextManager[WorkerProcess]:
        """A worker with the usual timing; a quick one sweeps more often."""
        return worker(self.ground, self.dsn, self.drive, beside={"BENCH_CALLS": str(self.log)}, **self.settings)

    @asynccontextmanager
    async def api(self) -> AsyncIterator[httpx2.AsyncClient]:
        """`folkmoot api` in a process of its own."""
        async with server(
            self.ground, self.dsn, "-m", "folkmoot", "api", "--port", "0", "--json", **self.settings
        ) as line:
            headers = {"Authorization": f"Bearer {self.key}"}
            async with httpx2.AsyncClient(
                base_url=json.loads(line)["url"], headers=headers, timeout=60.0, trust_env=False
            ) as client:
                yield client

    async def start(self, count: int) -> None:
        """So many runs, on as many connections as a server has."""
        numbers = iter(range(count))

        async def begin() -> None:
            for _ in numbers:
                await agent_runs.start(
                    self.drive.database, self.caller, agent=Reference(_AGENT, _NAMESPACE), request=AgentStart("Have it signed."),
                    bench=self.bench, new_id=new_id, new_token=lambda: token_of(secrets.token_bytes(TOKEN_BYTES)),
                    tell=self.drive.notifier.tell,
                )  # fmt: skip

        await asyncio.gather(*(begin() for _ in range(_CONNECTIONS)))

    async def settled(self, *, awaiting: int) -> None:
        """When so many await consent, nothing is left to do, and their owner has been told of all of it."""
        async with self.drive.database.reader() as reader:
            statement = await reader.connection.prepare(_SETTLED)
            while not await statement.fetchval(self.caller.tenant_id, awaiting):
                await asyncio.sleep(_LOOK_SECONDS)

    async def awaiting(self, count: int) -> list[Awaiting]:
        """The oldest so many."""
        async with self.drive.database.reader() as reader:
            rows = await reader.connection.fetch(_AWAITING, self.caller.tenant_id, count)
        return [Awaiting(*row.values()) for row in rows]

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        """The rows of what is asked about the tenant, whose id is `$1`."""
        async with self.drive.database.reader() as reader:
            return list(await reader.connection.fetch(query, self.caller.tenant_id, *values))

    def calls(self) -> list[tuple[str, float]]:
        """Which calls were made, and when (Unix seconds)."""
        if not self.log.exists():
            return []
        lines = [line.split() for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [(call_id, int(moment) / 1e9) for call_id, moment in lines]


@asynccontextmanager
async def open_office(course: Course) -> AsyncIterator[Office]:
    own = {
        "FUNCTIONS": gated_functions.__file__, "ALLOW_ADDRESSES": "127.0.0.1", "SECRET_KEY": write_key(secrets.token_bytes(KEY_BYTES)),
    }  # fmt: skip
    if course.is_quick:
        own["SWEEP_SECONDS"] = "1"
    async with course.ground.database() as dsn, open_endpoint() as endpoint:
        found = settings.read(course.ground.environment(dsn, **own))
        async with open_installation(found, connections=_CONNECTIONS) as installation:
            async with installation.database.reader() as reader:
                caller = await tenancy.owner(reader)
            assert caller is not None and installation.new_key is not None
            await _publish(installation, caller, course.ground, endpoint)
            log = course.ground.folder / f"calls-{time.time_ns()}.log"
            yield Office(
                course.ground, dsn, Driver(installation.database, installation.notifier), caller, installation.new_key,
                bench_of(installation), endpoint, log, own,
            )  # fmt: skip


async def _publish(installation: Installation, caller: Caller, ground: Ground, endpoint: Endpoint) -> None:
    signing = "whsec_" + write_key(secrets.token_bytes(24))
    await secret_service.put(
        installation.database, installation.vault, caller, namespace=_NAMESPACE, name="signing", value=SecretText(signing), new_id=new_id
    )  # fmt: skip
    file = ground.folder / "clerk.yaml"
    file.write_text(json.dumps(_script()), encoding="utf-8")
    documents = [
        Document(
            _NAMESPACE, "told", ChannelVersion("webhook", {"url": endpoint.url}, {"signing": Reference("signing")})
        ),
        Document(_NAMESPACE, "small", AiModelVersion(provider="scripted", model_name="instant", path=str(file))),
        Document(
            _NAMESPACE,
            _AGENT,
            AgentVersion(
                model=Reference("small"),
                prompts=("You are a clerk.",),
                function_tools=("sign",),
                runs=AgentRunSettings(tool_whitelist=("sign",), channel="told"),
            ),
        ),
    ]
    await apply.apply(installation.database, caller, documents, new_id=new_id, channel_apps=installation.channel_apps)


def _script() -> dict[str, Any]:
    """One step with one call, which is gated; then words, and a verdict."""
    step = {"what": "Sign the text.", "tool": "sign"}
    plan = {"name": "make_plan", "arguments": {"steps": [step], "criteria": ["It is signed."]}}
    met = {"number": 1, "isMet": True, "evidence": "sign gave: signed."}
    verdict = {"name": "verdict", "arguments": {"isMet": True, "criteria": [met], "answer": "It is signed."}}
    sign = {"name": "sign", "arguments": {"text": reply_text()[:300]}}
    return {
        "rules": [
            {"when": {"offered": "verdict"}, "reply": {"calls": [verdict]}},
            {"when": {"offered": "make_plan"}, "reply": {"calls": [plan]}},
            {"when": {"call": 2}, "reply": {"calls": [sign]}},
            {"reply": {"text": "It is signed."}},
        ]
    }
