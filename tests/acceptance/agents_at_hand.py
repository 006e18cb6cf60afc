"""Agents with real definitions, scripted models and functions that note what they do, for tests of agent runs.

Deliberately absent: any shortcut into the database; runs are started and answered as the API does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import panels
from crews import new_token
from panels import Started

from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.agent_settings import AgentRunSettings, ConsentRule
from folkmoot.domain.definitions import AgentVersion, AiModelVersion, Reference
from folkmoot.domain.operations import ApprovalMode
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_runs, apply, consents
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.apply import Document
from folkmoot.services.closure import Workbench
from folkmoot.store import chats
from folkmoot.store.database import Database
from folkmoot.tools.functions import FunctionTools, function_tool

NAMESPACE = "default"
GOAL = "Tell Bo the sum of the two numbers."


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def step(what: str, tool: str | None = None, specialist: str | None = None) -> dict[str, Any]:
    found = {"what": what, "tool": tool, "specialist": specialist}
    return {key: value for key, value in found.items() if value is not None}


def plan(*steps: dict[str, Any], criteria: Sequence[str] = ("Bo was told.",)) -> list[dict[str, Any]]:
    return [call("make_plan", steps=list(steps), criteria=list(criteria))]


def met(answer: str = "Bo was told.", *, criteria: int = 1) -> list[dict[str, Any]]:
    found = [{"number": n, "isMet": True, "evidence": "The result says so."} for n in range(1, criteria + 1)]
    return [call("verdict", isMet=True, criteria=found, answer=answer)]


def unmet(missing: str = "Bo was not told.") -> list[dict[str, Any]]:
    found = [{"number": 1, "isMet": False, "evidence": "No result shows it."}]
    return [call("verdict", isMet=False, criteria=found, missing=missing)]


def script(*rules: dict[str, Any], **by_agent: Sequence[list[dict[str, Any]] | str]) -> dict[str, Any]:
    """Rules, then each agent's replies in order: gathering, planning and acting count its calls of the main conversation, verifying those of
    its own thread, so that a verdict is found by what is offered."""
    made: list[dict[str, Any]] = list(rules)
    for agent, replies in by_agent.items():
        verdicts = [reply for reply in replies if _is_verdict(reply)]
        others = [reply for reply in replies if not _is_verdict(reply)]
        made += [
            {"when": {"participant": agent, "offered": "verdict", "seen": f"Verification {n}."}, "reply": _reply(reply)}
            for n, reply in enumerate(verdicts, 1)
        ]
        if verdicts:
            made.append({"when": {"participant": agent, "offered": "verdict"}, "reply": _reply(verdicts[-1])})
        made += [{"when": {"participant": agent, "call": n}, "reply": _reply(r)} for n, r in enumerate(others, 1)]
    return {"rules": [*made, {"reply": {"text": "Done."}}]}


def _is_verdict(reply: list[dict[str, Any]] | str) -> bool:
    return isinstance(reply, list) and reply[0]["name"] == "verdict"


def _reply(reply: list[dict[str, Any]] | str) -> dict[str, Any]:
    return {"text": reply} if isinstance(reply, str) else {"calls": reply}


@dataclass
class Deeds:
    """Functions that note what they did. `tell` needs consent."""

    done: list[tuple[str, Any]] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        @function_tool(is_read_only=True)
        def look() -> str:
            """Look at the numbers."""
            return self._note("look", None, "The numbers are 20 and 22.")

        @function_tool()
        def add(one: int, other: int) -> str:
            """Add two numbers."""
            return self._note("add", (one, other), str(one + other))

        @function_tool(approval_mode=ApprovalMode.ALWAYS)
        def tell(who: str, what: str) -> str:
            """Tell somebody something."""
            return self._note("tell", (who, what), f"{who} was told.")

        @function_tool()
        def pay(amount: float, to: str = "Bo") -> str:
            """Pay an amount."""
            return self._note("pay", (amount, to), f"{amount} was paid.")

        return {"look": look, "add": add, "tell": tell, "pay": pay}

    def _note(self, name: str, arguments: Any, result: str) -> str:
        self.done.append((name, arguments))
        if name in self.fails:
            raise ValueError(f"{name} is out of order")
        return result

    def bench(self, rules: dict[str, Any]) -> Workbench:
        functions = FunctionTools.discover(self.functions)
        return Workbench(lambda name: functions.offered(name) if name in functions.names else None, lambda _: rules)


async def publish(
    database: Database, caller: Caller, new_id: NewId, *, bench: Workbench, name: str = "clerk", settings: AgentRunSettings | None = None,
    functions: tuple[str, ...] = ("look", "add", "tell", "pay"), script_path: Path = Path("/srv/rules.yaml"), **more: Any,
) -> None:  # fmt: skip
    """An agent with these functions and a scripted model. Its runs may call all of them, unless `settings` say otherwise."""
    documents = [
        Document(NAMESPACE, "small", AiModelVersion(provider="scripted", model_name="rules", path=str(script_path))),
        Document(
            NAMESPACE,
            name,
            AgentVersion(
                model=Reference("small"),
                function_tools=functions,
                runs=settings or AgentRunSettings(tool_whitelist=functions),
                **more,
            ),
        ),
    ]
    await apply.apply(database, caller, documents, new_id=new_id)


def ruled(
    *rules: ConsentRule, whitelist: tuple[str, ...] = ("look", "add", "tell", "pay"), **more: Any
) -> AgentRunSettings:
    return AgentRunSettings(tool_whitelist=whitelist, consent_rules=rules, **more)


async def start(
    database: Database, caller: Caller, new_id: NewId, *, bench: Workbench, name: str = "clerk", **request: Any
) -> AgentRun:
    """A run as the API starts it."""
    wanted = AgentStart(**{"goal": GOAL, **request})
    return await agent_runs.start(
        database, caller, agent=Reference(name, NAMESPACE), request=wanted, bench=bench, new_id=new_id, new_token=new_token,
        tell=lambda _: None,
    )  # fmt: skip


def kernel_run(run: AgentRun) -> Started:
    return Started(run.tenant_id, run.run_id)


async def now(database: Database, caller: Caller, run: AgentRun) -> AgentRun:
    return await agent_runs.get(database, caller, id_=run.id)


async def asked(database: Database, caller: Caller, run: AgentRun) -> ChatItem:
    """What the run waits for its owner's consent about."""
    found = await now(database, caller, run)
    assert found.chat_item_id is not None
    async with database.reader() as reader:
        item = await chats.get(reader, caller.tenant_id, chat_item_id=found.chat_item_id)
    assert item is not None and item.consent is not None
    return item


