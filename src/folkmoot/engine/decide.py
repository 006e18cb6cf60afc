"""What happens next. Where two rules hold at once, the first of this order decides (B30):

1. a stop; 2. a person's time that ran out; 3. an open ballot that is complete (an acceptance ends the run); 4. the time limit;
5. the last turn before it, which is over; 6. going round in circles; 7. a model that cannot be asked; 8. rounds in which all
passed; 9. the bound on rounds. The last turn is given before 6 where something must be cut for it, else after 7: whoever cannot
be asked gets none. It is told in place of the warning where both are due.
"""

from __future__ import annotations

from dataclasses import replace

from folkmoot.domain import items
from folkmoot.domain.contexts import ContextMode
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, EndReason, Item
from folkmoot.domain.model_calls import FailureClass, ModelCallFact, Purpose
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import compaction, instructions, looped, managed, round_robin, time_limits, turns, voting
from folkmoot.engine.attempts import failures_of, is_final
from folkmoot.engine.calls import closing_results, open_steps, unknown_result
from folkmoot.engine.context import prompt_of
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.repetition import Circle
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, Step
from folkmoot.kernel.ids import NewId

_WHY = {EndReason.STOPPED: "the run was stopped", EndReason.PERSON_TIMEOUT: "nobody decided in time"}


