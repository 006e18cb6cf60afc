"""The server's pages over real HTTP without a browser: a visitor who keeps cookies and sends the forms that pages show; and a run that waits.

Deliberately absent: anything that makes a form's token itself.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import agents_at_hand as agents
import httpx2
import panels
from agents_at_hand import Deeds, call, met, plan, script, step
from api_at_hand import NO_TLS, Served
from crews import crew, until

from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys
from folkmoot.store.database import Database

CODE = "abcdefghij234567"


@dataclass
class Form:
    """A form as a page shows it, with what it would send if it was sent as it is."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self.forms.append(Form(found["action"] or "", found.get("method") or "get"))
        elif tag in ("input", "textarea", "select") and found.get("name"):
            self.forms[-1].fields[found["name"] or ""] = found.get("value") or ""
        elif tag == "option" and not self.forms[-1].fields.get("agent"):
            self.forms[-1].fields["agent"] = found.get("value") or ""


def forms_of(html: str) -> dict[str, Form]:
    """By what they send to."""
    parser = _Forms()
    parser.feed(html)
    return {form.action: form for form in parser.forms}


class Visitor:
    """Somebody at a browser without scripts. Redirects are not followed."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.AsyncClient(
            base_url=url, timeout=30, trust_env=False, follow_redirects=False, verify=NO_TLS
        )

    async def get(self, path: str, **more: Any) -> httpx2.Response:
        return await self.client.get(path, **more)

    async def post(self, path: str, fields: Mapping[str, str], **more: Any) -> httpx2.Response:
        return await self.client.post(path, data=dict(fields), **more)

    async def send(self, page: httpx2.Response, action: str, **fields: str) -> httpx2.Response:
        """A form of the page, filled in."""
        form = forms_of(page.text)[action]
        assert form.method == "post"
        return await self.post(action, {**form.fields, **fields})

    async def sign_in(self, key: str, there: str = "/web/agent-runs") -> httpx2.Response:
        page = await self.get("/web/sign-in", params={"next": there})
        return await self.send(page, "/web/sign-in", key=key)


@asynccontextmanager
async def visiting(server: Served, *, key: str | None = None) -> AsyncIterator[Visitor]:
    """Signed in where there is a key."""
    visitor = Visitor(server.url)
    try:
        if key is not None:
            answer = await visitor.sign_in(key)
            assert answer.status_code == 303, answer.text
        yield visitor
    finally:
        await visitor.client.aclose()


@dataclass(frozen=True)
class Waiting:
    """A run whose call of `tell` waits for its owner's consent. `path`: of its consent page."""

    run: AgentRun
    deeds: Deeds
    rules: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/web/consent/{self.run.correlation_token}"


def rules_of(what: str) -> dict[str, Any]:
    told = [[call("tell", who="Bo", what=what)], "Told."]
    return script(clerk=["Nothing to gather.", plan(step("Tell Bo.", "tell")), *told, met("Bo was told.")])


async def waiting_run(
    database: Database, caller: Caller, new_id: NewId, *, what: str = "It is 42.", code: str | None = None
) -> Waiting:
    """`code`: of the request, as a channel's message would carry it."""
    deeds, rules = Deeds(), rules_of(what)
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    run = await agents.start(database, caller, new_id, bench=bench, conversation_id=new_id())
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, run))
    waiting = Waiting(await agents.now(database, caller, run), deeds, rules)
    if code is not None:
        async with database.writer() as writer:
            await writer.connection.execute(
                "update chat_item set secret_hash = $1, secret_tries = 0 where chat_item_id = $2",
                hashlib.sha256(code.encode()).digest(),
                waiting.run.chat_item_id,
            )
    return waiting


async def key_of(database: Database, owner: Caller, new_id: NewId, *, role: str = "approver", name: str = "Ann") -> str:
    """A key of a new user of this role."""
    async with database.writer() as writer:
        user_id = new_id()
        await writer.connection.execute(
            "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) values ($1, $2, $3, $4, $5, now(), now())",
            owner.tenant_id,
            user_id,
            name,
            role,
            owner.user_id,
        )
    _, text = await keys.create(
        database,
        owner,
        name=f"{name}'s",
        expires_at=None,
        new_id=new_id,
        random_bytes=secrets.token_bytes,
        user_id=user_id,
    )
    return text


async def consent_row(database: Database, waiting: Waiting) -> Any:
    rows = await panels.fetch(database, "select * from chat_item where chat_item_id = $1", waiting.run.chat_item_id)
    return rows[0]
