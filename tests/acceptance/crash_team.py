"""A team whose worker is made to die: a manager sends out work three times at once; one agent reads and notes, one is chosen by a
router's model, one signs, which is gated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import panels
from panels import Started
from processes import SHOP

from folkmoot.bootstrap.installation import find_functions
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.routers import CandidateKind, PinnedCandidate, PinnedRouter
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database

ROUTER, CODER, WRITER = UUID(int=901), UUID(int=902), UUID(int=903)


def _sent(agent: str, message: str) -> dict[str, Any]:
    return {"name": "dispatch", "arguments": {"agent": agent, "message": message, "mode": "OneTime"}}


SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"purpose": "route"}, "reply": {"calls": [{"name": "choose", "arguments": {"candidate": "coder", "reason": "A bug."}}]}},
        {"when": {"participant": "Lead", "call": 1}, "reply": {"text": "To work.", "calls": [
            _sent("Ann", "Look and note."), _sent("Expert", "Advise."), _sent("Ben", "Sign.")]}},
        {"when": {"participant": "Lead"}, "reply": {"calls": [{"name": "finish", "arguments": {"answer": "keep"}}]}},
        {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": [
            {"name": "look", "arguments": {"text": "prices"}}, {"name": "note", "arguments": {"text": "cheap"}}]}},
        {"when": {"participant": "Ben", "call": 1}, "reply": {"calls": [{"name": "sign", "arguments": {"text": "the deed"}}]}},
        {"reply": {"text": "It is done."}},
    ]
}  # fmt: skip
SAID = sorted(
    [
        "Ann: agentMessage It is done.", 'Ann: toolCall look {"text": "prices"}', 'Ann: toolCall note {"text": "cheap"}',
        "Ben: agentMessage It is done.", 'Ben: toolCall sign {"text": "the deed"}', "Expert: agentMessage It is done.",
        "Lead: agentMessage To work.", "Lead: solutionProposal keep",
        'Lead: toolCall dispatch {"mode": "OneTime", "agent": "Ann", "message": "Look and note."}',
        'Lead: toolCall dispatch {"mode": "OneTime", "agent": "Ben", "message": "Sign."}',
        'Lead: toolCall dispatch {"mode": "OneTime", "agent": "Expert", "message": "Advise."}',
        *["Orchestrator: toolResult It is done."] * 3, "Orchestrator: toolResult noted cheap", "Orchestrator: toolResult seen prices",
        "Orchestrator: toolResult signed the deed",
    ]
)  # fmt: skip


def team(new_id: NewId) -> ResolvedInteraction:
    tools = find_functions((SHOP,))
    offered = {name: tuple(tools.offered(tool) for tool in tools.names) for name in ("Ann", "Ben")}
    made = panels.interaction(
        new_id, SCRIPT, names=("Lead", "Ann", "Expert", "Ben"), tools=offered, manager="Lead", maximum_rounds=None
    )
    by_name = {p.name: p for p in made.participants}
    agents = [
        replace(by_name["Expert"], agent_id=id_, agent_name=name)
        for id_, name in ((CODER, "coder"), (WRITER, "writer"))
    ]
    candidates = tuple(PinnedCandidate(a.agent_name, CandidateKind.AGENT, a.agent_id, 1) for a in agents)
    model = ModelChoice("scripted", "chooser", script=SCRIPT)
    router = PinnedRouter(ROUTER, "desk", 1, candidates, "writer", model=model)
    by_name["Expert"] = replace(agents[1], routers=(router,), candidates=tuple(agents))
    return replace(made, participants=tuple(by_name.values()))


async def start(database: Database, caller: Caller, new_id: NewId) -> Started:
    return await panels.start(database, new_id, team(new_id), tenant_id=caller.tenant_id)
