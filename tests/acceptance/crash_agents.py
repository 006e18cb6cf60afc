"""An agent run whose worker is made to die, the owner at the other end of its channel, and what must hold of it afterwards.

The boss looks, plans, pays (which a rule gates), has a deed signed by the clerk (who is asked about it two runs down), is told by its
verdict that a note is missing, plans again, and notes it (by a tool that can be held). Deliberately absent: answers by another way than the channel's inbound address.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import agents_at_hand as agents
import checker
import crews
import panels
from agents_at_hand import NAMESPACE, call, met, plan, step, unmet
from api_at_hand import VAULT
from channels_at_hand import world
from crews import until
from processes import Hands, Hired
from recording_server import Received, RecordingServer, reply
from standardwebhooks import Webhook

from folkmoot.bootstrap.installation import read_script
from folkmoot.channels.registry import ChannelApps
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.agent_settings import AgentRunSettings, Comparison, ConsentRule
from folkmoot.domain.channels import ChannelVersion, InboundRequest
from folkmoot.domain.definitions import AgentVersion, AiModelVersion, Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.channel_sending import channel_sending
from folkmoot.services import apply, inbound, secrets
from folkmoot.services.apply import Document
from folkmoot.services.closure import Workbench
from folkmoot.store.database import Database, Notifier
from folkmoot.tools.functions import FunctionTools
from folkmoot.vault.texts import SecretText

SEALING_KEY = b64encode(bytes(range(32))).decode()  # of api_at_hand.VAULT
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GATED = {"pay": '{"amount": 5}', "sign": '{"text": "the deed"}'}
# where a worker dies, and the how manieth time it is there: at a phase's boundary, at a gate and after it, at a delegation, at a message
MATRIX = (
    ("after_commit", 25),
    ("after_pause", 3),
    ("after_claim", 2),
    ("after_call", 2),
    ("before_delegation", 1),
    ("after_delegation", 1),
    ("before_channel_send", 1),
    ("after_channel_send", 1),
)

_SIGNS: list[Any] = [
    "Nothing.",
    plan(step("Sign it.", "sign"), criteria=("It is signed.",)),
    [call("sign", text="the deed")],
    "Signed.",
    met("Signed."),
]
_DELEGATES = [call("delegate", specialist="clerk", task="Sign the deed.")]
DEED = agents.script(
    boss=[
        [call("look", text="prices")],
        "They are cheap.",
        plan(step("Pay.", "pay"), step("Have it signed.", specialist="clerk"), criteria=("It is paid and signed.",)),
        [call("pay", amount=5)],
        "Paid.",
        _DELEGATES,
        "Delegated.",
        unmet("A note is missing."),
        plan(step("Note it.", "wait"), criteria=("It is noted.",)),
        [call("wait", text="for the ink")],
        "Noted.",
        met("All is done."),
    ],
    clerk=_SIGNS,
)
SHORT = agents.script(
    boss=["Nothing.", plan(step("Have it signed.", specialist="clerk")), _DELEGATES, "No.", met("No.")], clerk=_SIGNS
)
PAYS = agents.script(
    boss=[
        "Nothing.",
        plan(step("Pay.", "pay"), step("Wait.", "wait")),
        [call("pay", amount=5)],
        "Paid.",
        [call("wait", text="for it")],
        "Waited.",
        met("Paid."),
    ]
)
PHASES = {
    "boss": ["gather", "plan", "act", "act", "verify", "plan", "act", "verify"],
    "clerk": ["gather", "plan", "act", "verify"],
}


class Owner:
    """A program at the other end of a webhook channel: it logs what it is sent, outside of the database, and answers requests with
    their own secrets once it `is_there`."""

    def __init__(self, database: Database, apps: ChannelApps, log: Path) -> None:
        self.is_there = asyncio.Event()
        self._database = database
        self._apps = apps
        self._log = log
        self._notifier = Notifier(database)
        self._answers: list[asyncio.Task[None]] = []
        self.faults: list[str] = []

    async def hear(self, received: Received, writer: asyncio.StreamWriter) -> None:
        body = Webhook(SIGNING).verify(received.body, dict(received.headers))
        with self._log.open("a") as log:
            log.write(json.dumps({"id": received.header("webhook-id"), **body}) + "\n")
        writer.write(reply())
        await writer.drain()
        if body["type"] == "consent.requested":
            self._answers.append(asyncio.create_task(self._approve(body["data"])))

    async def _approve(self, asked: dict[str, Any]) -> None:
        await self.is_there.wait()
        try:
            await until(lambda: self._all_await(asked["chatItemId"]), seconds=15)
        except TimeoutError:
            self.faults.append(f"Not all runs of the delegation awaited the consent {asked['chatItemId']}.")
        data = {"token": asked["token"], "secret": asked["secret"], "decision": "approve"}
        body = json.dumps({"type": "consent.answer", "data": data})
        moment, id_ = datetime.now(UTC), f"answer-{len(self._answers)}-{asked['chatItemId']}"
        headers = {
            "webhook-id": id_,
            "webhook-timestamp": str(int(moment.timestamp())),
            "webhook-signature": Webhook(SIGNING).sign(id_, moment, body),
        }
        (channel,) = await panels.fetch(self._database, "select distinct channel_id from channel_message")

        async def read() -> InboundRequest:
            return InboundRequest(headers, body.encode())

        await inbound.receive(
            self._database, VAULT, self._apps, channel_id=channel["channel_id"], read=read, tell=self._notifier.tell
        )

    async def _all_await(self, chat_item_id: str) -> bool:
        """Consent 0: all runs of the delegation hold the same chat item and call, none of them is at work, and the sender is done."""
        rows = await panels.fetch(
            self._database,
            """select a.chat_item_id, a.pending_tool_id, a.status::text, p.worker_id, p.awaits_since, p.ready_at from agent_run a
               join process p using (tenant_id, run_id) where p.ended_at is null""",
        )
        held = {(str(r["chat_item_id"]), r["pending_tool_id"], r["status"]) for r in rows}
        at_work = [r for r in rows if r["worker_id"] or r["awaits_since"] or r["ready_at"]]
        item = await panels.fetch(
            self._database, "select call_id, status::text from chat_item where chat_item_id = $1", UUID(chat_item_id)
        )
        if item[0]["status"] != "pending":
            return True
        return held == {(chat_item_id, item[0]["call_id"], "awaiting_consent")} and not at_work

    def heard(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    async def leave(self) -> None:
        for task in self._answers:
            task.cancel()
        await self._notifier.close()
        for found in await asyncio.gather(*self._answers, return_exceptions=True):
            if isinstance(found, Exception):
                raise found


@dataclass
class Office:
    """Boss and clerk as definitions, their owner's channel, and workers that share it with processes of their own."""

    crew: Hands
    caller: Caller
    new_id: NewId
    owner: Owner
    apps: ChannelApps
    bench: Workbench
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.crew.database

    async def hire(self, *, fault: str | None = None, **more: Any) -> Hired:
        """A worker that can open what the tests have sealed, and reach the owner."""
        return await self.crew.hire(fault=fault, SECRET_KEY=SEALING_KEY, ALLOW_ADDRESSES="127.0.0.1", **more)

    async def start(self) -> AgentRun:
        return await agents.start(
            self.database, self.caller, self.new_id, bench=self.bench, name="boss", reply_params='{"place": 7}'
        )

    @asynccontextmanager
    async def others(self) -> AsyncIterator[None]:
        """Workers in this process, and what sends over channels."""
        messages = channel_sending(
            self.database, VAULT, self.apps, chance=lambda: 0.5, poll_seconds=0.05, public_url=None
        )
        async with crews.rescuers(
            self.database, self.new_id, self.crew.functions(), bench=self.bench, vault=VAULT, **self.more
        ):
            messages.start()
            try:
                yield
            finally:
                await messages.close()

    def has_called(self, name: str) -> bool:
        return any(entry.name == name for entry in checker.log_of(self.crew.log))

    async def has_told(self) -> bool:
        return not await panels.fetch(self.database, "select from channel_message where ready_at is not null")

    async def let_messages_lapse(self) -> None:
        """As if two minutes were over, for which a message is left to a sender that may have died with it."""
        await panels.execute(
            self.database, "update channel_message set ready_at = folkmoot_now() where ready_at is not null"
        )

    async def ended(self, run: AgentRun) -> None:
        """The run and all that it delegated have ended, and its owner was told all there is to tell."""
        await until(agents.ended(self.database, self.caller, run), seconds=60)

        async def is_over() -> bool:
            return not await panels.fetch(self.database, "select from process where ended_at is null")

        await until(is_over, seconds=60)
        await until(self.has_told, seconds=60)