def next_steps(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """The steps that can go on now, each with its key; none if the run has ended."""
    if protocol.ended:
        return ()
    if facts.stopped_by is not None:
        words = f"The run was stopped by {facts.stopped_by}."
        return (ending(protocol, EndReason.STOPPED, words, new_id=new_id, facts=facts),)
    if not protocol.is_opened:
        return (Record(round_robin.opening(seating, new_id)),)
    if facts.ran_out is not None:
        return (_ran_out(seating, protocol, facts, new_id),)
    ballot = protocol.ballot
    if ballot is not None and not voting.missing(seating, ballot) and not voting.people_missing(seating, ballot):
        item, end = voting.closing(seating, ballot, new_id)
        return (Record((item,), end),)
    if facts.work_deadline is not None and facts.now >= facts.work_deadline:
        limit = seating.definition.duration_auto_termination
        words = f"The time limit of {limit} was reached before the conversation ended."
        return (ending(protocol, EndReason.TIME, words, new_id=new_id, facts=facts),)
    if time_limits.is_last_turn_over(protocol):
        words = instructions.no_answer_in_time(seating.definition.duration_auto_termination)
        return (ending(protocol, EndReason.TIME, words, new_id=new_id, facts=facts),)
    cut = time_limits.cut(seating, protocol, facts, new_id)
    if cut is not None:
        return (cut,)
    unknown = _unknown(protocol, facts, new_id)
    if unknown is not None:
        return (unknown,)
    circle = protocol.repetition.circle
    if circle is not None:
        if protocol.repetition.is_stuck:
            words = f"The run is stuck: {circle.reason}, after a warning."
            return (ending(protocol, EndReason.STUCK, words, new_id=new_id, facts=facts),)
        if protocol.repetition.to_warn:
            return (_warning(protocol, circle, new_id),)
    if ballot is not None:
        if voting.people_missing(seating, ballot):
            return (voting.wait_for_people(ballot),)
        return _asking(seating, protocol, voting.ballots(seating, protocol, ballot), facts, new_id)
    if seating.loop is not None:
        return _in_loop(seating, protocol, facts, new_id)
    if seating.manager is None:
        return _ready(seating, protocol, round_robin.next_in_turn(seating, protocol, facts, new_id), facts, new_id)
    if protocol.gave_up is not None:
        words = f"{protocol.gave_up} No answer was given."
        return (ending(protocol, EndReason.FAILURE, words, new_id=new_id, facts=facts),)
    return _ready(seating, protocol, managed.next_in_turn(seating, protocol, facts, new_id), facts, new_id)


def _in_loop(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """The steps of an agent run's turn; where none is open, the next phase or the end."""
    turn = protocol.turn
    if turn is None:
        return (looped.between_turns(seating, protocol, new_id),)
    if turn.open_calls:
        over = looped.over_budget(seating, protocol, turn, facts)
        if over is not None:
            return (ending(protocol, EndReason.FAILURE, over.words, new_id=new_id, facts=facts),)
        return looped.with_budget(seating, protocol, open_steps(seating, turn, facts, new_id))
    if turn.kept is not None:
        return (turns.next_without_calls(seating, protocol, turn, facts, new_id),)
    return _ready(seating, protocol, (looped.ask(seating, protocol, turn),), facts, new_id)


def _ready(
    seating: Seating, protocol: Protocol, steps: tuple[Step, ...], facts: Facts, new_id: NewId
) -> tuple[Step, ...]:
    """The steps with models asked as they can be; or what comes before one of them."""
    asking = [step for step in steps if isinstance(step, AskModel)]
    if not asking:
        return steps
    if len(asking) == len(steps):
        return _asking(seating, protocol, asking, facts, new_id)
    asked = _asking(seating, protocol, asking, facts, new_id)
    if isinstance(asked[0], Record):
        return asked
    return (*asked, *(step for step in steps if not isinstance(step, AskModel)))


def _ran_out(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> Record:
    """The run waited for a person, and nobody came in time."""
    waited = "for an approval" if facts.ran_out is RunStatus.PENDING_APPROVAL else "for a person"
    limit = seating.definition.duration_human_timeout
    words = f"The run waited {waited}, and nobody answered within {limit}."
    return ending(protocol, EndReason.PERSON_TIMEOUT, words, new_id=new_id, status=RunStatus.TIMED_OUT, facts=facts)


def _unknown(protocol: Protocol, facts: Facts, new_id: NewId) -> Record | None:
    """A call that had begun when its worker was lost, and may not be repeated, gets its result now: outcome unknown."""
    if not facts.calls:
        return None
    lost = [
        (open_call, turn)
        for turn in protocol.open_turns
        for open_call in turn.open_calls
        if (fact := facts.calls.get(open_call.call.call_id)) is not None and fact.lost
    ]
    return Record(tuple(unknown_result(open_call, turn, new_id) for open_call, turn in lost)) if lost else None


def _asking(
    seating: Seating, protocol: Protocol, steps: list[AskModel], facts: Facts, new_id: NewId
) -> tuple[Step, ...]:
    """The steps that can be asked, or what is to be said of the time before one of them begins."""
    ready = _askable(seating, protocol, steps, facts, new_id)
    asked = [step for step in ready if isinstance(step, AskModel)]
    told = time_limits.before_calls(seating, protocol, asked, facts=facts, new_id=new_id)
    return ready if told is None else (told,)


def _askable(
    seating: Seating, protocol: Protocol, steps: list[AskModel], facts: Facts, new_id: NewId
) -> tuple[Step, ...]:
    """The steps with their attempt and when it may begin, or with what must be summarised before; or the run's end where one cannot
    be asked any more."""
    if not facts.model_calls and facts.prompts is None:
        return tuple(steps)
    ready: list[Step] = []
    for step in steps:
        if step.key in facts.under_way:  # what has come since is measured before the next call
            ready.append(step)
            continue
        before = compaction.step_before(seating, protocol, facts, step)
        if before is not None:
            ready.append(before)
            continue
        failures = failures_of(facts, step.key)
        if failures:
            is_measured = facts.prompts is not None and step.purpose is not Purpose.ROUTE
            prompt = prompt_of(seating, facts.prompts, step) if facts.prompts is not None and is_measured else None
            if is_final(failures, prompt):
                words = _cannot_be_asked(seating, step.participant, failures[-1])
                return (ending(protocol, EndReason.FAILURE, words, new_id=new_id, facts=facts),)
            step = _again(step, failures)
        ready.append(step)
    return tuple(ready)


def _cannot_be_asked(seating: Seating, participant: str, last: ModelCallFact) -> str:
    words = f"{participant}'s model could not be asked ({last.failure}): {last.message}"
    if last.failure is not FailureClass.CONTEXT_TOO_LONG:
        return words
    if seating.definition.context.mode is ContextMode.COMPACT:
        return f"{words} Nothing more of it can be summarised: take a model with a larger window, or shorter prompts."
    return f"{words} Set contextSettings.mode to 'Compact', so that what is old is summarised, or take a model with a larger window."


def _again(step: AskModel, failures: list[ModelCallFact]) -> AskModel:
    return replace(step, attempt=len(failures) + 1, not_before=failures[-1].not_before)


def _warning(protocol: Protocol, circle: Circle, new_id: NewId) -> Record:
    message = items.InjectedSystemMessage(instructions.STUCK_WARNING.format(reason=circle.reason))
    turn_ids = {turn.view: turn.turn_id for turn in protocol.open_turns}
    main = protocol.turn.turn_id if protocol.turn is not None else None
    return Record(
        tuple(
            Item(
                new_id(), ORCHESTRATOR, message, items.StuckWarning(name), turn_ids.get(view, main), None,
                MAIN_THREAD if view == name else view,
            )
            for view, name in protocol.repetition.to_warn
        )
    )  # fmt: skip


def ending(
    protocol: Protocol,
    reason: EndReason,
    words: str,
    *,
    new_id: NewId,
    status: RunStatus | None = None,
    facts: Facts | None = None,
) -> Record:
    """Closes what is open, says why, and ends the run. `facts`: tell which open calls may have happened."""
    final = status or (RunStatus.STOPPED if reason is EndReason.STOPPED else RunStatus.FAILED)
    why = _WHY.get(reason, "the run has ended")
    closed = closing_results(protocol, why, calls=facts.calls if facts is not None else {}, new_id=new_id)
    message = Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(words), items.Ended(reason))
    failure = words if final in (RunStatus.FAILED, RunStatus.TIMED_OUT) else None
    return Record((*closed, message), End(final, failure=failure))