async def consent(
    database: Database, caller: Caller, run: AgentRun, *, approves: bool = True, reason: str | None = None, tell: Any = lambda _: None
) -> ChatItem:  # fmt: skip
    """The answer to what the run asks, as the API takes it."""
    item = await asked(database, caller, run)
    assert item.consent is not None
    return await consents.answer(
        database, caller, id_=run.id, chat_item_id=item.chat_item_id, approves=approves,
        arguments_hash=item.consent.arguments_hash.hex(), reason=reason, tell=tell,
    )  # fmt: skip


def awaits(database: Database, caller: Caller, run: AgentRun, status: str = "awaiting_consent") -> Callable[[], Any]:
    async def condition() -> bool:
        return (await now(database, caller, run)).status.value == status

    return condition


def ended(database: Database, caller: Caller, run: AgentRun) -> Callable[[], Any]:
    async def condition() -> bool:
        return (await now(database, caller, run)).completed_at is not None

    return condition


async def below(database: Database, run: AgentRun) -> list[Started]:
    rows = await panels.fetch(
        database, "select run_id from process where tenant_id = $1 and parent_id = $2 order by created_at", run.tenant_id, run.run_id
    )  # fmt: skip
    return [replace(kernel_run(run), run_id=UUID(str(row["run_id"]))) for row in rows]
