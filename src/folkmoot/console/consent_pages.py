"""Consent to a call: what it would do, and two buttons. Every answer ends in a page that says what became of it (B16).

Who is signed in decides by their session, bound to the card that they were shown; who is not, by the request's own code, and is shown nothing of
the run. A GET decides nothing (B14). Deliberately absent: who may decide and what counts, which are the services'.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response

from folkmoot.console.pages import page
from folkmoot.console.visits import Visit
from folkmoot.domain.agent_runs import ConsentStatus
from folkmoot.domain.channels import OutcomeKind
from folkmoot.domain.rights import Right
from folkmoot.kernel.errors import (
    AlreadyDecided,
    BadInput,
    Conflict,
    NotFound,
    NotPermitted,
    StaleApproval,
)
from folkmoot.services import agent_run_reading, channel_answers, chat_pages, consents
from folkmoot.services.chat_pages import Asked

_TITLE = "Consent to a call"
_NOT_YOURS = (
    "This was not asked of you. It is for the owner of the agent to decide, or for an owner or admin of the tenant."
)
_CHOOSE = "Choose one of the two buttons; nothing was decided."
_STATUSES = {
    OutcomeKind.DONE: (200, "Done"),
    OutcomeKind.ALREADY_DECIDED: (409, "Already decided"),
    OutcomeKind.TOO_LATE: (409, "Too late"),
    OutcomeKind.NOT_YOURS: (403, "Nothing was decided"),
    OutcomeKind.NOT_FOUND: (404, "Not found"),
    OutcomeKind.NOT_UNDERSTOOD: (422, "Nothing was decided"),
    OutcomeKind.IGNORED: (422, "Nothing was decided"),
}


async def show(visit: Visit) -> Response:
    """The card to whoever may decide; the same page for any token to who is not signed in."""
    token = visit.request.path_params["token"]
    if visit.caller is None:
        return page(visit, "code.html", title=_TITLE, token=token, fault=None)
    try:
        asked = await chat_pages.asked(visit.doors.of(visit.caller), visit.caller, token=token)
    except NotFound as error:
        return page(visit, "code.html", title="Not found", status=404, token=token, fault=str(error))
    return await _card(visit, asked)


async def _card(
    visit: Visit, asked: Asked, *, status: int = 200, fault: str | None = None, reason: str = ""
) -> Response:
    visit.who.require(Right.APPROVE)
    if not asked.may_answer:
        return page(visit, "told.html", title="Not yours to decide", status=403, words=_NOT_YOURS)
    token = visit.request.path_params["token"]
    to_do = await agent_run_reading.goal(visit.doors.of(visit.who), visit.who, id_=asked.run.id)
    return page(
        visit, "consent.html", title=_TITLE, status=status, token=token, run=asked.run, item=asked.item,
        for_agent=asked.for_agent, fault=fault, reason=reason, to_do=to_do,
    )  # fmt: skip


async def decide(visit: Visit) -> Response:
    """What became of the answer of who is signed in."""
    token, form, who = visit.request.path_params["token"], visit.form, visit.who
    database = visit.doors.of(who)
    asked = await chat_pages.asked(database, who, token=token)
    decision, reason = form.get("decision"), form.get("reason", "").strip()
    if decision not in ("approve", "decline"):
        return await _card(visit, asked, status=422, fault=_CHOOSE, reason=reason)
    try:
        item = await consents.answer(
            database, who, id_=asked.run.id, chat_item_id=_item_id(form.get("chatItemId", "")), approves=decision == "approve",
            arguments_hash=form.get("argumentsHash", ""), reason=reason or None, tell=visit.doors.tell,
        )  # fmt: skip
    except NotPermitted:
        return page(visit, "told.html", title="Not yours to decide", status=403, words=_NOT_YOURS)
    except StaleApproval:
        words = "What would run is not what you were shown, so nothing was decided. This is what it is now."
        return await _card(visit, await chat_pages.asked(database, who, token=token), status=409, fault=words)
    except BadInput as error:
        return await _card(visit, asked, status=422, fault=f"Nothing was decided. {error}", reason=reason)
    except AlreadyDecided as error:
        return _outcome(visit, OutcomeKind.ALREADY_DECIDED, str(error), run_id=asked.run.id)
    except Conflict as error:
        return _outcome(visit, OutcomeKind.TOO_LATE, str(error), run_id=asked.run.id)
    consent = item.consent
    assert consent is not None
    verb = "approved" if consent.status is ConsentStatus.APPROVED else "declined"
    if consent.decided_by_name != who.user_name:  # the same answer, and somebody else's came first
        words = f"This was {verb} by {consent.decided_by_name}; your answer changes nothing."
        return _outcome(visit, OutcomeKind.ALREADY_DECIDED, words, run_id=asked.run.id)
    follows = (
        "the call is made once, as it was shown"
        if verb == "approved"
        else "the call is not made, and the agent is told"
    )
    return _outcome(visit, OutcomeKind.DONE, f"You {verb} it: {follows}.", run_id=asked.run.id)


async def decide_by_code(visit: Visit) -> Response:
    """What became of the answer of who has the request's own code, whoever they are."""
    form, token = visit.form, visit.request.path_params["token"]
    decision = form.get("decision")
    if decision not in ("approve", "decline"):
        return page(visit, "code.html", title=_TITLE, status=422, token=token, fault=_CHOOSE)
    approves, reason = decision == "approve", form.get("reason", "").strip()
    if approves and reason:
        words = "An approval has no reason, so nothing was decided. Leave it out, or decline."
        return page(visit, "code.html", title=_TITLE, status=422, token=token, fault=words)
    told = await channel_answers.answer_by_code(
        visit.doors.database,
        token=token,
        code=form.get("code", ""),
        approves=approves,
        reason=reason or None,
        tell=visit.doors.tell,
    )
    if told.kind is OutcomeKind.NOT_YOURS:
        return page(visit, "code.html", title=_TITLE, status=403, token=token, fault=told.words)
    return _outcome(visit, told.kind, told.words)


def _outcome(visit: Visit, kind: OutcomeKind, words: str, **values: Any) -> Response:
    status, title = _STATUSES[kind]
    return page(visit, "told.html", title=title, status=status, words=words, **values)


def _item_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput("The form does not say which request it answers. Open the page again.") from None
