"""Agent runs, the conversations behind them, and starting one in a conversation. Deliberately absent: decisions (`consent_pages`)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from folkmoot.console import shown
from folkmoot.console.pages import page
from folkmoot.console.refusals import told
from folkmoot.console.visits import Visit
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.definitions import Reference
from folkmoot.domain.rights import Right
from folkmoot.kernel.errors import BadInput, FolkmootError, InFlight, KeyReused, NotFound, NotPermitted
from folkmoot.services import agent_run_reading, agent_runs, chat_pages
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.chat_pages import Named, WaitingCursor
from folkmoot.store.idempotency import Scope

_RUNS = 50
_WAITING = 50
_CHAT = 200
_ITEMS = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SENT = "This form was sent a moment ago, and is at work."
_AGAIN = "Send it again in a moment: it starts one run, however often it is sent."
_REUSED = (
    "This form was sent before with other words, and has started a run of them. Sent from here it starts another one."
)
_MOST_DIGITS = 18  # of what the database can hold as a number


async def list_runs(visit: Visit) -> Response:
    """Those that await consent, the longest waiting first, then the newest of the others; each of the two goes on on pages of its own."""
    query = visit.request.query_params
    of_all, after = query.get("whose") == "all", _number(query.get("after"))
    waiting_after = _cursor(query.get("waiting"))
    database, who = visit.doors.of(visit.who), visit.who
    waiting, others = [], []
    if after is None:
        waiting = await chat_pages.waiting(database, who, of_all=of_all, after=waiting_after, limit=_WAITING + 1)
    if waiting_after is None:
        others = await chat_pages.runs(database, who, of_all=of_all, after=after, limit=_RUNS + 1)
    older = others[_RUNS - 1].id if len(others) > _RUNS else None
    later = _cursor_text(waiting[_WAITING - 1]) if len(waiting) > _WAITING else None
    return page(
        visit, "runs.html", title="Agent runs", waiting=waiting[:_WAITING], others=others[:_RUNS], of_all=of_all, older=older, later=later,
        is_of_waiting=waiting_after is not None,
    )  # fmt: skip


async def show_run(visit: Visit) -> Response:
    """The conversation behind it as a chat, how it stands, and its own conversation, folded. The payload is for those who must answer for it."""
    id_ = _number(visit.request.path_params["id"])
    if id_ is None:
        raise NotFound("An agent run has a number, and this is none.")
    database, who = visit.doors.of(visit.who), visit.who
    run = await agent_runs.get(database, who, id_=id_)
    chat = await agent_runs.chat(database, who, id_=id_, before=None, limit=_CHAT)
    items = await agent_runs.items(database, who, id_=id_, after=0, limit=_ITEMS)
    try:
        payload = await agent_runs.payload(database, who, id_=id_)
    except NotPermitted:
        payload = None
    lines = [shown.line(stored) for stored in items]
    to_do = next((told for stored in items if (told := agent_run_reading.goal_in(stored)) is not None), None)
    return page(
        visit, "run.html", title=f"Agent run {run.id}", run=run, chat=chat[::-1], lines=lines, payload=payload, to_do=to_do,
        is_cut=len(chat) == _CHAT, are_cut=len(items) == _ITEMS, **await _start_form(visit, run.conversation_id),
    )  # fmt: skip


async def show_conversation(visit: Visit) -> Response:
    conversation_id = visit.request.path_params["conversation_id"]
    before = _number(visit.request.query_params.get("before"))
    chat = await chat_pages.conversation(
        visit.doors.of(visit.who), visit.who, conversation_id=conversation_id, before=before, limit=_CHAT
    )
    return page(
        visit, "conversation.html", title="Conversation", chat=chat[::-1], is_cut=len(chat) == _CHAT,
        **await _start_form(visit, conversation_id),
    )  # fmt: skip


async def new_conversation(visit: Visit) -> Response:
    """A form whose conversation begins when it is sent."""
    return page(visit, "new.html", title="New conversation", **await _start_form(visit, visit.doors.new_id()))


async def _start_form(visit: Visit, conversation_id: UUID | None) -> dict[str, Any]:
    """What the form to start a run in a conversation is made of. `once`: so that it starts one run however often it is sent."""
    may_start = conversation_id is not None and Right.START in visit.who.rights
    agents = await chat_pages.agents(visit.doors.of(visit.who), visit.who) if may_start else []
    return _form(visit, conversation_id if may_start else None, agents)


def _form(visit: Visit, conversation_id: UUID | None, agents: list[Named]) -> dict[str, Any]:
    return {
        "conversation_id": conversation_id, "may_start": conversation_id is not None, "agents": agents, "once": visit.doors.new_id(),
        "goal": "", "agent": None, "fault": None,
    }  # fmt: skip


async def start_run(visit: Visit) -> Response:
    """The new run's page, or the form again with what is wrong and all that was written in it."""
    conversation_id, form = visit.request.path_params["conversation_id"], visit.form
    goal, doors = form.get("goal", "").replace("\r\n", "\n"), visit.doors
    try:
        run = await agent_runs.start(
            doors.of(visit.who), visit.who, agent=_agent(form.get("agent", "")), request=_wanted(goal, conversation_id),
            bench=doors.bench, new_id=doors.new_id, new_token=doors.new_token, tell=doors.tell, scope=_scope(visit, conversation_id),
        )  # fmt: skip
    except FolkmootError as error:
        return await _form_again(visit, conversation_id, goal, error)
    return RedirectResponse(f"/web/agent-runs/{run.id}", status_code=303)