@asynccontextmanager
async def office(
    crew: Hands,
    caller: Caller,
    new_id: NewId,
    *,
    rules: Mapping[str, Any] = DEED,
    consent_time: timedelta | None = None,
) -> AsyncIterator[Office]:
    database = crew.database
    async with AsyncExitStack() as stack:
        apps = ChannelApps(await stack.enter_async_context(world()), found=())
        owner = Owner(database, apps, crew.folder / "messages.jsonl")
        stack.push_async_callback(owner.leave)
        server = await stack.enter_async_context(RecordingServer(owner.hear))
        script = crew.folder / "rules.yaml"
        script.write_text(json.dumps(rules))
        functions = FunctionTools.discover(crew.functions())
        bench = Workbench(lambda name: functions.offered(name) if name in functions.names else None, read_script)
        await secrets.put(
            database, VAULT, caller, namespace=NAMESPACE, name="signing", value=SecretText(SIGNING), new_id=new_id
        )
        await apply.apply(database, caller, _documents(server.url, script, consent_time), new_id=new_id)
        yield Office(crew, caller, new_id, owner, apps, bench)


def _documents(url: str, script: Path, consent_time: timedelta | None) -> list[Document]:
    rule = ConsentRule("pay", Comparison.ABOVE, "amount", 3)
    boss, clerk = ("look", "wait", "pay"), ("look", "sign")
    runs = AgentRunSettings(
        tool_whitelist=boss, specialists=(Reference("clerk"),), consent_rules=(rule,), channel="desk", consent_time=consent_time
    )  # fmt: skip
    return [
        Document(NAMESPACE, "desk", ChannelVersion("webhook", {"url": url}, {"signing": Reference("signing")})),
        Document(NAMESPACE, "small", AiModelVersion(provider="scripted", model_name="rules", path=str(script))),
        Document(
            NAMESPACE,
            "clerk",
            AgentVersion(model=Reference("small"), function_tools=clerk, runs=AgentRunSettings(tool_whitelist=clerk)),
        ),
        Document(NAMESPACE, "boss", AgentVersion(model=Reference("small"), function_tools=boss, runs=runs)),
    ]


