"""A panel that waits for people in every way, the person who answers it, and where its worker is made to die.

Ann looks, dumps more than a conversation carries, and signs, which is gated, with a payment deferred behind it; then the person
speaks; Ben asks the person; Ann puts a topic to the vote; Ben proposes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import panels
from panels import Started
from processes import SHOP

from folkmoot.bootstrap.installation import find_functions
from folkmoot.domain.definitions import ChatMode, HumanSettings, ResolvedInteraction
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import Conflict
from folkmoot.kernel.ids import NewId
from folkmoot.services import answers
from folkmoot.store.database import Database

# point, and the how manieth time it is reached
MATRIX = (
    ("after_claim", 2),
    ("after_pause", 1),
    ("after_content", 1),
    ("after_call", 3),
)

_FIRST = [
    {"name": "look", "arguments": {"text": "prices"}},
    {"name": "dump"},
    {"name": "sign", "arguments": {"text": "the deed"}},
    {"name": "pay", "arguments": {"amount": 5}},
]
SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"offered": "agree"}, "reply": {"calls": [{"name": "agree"}]}},
        {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": _FIRST}},
        {"when": {"participant": "Ben", "call": 1}, "reply": {"calls": [{"name": "ask", "arguments": {"participant": "Human", "question": "Which?"}}]}},
        {"when": {"participant": "Ann", "turn": 2}, "reply": {"calls": [{"name": "call_vote", "arguments": {"topic": "The red one?"}}]}},
        {"when": {"participant": "Ben", "turn": 2}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": "red"}}]}},
        {"when": {}, "reply": {"text": "I have nothing to add."}},
    ]
}  # fmt: skip


def panel(new_id: NewId) -> ResolvedInteraction:
    tools = find_functions((SHOP,))
    offered = {"Ann": tuple(tools.offered(name) for name in tools.names)}
    people = HumanSettings(ChatMode.EVERY_ROUND, include_in_votes=True, include_in_solutions=True)
    return panels.interaction(
        new_id, SCRIPT, names=("Ann", "Ben"), tools=offered, human_settings=people, maximum_rounds=4,
        is_voting_allowed=True, is_direct_questioning_allowed=True, is_solution_proposal_allowed=True,
    )  # fmt: skip


@asynccontextmanager
async def a_person(database: Database, caller: Caller, new_id: NewId) -> AsyncIterator[None]:
    """Answers whatever any run of the tenant asks, each a second time too, as an impatient hand does."""
    task = asyncio.create_task(_answer_on(database, caller, new_id))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _answer_on(database: Database, caller: Caller, new_id: NewId) -> None:
    while True:
        rows = await panels.fetch(
            database, "select * from pending where outcome is null and tenant_id = $1", caller.tenant_id
        )
        for row in rows:
            await _answer(database, caller, new_id, row)
            with suppress(Conflict):
                await _answer(database, caller, new_id, row)
        await asyncio.sleep(0.05)


async def _answer(database: Database, caller: Caller, new_id: NewId, row: dict[str, Any]) -> None:
    run_id, subject = row["run_id"], row["pending_id"]
    match row["kind"]:
        case "Approval":
            await answers.decide(
                database, caller, run_id=run_id, call_id=subject, approves=True, arguments_hash=row["binding_hash"].hex(), reason=None,
                tell=_nobody,
            )  # fmt: skip
        case "Vote":
            await answers.vote(
                database,
                caller,
                run_id=run_id,
                ballot_id=subject,
                agrees=True,
                reason=None,
                new_id=new_id,
                tell=_nobody,
            )
        case "Question":
            await answers.answer(
                database, caller, run_id=run_id, question_id=subject, text="The red one.", new_id=new_id, tell=_nobody
            )
        case _:
            await answers.pass_turn(database, caller, run_id=run_id, turn_id=subject, new_id=new_id, tell=_nobody)


def _nobody(_: dict[str, Any]) -> None:
    """Workers poll."""


async def start(database: Database, caller: Caller, new_id: NewId) -> Started:
    return await panels.start(database, new_id, panel(new_id), tenant_id=caller.tenant_id)
