"""Runs that may start others, with real definitions below them, for tests of the engine's, the store's and the worker's part.

The run on top is put into the database as a start would; what it starts is resolved from published definitions. Deliberately absent:
how a definition comes to its `PinnedSwarm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import panels
from crews import Listening
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    DefinitionKind,
    InteractionVersion,
    Reference,
    ResolvedInteraction,
)
from folkmoot.domain.model_calls import ModelFailure, ModelReply, ModelRequest, OnText
from folkmoot.domain.swarms import PinnedSwarm, StartableInteraction, SwarmLimits
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions
from folkmoot.services.apply import Document
from folkmoot.services.closure import Workbench
from folkmoot.store.database import Database

NAMESPACE = "default"
CHILD = InteractionVersion(agents=(AgentBinding(Reference("kid"), "Kid"),), prompt="Work.", maximum_rounds=1)
TALK = {"rules": [{"reply": {"text": "Done."}}]}
# where a worker dies, and the how manieth time it is there, while a run starts two others (calls 1 and 2), awaits them (call 3), and is woken
MATRIX = (
    ("before_sub_run", 1),
    ("after_sub_run", 1),
    ("after_call", 1),
    ("after_pause", 1),
    ("after_claim", 4),
)


def bench(script: dict[str, Any] | None = None) -> Workbench:
    """A machine on which every script is this one."""
    return Workbench(lambda _: None, lambda _: script or TALK)


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def start_call(name: str = "child", **more: Any) -> dict[str, Any]:
    return call("start_interaction", name=name, **more)


def script(*replies: list[dict[str, Any]] | str, participant: str = "Ann") -> dict[str, Any]:
    """A participant's model calls in order, each a text or a list of calls."""
    rules = [
        {
            "when": {"participant": participant, "call": number},
            "reply": {"text": reply} if isinstance(reply, str) else {"calls": reply},
        }
        for number, reply in enumerate(replies, 1)
    ]
    return {"rules": [*rules, *TALK["rules"]]}


async def publish(
    database: Database, caller: Caller, new_id: NewId, *, name: str = "child", version: InteractionVersion = CHILD,
    functions: tuple[str, ...] = (), path: str = "/srv/kid.yaml",
) -> StartableInteraction:  # fmt: skip
    """Publish an interaction of one agent with these functions and a scripted model; as a swarm has it."""
    documents = [
        Document(NAMESPACE, name, version),
        Document(NAMESPACE, "kid", AgentVersion(model=Reference("small"), function_tools=functions)),
        Document(NAMESPACE, "small", AiModelVersion(provider="scripted", model_name="rules", path=path)),
    ]
    await apply.apply(database, caller, documents, new_id=new_id)
    reference = Reference(name, NAMESPACE)
    stored = await definitions.get(database, caller, kind=DefinitionKind.INTERACTION, reference=reference)
    definition = stored.definition
    return StartableInteraction(
        name, NAMESPACE, definition.definition_id, stored.number, "A child.", '{"type":"object"}'
    )


def parent(
    new_id: NewId,
    startable: Sequence[StartableInteraction],
    rules: dict[str, Any],
    *,
    limits: SwarmLimits = SwarmLimits(),  # noqa: B008
    participants: tuple[str, ...] = ("Ann",),
    names: tuple[str, ...] = ("Ann",),
    **settings: Any,
) -> ResolvedInteraction:
    """The closure of a run on top whose participants may start these interactions."""
    swarm = PinnedSwarm(tuple(startable), participants, limits)
    return panels.interaction(new_id, rules, names=names, swarm=swarm, **settings)


async def start(database: Database, caller: Caller, new_id: NewId, resolved: ResolvedInteraction) -> Started:
    return await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id, created_by=caller.user_id)


async def children(database: Database, started: Started) -> list[dict[str, Any]]:
    """The rows of a run's sub-runs."""
    return await panels.fetch(
        database, "select * from process where tenant_id = $1 and parent_id = $2 order by created_at, run_id", started.tenant_id, started.run_id
    )  # fmt: skip


async def results(database: Database, started: Started) -> list[tuple[str, bool]]:
    """The results of the run's calls, in order, and whether each is an error."""
    return [
        (stored.item.body.result, stored.item.body.is_error)
        for stored in await panels.items_of(database, started)
        if isinstance(stored.item.body, items.ToolResult)
    ]


def below(started: Started, row: dict[str, Any]) -> Started:
    return replace(started, run_id=UUID(str(row["run_id"])))


class Filling(Listening):
    """The scripted model with `$1` in a call's arguments for the first sub-run there is, `$2` for the second."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        outcome = await super().ask(request, on_text)
        if not isinstance(outcome, ModelReply):
            return outcome
        rows = await panels.fetch(
            self._database, "select run_id from process where parent_id is not null order by created_at, run_id"
        )
        ids = {f'"${number}"': f'"{row["run_id"]}"' for number, row in enumerate(rows, 1)}
        return replace(
            outcome, calls=tuple(replace(c, arguments_json=_filled(c.arguments_json, ids)) for c in outcome.calls)
        )


def _filled(text: str, ids: dict[str, str]) -> str:
    for name, value in ids.items():
        text = text.replace(name, value)
    return text