# what must hold


async def faults(office: Office) -> list[str]:
    """What the checker finds, and what is wrong with consents, payloads and messages; empty if nothing is."""
    database, entries = office.database, checker.log_of(office.crew.log)
    return [
        *await checker.faults(database, office.crew.log),
        *await _consents(database, entries),
        *await _payloads(database),
        *await _rows(database),
        *await _messages(database, office.owner.heard()),
        *office.owner.faults,
    ]


async def _consents(database: Database, entries: list[checker.Entry]) -> list[str]:
    """Executed at most once, and if and only if the call was begun, after an approval; what was made is what was shown."""
    rows = await panels.fetch(
        database,
        """select c.call_id, c.status, c.card, extract(epoch from c.decided_at)::float8 as decided, c.executed_at, k.begun_at, k.attempts,
                  k.operation, extract(epoch from c.executed_at)::float8 as executed
           from call k left join chat_item c using (tenant_id, run_id, call_id) where k.operation = any($1) or c.call_id is not null""",
        list(GATED),
    )
    found = []
    for row in rows:
        if row["call_id"] is None:
            if row["begun_at"] is not None:
                found.append(f"A call of {row['operation']} was begun, and nobody was asked.")
            continue
        if (row["executed_at"] is None) != (row["begun_at"] is None) or row["attempts"] > 1:
            found.append(f"The call {row['call_id']} was begun {row['attempts']} times; executed: {row['executed']}.")
        if row["executed"] is not None and not (row["status"] == "approved" and row["decided"] <= row["executed"]):
            found.append(f"The call {row['call_id']} was executed, and is {row['status']}.")
        made = [entry for entry in entries if entry.call_id == str(row["call_id"])]
        shown = json.loads(json.loads(row["card"])["argumentsJson"])
        found += [f"The call {e.call_id} was made otherwise than shown." for e in made if e.arguments != shown]
        found += [
            f"The call {e.call_id} was made before it was marked as executed." for e in made
            if row["executed"] is None or row["executed"] > e.time + 0.001
        ]  # fmt: skip
    asked = Counter(row["operation"] for row in rows if row["call_id"] is not None)
    return found + [f"The consent to {name} was asked {count} times." for name, count in asked.items() if count > 1]


