"""People's answers to what a run asks, or one below it (B10). Each is named by its id, and the first valid one counts; a GET decides
nothing (B14)."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import pending as mapping
from folkmoot.api.problems import responses
from folkmoot.domain.rights import Right
from folkmoot.services import answers, inbox
from folkmoot.wire.pending import (
    AnswerReceipt,
    ApprovalDecision,
    ApprovalDecisionRequest,
    PendingWork,
    QuestionAnswerRequest,
    VoteRequest,
)

router = APIRouter(tags=["people"], route_class=KeyedRoute)
_RUN = "/interactions/processes/by-id/{run_id}"
_ANSWER = responses(400, 401, 404, 409, 413, 415, 422, 503)
Vote = Annotated[VoteRequest, shown_as({"agree": False, "reason": "It costs more than we have."})]
QuestionAnswer = Annotated[QuestionAnswerRequest, shown_as({"answer": "By Friday."})]
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
Decision = Annotated[ApprovalDecisionRequest, shown_as({"decision": "Approve", "argumentsHash": _HASH})]


@router.post(f"{_RUN}/votes/{{ballot_id}}", responses=_ANSWER)
async def cast_vote(
    doors: Doorway, caller: Annotated[Caller, may(Right.TAKE_PART)], run_id: UUID, ballot_id: UUID, body: Vote
) -> AnswerReceipt:
    """Cast people's one vote on a topic or a solution. The identical vote again gives the same receipt, another one a 409."""
    entry = await answers.vote(
        doors.of(caller), caller, run_id=run_id, ballot_id=ballot_id, agrees=body.agree, reason=body.reason, new_id=doors.new_id,
        tell=doors.tell,
    )  # fmt: skip
    return mapping.receipt(entry)


@router.post(f"{_RUN}/questions/{{question_id}}", responses=_ANSWER)
async def answer_question(
    doors: Doorway, caller: Annotated[Caller, may(Right.TAKE_PART)], run_id: UUID, question_id: UUID, body: QuestionAnswer
) -> AnswerReceipt:  # fmt: skip
    """Answer a participant's question. The identical answer again gives the same receipt, another one a 409."""
    entry = await answers.answer(
        doors.of(caller),
        caller,
        run_id=run_id,
        question_id=question_id,
        text=body.answer,
        new_id=doors.new_id,
        tell=doors.tell,
    )
    return mapping.receipt(entry)


@router.post(f"{_RUN}/pass", responses=responses(401, 404, 409, 422, 503))
async def pass_turn(
    doors: Doorway, caller: Annotated[Caller, may(Right.TAKE_PART)], run_id: UUID,
    turn: Annotated[UUID | None, Query(description="The turn's id; the one that waits now if left out.")] = None,
) -> AnswerReceipt:  # fmt: skip
    """Pass the floor on without a word. With the turn's id, sent again it gives the same receipt."""
    entry = await answers.pass_turn(
        doors.of(caller), caller, run_id=run_id, turn_id=turn, new_id=doors.new_id, tell=doors.tell
    )
    return mapping.receipt(entry)


@router.post(f"{_RUN}/approvals/{{approval_id}}", responses=_ANSWER)
async def decide_approval(
    doors: Doorway, caller: Annotated[Caller, may(Right.APPROVE)], run_id: UUID, approval_id: UUID, body: Decision
) -> AnswerReceipt:  # fmt: skip
    """Approve or reject a gated call, named by its id and by the hash of what its card shows. A stale hash is a 409."""
    entry = await answers.decide(
        doors.of(caller), caller, run_id=run_id, call_id=approval_id, approves=body.decision is ApprovalDecision.APPROVE,
        arguments_hash=body.arguments_hash, reason=body.reason, tell=doors.tell,
    )  # fmt: skip
    return mapping.receipt(entry)


@router.get(f"{_RUN}/approvals/{{approval_id}}", responses=responses(401, 404, 422, 503))
async def get_approval(
    doors: Doorway, caller: Reader, run_id: UUID, approval_id: UUID
) -> PendingWork:  # fmt: skip
    """What waits or waited for a person under this id, of any kind, uncut, with its receipt. Reading it decides nothing."""
    return mapping.pending_work(await inbox.get(doors.of(caller), caller, run_id=run_id, pending_id=approval_id))
