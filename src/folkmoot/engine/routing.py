"""Who takes a turn of a participant with a router: rules first, then the router's model, then the fallback; down a chain of routers.

What a model decides, or could not be brought to decide, is an item of its own, so that it is asked once; all decisions stand on the
floor that they lead to. Deliberately absent: what a rule or a candidate is (`domain.routers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, Item
from folkmoot.domain.model_calls import Entry, ModelCallFact, ModelReply, OtherText, Purpose, SystemText
from folkmoot.domain.routers import PinnedCandidate, PinnedRouter, RouterRule
from folkmoot.domain.runs import Facts
from folkmoot.domain.schemas import parse_arguments
from folkmoot.engine import compaction, instructions
from folkmoot.engine.attempts import failures_of, is_final
from folkmoot.engine.estimates import entry_tokens
from folkmoot.engine.open_parts import Choosing
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record
from folkmoot.engine.time_marks import marks
from folkmoot.engine.tools_offered import CHOOSE, choosing
from folkmoot.engine.view import View
from folkmoot.kernel.ids import NewId

_KEY = "route:"
TRIES = 3  # of a router's model, before the fallback is taken
_SHOWN_SHARE = 0.5  # of the model's window


def give_floor(
    seating: Seating, protocol: Protocol, facts: Facts, floor: items.Floor, *, words: str, new_id: NewId,
    thread_id: str = MAIN_THREAD, message: str | None = None,
) -> Record | AskModel:  # fmt: skip
    """Opens a turn; where routers have to choose first, asks the next one's model. `message`: the work that the turn is about."""
    seat = seating.participants.get(floor.participant)
    if seat is not None and seat.routers:
        found = _chosen(seating, protocol, facts, floor, thread_id=thread_id, message=message, new_id=new_id)
        if not isinstance(found, tuple):
            return found
        floor = replace(floor, router=found, agent=found[-1].chosen_id)
    return Record((Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(words), floor, new_id(), None, thread_id),))


def _chosen(
    seating: Seating, protocol: Protocol, facts: Facts, floor: items.Floor, *, thread_id: str, message: str | None, new_id: NewId
) -> tuple[items.Routing, ...] | Record | AskModel:  # fmt: skip
    """The decisions that lead to an agent; the question to the next router's model; or the fallback in its place, to be recorded."""
    name, turn = floor.participant, protocol.turns.get(floor.participant, 0) + 1
    place = str(floor.question or floor.dispatch or f"{name}:{turn}")
    choosing = protocol.choosing_at(thread_id, place)
    chain, undecided = _walked(seating, protocol, name, choosing, thread_id=thread_id)
    if undecided is None:
        return chain
    key = f"{_KEY}{place}:{len(chain) + 1}:{choosing.no_choices}"
    why = _why_not_asked(seating, facts, choosing, failures_of(facts, key))
    if why is None:
        tries = choosing.no_choices
        return _question(undecided, name, key, turn=turn, tries=tries, thread_id=thread_id, message=message)
    fallback = undecided.candidate(undecided.fallback)
    routing = _routing(undecided, fallback, why, is_fallback=True, depth=len(chain) + 1)
    return Record((_decided(undecided, items.Routed(name, routing, place), None, new_id, thread_id),))


def _why_not_asked(seating: Seating, facts: Facts, choosing: Choosing, failures: Sequence[ModelCallFact]) -> str | None:
    """Why a router's model is not asked (any more), as a sentence; null where it is."""
    found = marks(seating.definition, facts.work_deadline)
    if found is not None and facts.now >= found.cut:
        return "The time was almost up when its model was to choose."
    if choosing.no_choices >= TRIES:
        return f"The model chose nobody in {TRIES} tries."
    if failures and is_final(list(failures), None):
        return f"The model could not be asked ({failures[-1].failure})."
    return None


def _walked(
    seating: Seating, protocol: Protocol, name: str, choosing: Choosing, *, thread_id: str
) -> tuple[tuple[items.Routing, ...], PinnedRouter | None]:
    """The decisions up to an agent, or up to the first router whose model has to be asked: that one."""
    router: PinnedRouter | None = seating.participants[name].routers[0]
    decided = {routing.router_id: routing for routing in choosing.chain}
    chain: tuple[items.Routing, ...] = ()
    while router is not None:
        routing = decided.get(router.router_id) or _by_rule(
            seating, protocol, router, name, thread_id=thread_id, depth=len(chain) + 1
        )
        if routing is None:
            return chain, router
        chain = (*chain, routing)
        router = seating.router(name, routing.chosen_id)
    return chain, None


def _decided(
    router: PinnedRouter, routed: items.Routed, model_call_id: UUID | None, new_id: NewId, thread_id: str
) -> Item:
    message = items.OrchestratorMessage(instructions.chosen(router.name, routed.routing.chosen_name or ""))
    return Item(new_id(), ORCHESTRATOR, message, routed, None, model_call_id, thread_id)


