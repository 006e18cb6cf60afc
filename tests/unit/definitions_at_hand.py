"""What tests publish and start: a scripted model, an agent, a panel, a machine to start it on; and a tenant of strangers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from folkmoot.domain.calls import Tool
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    DataType,
    InteractionVersion,
    PromptInput,
    Reference,
)
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply
from folkmoot.services.apply import Change, Document
from folkmoot.services.closure import Workbench
from folkmoot.store.database import Database

NAMESPACE = "examples"
SCRIPT = {"rules": [{"reply": {"text": "Well."}}]}
SEARCH = Tool("search", "Looks things up.", {"type": "object"}, is_read_only=True)

MODEL = AiModelVersion(provider="scripted", model_name="script", path="/srv/script.yaml")
AGENT = AgentVersion(model=Reference("small"), prompts=("You look at %%question%%.",))
PANEL = InteractionVersion(
    agents=(AgentBinding(Reference("optimist"), "Ann"), AgentBinding(Reference("optimist"), "Ben")),
    prompt="Decide: %%question%%",
    is_solution_proposal_allowed=True,
    inputs_prompt=(PromptInput(DataType.STRING, "question", is_required=True), PromptInput(DataType.INTEGER, "count")),
)


def documents(
    *, model: AiModelVersion = MODEL, agent: AgentVersion = AGENT, panel: InteractionVersion = PANEL
) -> list[Document]:
    """The panel's whole set, interaction first, so that the order must be found."""
    return [
        Document(NAMESPACE, "panel", panel),
        Document(NAMESPACE, "optimist", agent),
        Document(NAMESPACE, "small", model),
    ]


async def publish_panel(database: Database, caller: Caller, new_id: NewId, **changes: Any) -> tuple[Change, ...]:
    """Apply the set, with fields of the panel changed."""
    return await apply.apply(database, caller, documents(panel=replace(PANEL, **changes)), new_id=new_id)


def bench(*tools: Tool) -> Workbench:
    """A machine with these functions, on which every script is SCRIPT."""
    return Workbench({tool.name: tool for tool in tools}.get, lambda _: SCRIPT)


async def other_tenant(database: Database, new_id: NewId, *, name: str = "other") -> Caller:
    """A tenant beside the default one, with a user."""
    stranger = Caller(new_id(), new_id(), "Stranger")
    async with database.writer() as writer:
        await writer.connection.execute("insert into tenant values ($1, $2, now())", stranger.tenant_id, name)
        await writer.connection.execute(
            "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) "
            "values ($1, $2, $3, 'owner', $2, now(), now())", stranger.tenant_id, stranger.user_id, stranger.user_name
        )  # fmt: skip
    return stranger


async def shift_clock(database: Database, by: timedelta) -> None:
    """Move the database's clock."""
    async with database.writer() as writer:
        await writer.connection.execute("update clock_shift set shift = shift + $1", by)
