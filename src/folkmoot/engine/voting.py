"""Ballots: who is still to vote, and what the votes say. More than half of those entitled decides, or all; a tie fails.

People have one vote together, are asked first, and do not abstain: their time runs out instead.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.definitions import Rule
from folkmoot.domain.items import ORCHESTRATOR, Item, Outcome
from folkmoot.domain.model_calls import Purpose
from folkmoot.domain.pending import Pending, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine import instructions
from folkmoot.engine.open_parts import Ballot
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Wait
from folkmoot.kernel.ids import NewId

TRIES = 2


def missing(seating: Seating, ballot: Ballot) -> tuple[str, ...]:
    """The participants who have neither voted nor abstained."""
    done = {name for name, _ in ballot.votes} | set(ballot.abstained)
    return tuple(name for name in seating.voters(ballot.proposer) if name not in done)


def people_missing(seating: Seating, ballot: Ballot) -> bool:
    """Whether the vote of people is still to come."""
    return seating.do_people_vote(is_solution=ballot.is_solution) and not ballot.have_people_voted


def wait_for_people(ballot: Ballot) -> Wait:
    card = {
        "proposer": ballot.proposer,
        "text": ballot.text,
        "isSolution": ballot.is_solution,
        "turnId": str(ballot.turn_id),
    }
    pending = Pending(ballot.ballot_id, PendingKind.VOTE, card)
    return Wait(f"ballot:{ballot.ballot_id}:people", RunStatus.PENDING_HUMAN, pending)


def ballots(seating: Seating, protocol: Protocol, ballot: Ballot) -> list[AskModel]:
    """A step for each voter that is missing; they go side by side."""
    return [ballot_step(seating, protocol, ballot, voter) for voter in missing(seating, ballot)]


def ballot_step(seating: Seating, protocol: Protocol, ballot: Ballot, voter: str) -> AskModel:
    try_number = ballot.no_votes.count(voter) + 1
    return AskModel(
        key=f"ballot:{ballot.ballot_id}:{voter}:{try_number}",
        participant=voter,
        purpose=Purpose.BALLOT,
        turn_id=ballot.turn_id,
        offered=seating.ballot_tools,
        required=True,
        instruction=instructions.ballot(
            ballot.proposer, ballot.text, is_solution=ballot.is_solution, try_number=try_number
        ),
        turn=max(1, protocol.turns.get(voter, 0)),
        call=protocol.calls.get(voter, 0) + 1,
        subject=ballot.ballot_id,
        try_number=try_number,
        agent=protocol.agents.get(voter),
    )


def tally(seating: Seating, ballot: Ballot) -> items.Tally:
    """The result of a ballot that nobody is missing from. The proposer counts as agreeing; an abstention is not-for."""
    in_favour = (ballot.proposer, *(name for name, agrees in ballot.votes if agrees))
    against = tuple(name for name, agrees in ballot.votes if not agrees)
    definition = seating.definition
    rule = definition.solution_rule if ballot.is_solution else definition.vote_rule
    entitled = len(seating.main_names) + seating.do_people_vote(is_solution=ballot.is_solution)
    carried = len(in_favour) == entitled if rule is Rule.UNANIMOUS else 2 * len(in_favour) > entitled
    outcome = (Outcome.ACCEPTED if ballot.is_solution else Outcome.CARRIED) if carried else Outcome.REJECTED
    return items.Tally(ballot.ballot_id, in_favour, against, ballot.abstained, outcome)


def closing(seating: Seating, ballot: Ballot, new_id: NewId) -> tuple[Item, End | None]:
    """The item that closes a ballot, and the run's end where it accepts a solution."""
    result = tally(seating, ballot)
    words = instructions.tally(result, is_solution=ballot.is_solution)
    item = Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(words), result, ballot.turn_id)
    accepted = result.outcome is Outcome.ACCEPTED
    return item, End(RunStatus.COMPLETED, output=ballot.text) if accepted else None


def vote_items(
    seating: Seating,
    step: AskModel,
    *,
    vote: items.Agree | items.Disagree | None,
    text: str,
    raw: str,
    new_id: NewId,
    model_call_id: UUID,
) -> list[Item]:
    """What a reply to a ballot adds: the vote, and first what was said beside it, sealed likewise; or, where it held none,
    that it did not, and after the last try an abstention. `text`: the reply's words; `raw`: all of it, as it came."""
    assert step.subject is not None
    if vote is not None:
        detail = items.Balloted(step.subject, step.try_number)
        bodies = (items.AgentMessage(text), vote) if text.strip() else (vote,)
        author = seating.authors[step.seat]
        return [Item(new_id(), author, body, detail, step.turn_id, model_call_id) for body in bodies]
    if step.try_number < TRIES:
        message = items.OrchestratorMessage(instructions.no_vote(step.participant))
        no_vote = items.NoVote(step.subject, step.participant, step.try_number, raw)
        return [Item(new_id(), ORCHESTRATOR, message, no_vote, step.turn_id, model_call_id)]
    message = items.OrchestratorMessage(instructions.abstained(step.participant))
    abstained = items.Abstained(step.subject, step.participant, raw)
    return [Item(new_id(), ORCHESTRATOR, message, abstained, step.turn_id, model_call_id)]