async def _form_again(visit: Visit, conversation_id: UUID, goal: str, error: FolkmootError) -> Response:
    """What is wrong, and all that was written. Where the run may have been started, the form is the same one, which starts it once however often it
    is sent; where it was not, a new one."""
    status, title, words = told(error)
    is_unknown = status >= 500
    if is_unknown or isinstance(error, InFlight):
        title = "It is not known whether the run was started" if is_unknown else "The run is being started"
        words = f"{words if is_unknown else _SENT} {_AGAIN}"
        values = _form(visit, conversation_id, []) | {"once": visit.form.get("once", "")}
    else:
        title = "The run was not started"
        words = _REUSED if isinstance(error, KeyReused) else words
        values = await _start_form(visit, conversation_id)
    values |= {"goal": goal, "agent": visit.form.get("agent"), "fault": words}
    return page(visit, "new.html", title=title, status=status, **values)


def _agent(text: str) -> Reference:
    try:
        return Reference(definition_id=UUID(text))
    except ValueError:
        raise BadInput("The run was not started. Choose an agent.") from None


def _wanted(goal: str, conversation_id: UUID) -> AgentStart:
    if not goal.strip():
        raise BadInput("The run was not started. Write what the agent is to do.")
    return AgentStart(goal, conversation_id=conversation_id)


def _scope(visit: Visit, conversation_id: UUID) -> Scope:
    once = visit.form.get("once", "")
    try:
        key = str(UUID(once))
    except ValueError:
        raise BadInput("The run was not started. Open the page again and send the form from there.") from None
    words = f"{visit.form.get('agent')}\0{visit.form.get('goal')}"
    hashed = hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()
    return Scope(visit.who.tenant_id, visit.who.user_id, f"web/conversations/{conversation_id}/runs", key, hashed)


def _cursor_text(run: AgentRun) -> str:
    """Where a page of those that wait ends: since when the last one does, in microseconds, and its number."""
    assert run.awaiting_since is not None
    return f"{(run.awaiting_since - _EPOCH) // timedelta(microseconds=1)}-{run.id}"


def _cursor(text: str | None) -> WaitingCursor | None:
    since_text, _, id_text = (text or "").partition("-")
    since, id_ = _number(since_text), _number(id_text)
    if since is None or id_ is None:
        return None
    try:
        return WaitingCursor(_EPOCH + timedelta(microseconds=since), id_)
    except OverflowError:
        return None


def _number(text: str | None) -> int | None:
    """Of a query; whatever is none is as if it was not there."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and text is not None else None
