"""Agent runs that await their owner's consent: an agent that plans one step, wants to sign, and may not without being asked.

Its owner is reached over a `webhook` channel, so that every request and what became of it is sent, too. Beside it there are an agent that may jot
without being asked, and interactions: of one such call that waits for its approval, and of four turns. Runs are started as the API does it, and
workers drive them. Deliberately absent: what is measured (`consents`, `consent_answers`, `agents`), and rows that no worker wrote.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
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
from folkmoot.domain.definitions import AgentBinding, AgentVersion, AiModelVersion, InteractionVersion, Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.services import agent_runs, apply, starting
from folkmoot.services import secrets as secret_service
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.apply import Document
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.store import tenancy
from folkmoot.vault.keys import KEY_BYTES, write_key
from folkmoot.vault.texts import SecretText

_CONNECTIONS = 8
_LOOK_SECONDS = 0.05
_DONE = "It is done."
_NAMESPACE = "default"
CLERK, HASTY_CLERK, FREE_CLERK = (
    "clerk",
    "hasty-clerk",
    "free-clerk",
)  # the second waits for an hour, the last asks nobody
SIGNING, TALK = "signing", "talk"
HASTE = timedelta(hours=1)
MODEL_CALLS = 4  # of an agent run, to plan, to call, to say so, to verify; and turns of the interaction beside it
# so many await, as many have ended, no worker holds a run or could claim one, and all messages are delivered
_SETTLED = """
select ($2::bigint is null or (select count(*) from agent_run where tenant_id = $1 and status = 'awaiting_consent') = $2)
    and not exists (select from process where tenant_id = $1 and ended_at is null and (worker_id is not null or ready_at is not null))
    and not exists (select from channel_message where tenant_id = $1 and ready_at is not null)
"""
_AWAITING = """
select a.id, a.run_id, a.chat_item_id, a.pending_tool_id, encode(c.arguments_hash, 'hex'), a.channel_id from agent_run a
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
    channel_id: UUID


@dataclass(frozen=True, slots=True)
class Office:
    """A database in which all is published, and the endpoint that the owner is told at. `log`: of the calls that were made. `signing`: the
    channel's secret."""

    ground: Ground
    dsn: str
    drive: Driver
    caller: Caller
    key: str
    bench: Workbench
    endpoint: Endpoint
    signing: str
    log: Path
    settings: dict[str, Any]

    def worker(self) -> AbstractAsyncContextManager[WorkerProcess]:
        """A worker with the usual timing; a quick one sweeps more often."""
        return worker(self.ground, self.dsn, self.drive, beside={"BENCH_CALLS": str(self.log)}, **self.settings)

    @asynccontextmanager
    async def api(self, *, connections: int = _CONNECTIONS) -> AsyncIterator[httpx2.AsyncClient]:
        """`folkmoot api` in a process of its own, and a client that keeps so many connections open."""
        async with server(
            self.ground, self.dsn, "-m", "folkmoot", "api", "--port", "0", "--json", **self.settings
        ) as line:
            headers = {"Authorization": f"Bearer {self.key}"}
            limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
            async with httpx2.AsyncClient(
                base_url=json.loads(line)["url"], headers=headers, limits=limits, timeout=60.0, trust_env=False
            ) as client:
                yield client

    async def start(self, count: int, *, agent: str = CLERK) -> None:
        """So many runs, on as many connections as a server has."""

        async def begin() -> None:
            await agent_runs.start(
                self.drive.database, self.caller, agent=Reference(agent, _NAMESPACE), request=AgentStart("Have it signed."), bench=self.bench,
                new_id=new_id, new_token=lambda: token_of(secrets.token_bytes(TOKEN_BYTES)), tell=self.drive.notifier.tell,
            )  # fmt: skip

        await _side_by_side(begin, count)

    async def start_interactions(self, count: int, *, name: str) -> None:
        """The same of an interaction."""

        async def begin() -> None:
            await starting.start(
                self.drive.database, self.caller, interaction=Reference(name, _NAMESPACE), request=StartFields(), bench=self.bench, new_id=new_id,
                tell=self.drive.notifier.tell,
            )  # fmt: skip

        await _side_by_side(begin, count)

    async def shift_clock(self, by: timedelta) -> None:
        """It is so much later. No worker may run meanwhile: its lease would be over."""
        async with self.drive.database.writer() as writer:
            await writer.connection.execute("update clock_shift set shift = shift + $1", by)

    async def settled(self, *, awaiting: int | None = None) -> None:
        """When so many await consent (null: however many), nothing is left to do, and their owner has been told of all of it."""
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
            signing = await _publish(installation, caller, course.ground, endpoint)
            log = course.ground.folder / f"calls-{time.time_ns()}.log"
            yield Office(
                course.ground, dsn, Driver(installation.database, installation.notifier), caller, installation.new_key,
                bench_of(installation), endpoint, signing, log, own,
            )  # fmt: skip