def _routing(
    router: PinnedRouter, chosen: PinnedCandidate | None, reason: str | None, *, is_fallback: bool, depth: int
) -> items.Routing:
    id_, version, name = (
        (chosen.definition_id, chosen.version, chosen.name) if chosen is not None else (None, None, None)
    )
    return items.Routing(router.router_id, router.name, router.version, id_, version, name, reason, is_fallback, depth)


def _by_rule(
    seating: Seating, protocol: Protocol, router: PinnedRouter, name: str, *, thread_id: str, depth: int
) -> items.Routing | None:
    """What the first rule that matches decides; where none does and there is no model, the fallback; null: the model has to be asked."""
    inputs = dict(seating.definition.inputs)
    labels = {known: label for (agent, label), known in protocol.threads.items() if agent == name}
    for number, rule in enumerate(router.rules, 1):
        matches = (
            rule.participant in (None, name)
            and (rule.input is None or inputs.get(rule.input) == rule.input_value)
            and rule.thread in (None, thread_id, labels.get(thread_id))
            and rule.turn_number in (None, protocol.turns.get(name, 0) + 1)
            and rule.last_author in (None, protocol.last_author)
        )
        if matches:
            reason = f"Rule {number}{_told(rule)}."
            return _routing(router, router.candidate(rule.candidate), reason, is_fallback=False, depth=depth)
    if router.model is not None:
        return None
    return _routing(router, router.candidate(router.fallback), "No rule matches.", is_fallback=True, depth=depth)


def _told(rule: RouterRule) -> str:
    parts = {
        "participant": rule.participant, f"input {rule.input}": rule.input_value if rule.input is not None else None,
        "thread": rule.thread, "turn": rule.turn_number, "last author": rule.last_author,
    }  # fmt: skip
    told = ", ".join(f"{what} {value}" for what, value in parts.items() if value is not None)
    return f": {told}" if told else ""


def _question(
    router: PinnedRouter, name: str, key: str, *, turn: int, tries: int, thread_id: str, message: str | None
) -> AskModel:  # fmt: skip
    return AskModel(
        key=key,
        participant=name,
        purpose=Purpose.ROUTE,
        turn_id=None,
        offered=choosing([candidate.name for candidate in router.candidates]),
        required=True,
        instruction=instructions.choose(router, name, try_number=tries + 1, message=message),
        turn=turn,
        call=tries + 1,
        subject=router.router_id,
        try_number=tries + 1,
        thread_id=thread_id,
    )


def items_of_choice(
    seating: Seating, protocol: Protocol, step: AskModel, *, reply: ModelReply, raw: str, model_call_id: UUID, new_id: NewId
) -> list[Item]:  # fmt: skip
    """What a router's reply adds: its decision; or, where it chose none, several or an unknown one, that it did not (B32)."""
    router = seating.router(step.participant, step.subject)
    assert router is not None
    place = step.key.removeprefix(_KEY).rsplit(":", 2)[0]
    arguments = [parse_arguments(call.arguments_json) for call in reply.calls if call.name == CHOOSE]
    named = {str(a.get("candidate")): a.get("reason") for a in arguments if isinstance(a, dict)}
    chosen = router.candidate(next(iter(named))) if len(named) == 1 and len(arguments) == len(reply.calls) else None
    if chosen is None:
        message = items.OrchestratorMessage(instructions.no_choice(router.name))
        no_choice = items.NoChoice(step.participant, raw, place)
        return [Item(new_id(), ORCHESTRATOR, message, no_choice, None, model_call_id, step.thread_id)]
    choosing = protocol.choosing_at(step.thread_id, place)
    before, _ = _walked(seating, protocol, step.participant, choosing, thread_id=step.thread_id)
    reason = named[chosen.name] if isinstance(named[chosen.name], str) else None
    routing = _routing(router, chosen, reason, is_fallback=False, depth=len(before) + 1)
    routed = items.Routed(step.participant, routing, place)
    return [_decided(router, routed, model_call_id, new_id, step.thread_id)]


def read_by_router(seating: Seating, view: View | None, step: AskModel) -> list[Entry]:
    """What a router's model is shown: what it is for, and the newest of the conversation, as a record of who said what."""
    router = seating.router(step.participant, step.subject)
    assert router is not None and router.model is not None
    system = SystemText(instructions.router_prompt(router, step.participant))
    room = int(router.model.context_window * _SHOWN_SHARE) - entry_tokens(system)
    shown: list[Entry] = []
    for entry in reversed(view.entries if view is not None else ()):
        if isinstance(entry, SystemText):
            continue
        told = compaction.told(entry, step.participant)
        if entry_tokens(told) > room:
            # of the newest there is always something to be seen
            shown += compaction.fitted([told], room) if not shown else ()
            break
        room -= entry_tokens(told)
        shown.append(told)
    return [system, *reversed(shown or [OtherText(None, instructions.NOTHING_SAID)])]