async def _payloads(database: Database) -> list[str]:
    rows = await panels.fetch(
        database,
        """select a.id, a.payload_revision, array(select substring(c.path from '[0-9]+$')::bigint from content c
               where c.tenant_id = a.tenant_id and c.run_id = a.run_id and c.path is not null order by 1) as revisions
           from agent_run a""",
    )
    return [
        f"The agent run {row['id']} has payloads {row['revisions']}, of {row['payload_revision']}."
        for row in rows
        if row["revisions"] != list(range(1, row["payload_revision"] + 1))
    ]


async def _rows(database: Database) -> list[str]:
    """The agent run says what the kernel says; nothing of a consent is left once it has ended."""
    rows = await panels.fetch(
        database,
        """select a.id, a.status::text, p.status::text as kernel from agent_run a join process p using (tenant_id, run_id)
           where (p.ended_at is not null) <> (a.completed_at is not null)
              or (p.ended_at is not null and num_nonnulls(a.pending_tool_id, a.pending_specialist, a.awaiting_since, a.expires_at) > 0)
              or (p.status = 'Completed') <> (a.status = 'completed') or (p.status = 'TimedOut') <> (a.status = 'expired')""",
    )
    return [f"The agent run {row['id']} is {row['status']}, and its run is {row['kernel']}." for row in rows]


async def _messages(database: Database, heard: list[dict[str, Any]]) -> list[str]:
    """Each was sent at least once, the same each time, under its own id; no secret is kept once its message is settled."""
    rows = await panels.fetch(database, "select * from channel_message")
    sent: dict[str, set[str]] = defaultdict(set)
    for each in heard:
        sent[each["id"]].add(json.dumps([each["type"], each["data"]], sort_keys=True))
    found = [
        f"The message {id_} was sent in {len(bodies)} versions." for id_, bodies in sent.items() if len(bodies) > 1
    ]
    known = {str(row["message_id"]): row for row in rows}
    found += [f"The message {id_} is in no table." for id_ in sent.keys() - known.keys()]
    for id_, row in known.items():
        if row["ready_at"] is None and row["sealed_secret"] is not None:
            found.append(f"The message {id_} is settled, and its secret is kept.")
        if row["delivered_at"] is not None and id_ not in sent:
            found.append(f"The message {id_} was delivered to nobody.")
        if row["given_up_at"] is not None and "settled before it was sent" not in (row["last_error"] or ""):
            found.append(f"The message {id_} was given up: {row['last_error']}")
    told = Counter((row["run_id"], row["kind"], row["chat_item_id"]) for row in rows)
    return found + [f"There are {n} messages of {kind}." for (_, kind, _), n in told.items() if n > 1]


async def runs_by_agent(database: Database, run: AgentRun) -> dict[str, UUID]:
    """The runs of a delegation by their agents' names."""
    rows = await panels.fetch(
        database,
        "select p.run_id, d.name from process p join definition d using (tenant_id, definition_id) where p.tenant_id = $1 and p.kind = 'AgentRun'",
        run.tenant_id,
    )
    return {row["name"]: row["run_id"] for row in rows}