async def _side_by_side(begin: Callable[[], Awaitable[None]], count: int) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for _ in numbers:
            await begin()

    await asyncio.gather(*(some() for _ in range(_CONNECTIONS)))


async def _publish(installation: Installation, caller: Caller, ground: Ground, endpoint: Endpoint) -> str:
    """The channel's secret."""
    signing = "whsec_" + write_key(secrets.token_bytes(24))
    await secret_service.put(
        installation.database, installation.vault, caller, namespace=_NAMESPACE, name="signing", value=SecretText(signing), new_id=new_id
    )  # fmt: skip
    channel = ChannelVersion("webhook", {"url": endpoint.url}, {"signing": Reference("signing")})
    asking = AgentRunSettings(tool_whitelist=("sign",), channel="told")
    sign = {"name": "sign", "arguments": {"text": reply_text()[:300]}}
    signing_rules = [{"when": {"call": 1}, "reply": {"calls": [sign]}}, {"reply": {"text": _DONE}}]
    documents = [
        Document(_NAMESPACE, "told", channel),
        *_agent(ground, CLERK, _phases("sign"), tool="sign", runs=asking),
        *_agent(ground, HASTY_CLERK, _phases("sign"), tool="sign", runs=replace(asking, consent_time=HASTE)),
        *_agent(ground, FREE_CLERK, _phases("jot"), tool="jot", runs=AgentRunSettings(tool_whitelist=("jot",))),
        *_agent(ground, "signer", signing_rules, tool="sign"),
        *_agent(ground, "talker", [{"reply": {"text": reply_text()[:300]}}]),
        Document(_NAMESPACE, SIGNING, _interaction("signer", turns=1)),
        Document(_NAMESPACE, TALK, _interaction("talker", turns=MODEL_CALLS)),
    ]
    await apply.apply(installation.database, caller, documents, new_id=new_id, channel_apps=installation.channel_apps)
    return signing


def _agent(
    ground: Ground,
    name: str,
    rules: list[dict[str, Any]],
    *,
    tool: str | None = None,
    runs: AgentRunSettings | None = None,
) -> tuple[Document, Document]:
    file = ground.folder / f"{name}.yaml"
    file.write_text(json.dumps({"rules": rules}), encoding="utf-8")
    model = AiModelVersion(provider="scripted", model_name="instant", path=str(file))
    agent = AgentVersion(
        model=Reference(f"{name}-model"), prompts=("You are a clerk.",), function_tools=(tool,) if tool else (),
        runs=runs or AgentRunSettings(),
    )  # fmt: skip
    return Document(_NAMESPACE, f"{name}-model", model), Document(_NAMESPACE, name, agent)


def _interaction(agent: str, *, turns: int) -> InteractionVersion:
    return InteractionVersion((AgentBinding(Reference(agent), "Ada"),), "Have it signed.", maximum_rounds=turns)


def _phases(tool: str) -> list[dict[str, Any]]:
    """Rules for an agent run of one step with one call; then words, and a verdict: four calls of the model."""
    step = {"what": "Have the text done.", "tool": tool}
    plan = {"name": "make_plan", "arguments": {"steps": [step], "criteria": ["It is done."]}}
    met = {"number": 1, "isMet": True, "evidence": f"{tool} said so."}
    verdict = {"name": "verdict", "arguments": {"isMet": True, "criteria": [met], "answer": _DONE}}
    call = {"name": tool, "arguments": {"text": reply_text()[:300]}}
    return [
        {"when": {"offered": "verdict"}, "reply": {"calls": [verdict]}},
        {"when": {"offered": "make_plan"}, "reply": {"calls": [plan]}},
        {"when": {"call": 2}, "reply": {"calls": [call]}},
        {"reply": {"text": _DONE}},
    ]
