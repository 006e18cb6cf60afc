"""What is decided from a state, as far as no I/O is needed, in the form in which it is committed and then carried out.

Deliberately absent: committing and performing (`drive`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from folkmoot.domain.items import Item
from folkmoot.domain.runs import Facts
from folkmoot.engine import decide
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import End, Record, Step, Wait
from folkmoot.kernel.ids import NewId
from folkmoot.store.appends import ModelCallBegun, ModelCallEnded


@dataclass(slots=True)
class Plan:
    """What was decided from a state: items and perhaps the end or a wait (soft), then the steps to perform.

    `protocol`: the state after them. `cuts`: whatever is under way is cut before they begin.
    """

    items: list[Item]
    end: End | None
    steps: tuple[Step, ...]
    protocol: Protocol
    wait: Wait | None = None
    wake_at: float | None = None
    begun: list[ModelCallBegun] = field(default_factory=list)
    cuts: bool = False


@dataclass(slots=True)
class Firm:
    """An outcome to commit whatever came between."""

    items: list[Item] = field(default_factory=list)
    model_calls_ended: list[ModelCallEnded] = field(default_factory=list)
    model_calls_voided: list[UUID] = field(default_factory=list)


OnItem = Callable[[Item], None]


def planned(seating: Seating, ahead: Protocol, facts: Facts, new_id: NewId, *, on_item: OnItem) -> Plan:
    """Follows what is recorded without I/O to the steps that need some, to a wait, or to the end. `ahead` is folded on.

    `on_item` is told of each item that is decided on the way, before it is written.
    """
    plan = Plan([], None, (), ahead)
    while True:
        steps = decide.next_steps(seating, ahead, facts, new_id)
        first = steps[0] if steps else None
        if isinstance(first, Wait):
            plan.wait = first
            return plan
        if not isinstance(first, Record):
            plan.steps = steps
            return plan
        plan.items += first.items
        for item in first.items:
            ahead.advance(seating, item)
            on_item(item)
        if first.cuts:
            plan.cuts, facts = True, facts.cut()
        if first.end is not None:
            plan.end = first.end
            return plan
