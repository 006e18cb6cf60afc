"""How large the prompts of a run are: our guesses, what providers counted of them, and what was trimmed.

Deliberately absent: what is cut (`engine.context`), and the conversation itself (`transcript`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from folkmoot.domain.contexts import UNCORRECTED, ContextMode, Correction, PromptFact
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import Entry, FailureClass, Purpose, Usage
from folkmoot.engine import compaction, estimates, routing
from folkmoot.engine.context import Prompts, prompt_of
from folkmoot.engine.seating import Seating
from folkmoot.engine.shortening import shortened_calls
from folkmoot.engine.step import AskModel
from folkmoot.engine.views import Views
from folkmoot.store.conversations import Prompted

_RATIOS = (0.25, 4.0)  # a count outside of these says more of the provider than of our guess


class PromptSizes:
    """Of one claim. What it knows comes from recorded calls, so that another claim comes to know the same."""

    def __init__(self, seating: Seating, views: Views) -> None:
        self._seating = seating
        self._views = views
        self._corrections: dict[tuple[str, str], Correction] = {}  # by participant and model
        self._guesses: dict[UUID, int] = {}

    @property
    def are_cut(self) -> bool:
        """Whether anything is ever trimmed or summarised in this run."""
        return self._seating.definition.context.mode is not ContextMode.NONE

    @property
    def look_ahead(self) -> bool:
        """Whether prompts are measured with what is only about to be written: where they are cut, and where the view of a call may only
        begin with it, as that of dispatched work does, or be told something else with it, as where routers choose."""
        return (
            self.are_cut
            or self._seating.manager is not None
            or self._seating.loop is not None
            or self._seating.are_seats_shared
        )

    def take(self, prompted: Prompted) -> None:
        """What the calls of former claims tell of a participant's prompts."""
        name = prompted.participant
        if name not in self._seating.participants:
            return
        key = (name, prompted.model)
        self._corrections[key] = Correction(refused_tokens=prompted.refused_tokens, refused_part=prompted.refused_part)
        if prompted.usage is not None and prompted.guessed_tokens is not None:
            self._correct(key, prompted.usage, prompted.guessed_tokens)
        if name in self._views.of:  # else it works in threads, which are trimmed anew
            self._trim(name, name, prompted.trimmed_upto)

    def facts(self, *, unread: Sequence[Item] = ()) -> Prompts:
        """Where each participant's next prompt stands. `unread`: items that are not in the views yet, and are guessed roughly."""
        tokens = sum(estimates.item_tokens(item) for item in unread)
        return Prompts(self._seating, self._views, corrections=self._corrections, unread_tokens=tokens)

    def of(self, step: AskModel, *, unread: Sequence[Item] = ()) -> PromptFact:
        """Where the prompt of a step stands. What a summariser reads is not trimmed any further."""
        if step.cover is None and step.purpose is not Purpose.ROUTE:
            return prompt_of(self._seating, self.facts(unread=unread), step)
        view = self._views.of.get(step.view)
        shown = self.read(step)
        guessed = sum(estimates.entry_tokens(entry) for entry in shown) + estimates.tokens_of(step.instruction or "")
        if view is None or step.purpose is Purpose.ROUTE:
            return PromptFact(guessed, guessed)
        ratio = self._corrections.get(self._key(step), UNCORRECTED).ratio
        return PromptFact(guessed, round(guessed * ratio), view.covered_upto, view.trimmed_upto)

    def read(self, step: AskModel) -> list[Entry]:
        """What a summariser or a router is shown of a view."""
        if step.purpose is Purpose.ROUTE:
            return routing.read_by_router(self._seating, self._views.of.get(step.view), step)
        return compaction.read_by_summariser(self._seating, self._views.of[step.view], step)

    def note_begun(self, call_id: UUID, guessed_tokens: int) -> None:
        self._guesses[call_id] = guessed_tokens

    def note_reply(self, step: AskModel, call_id: UUID, usage: Usage) -> None:
        guessed = self._guesses.pop(call_id, None)
        if guessed is not None and step.purpose not in (Purpose.COMPACTION, Purpose.ROUTE):
            self._correct(self._key(step), usage, guessed)

    def note_failure(self, step: AskModel, call_id: UUID, failure: FailureClass) -> int | None:
        """What the prompt of a failed call was guessed to hold; a refusal as too long says that it is more than fits."""
        guessed = self._guesses.pop(call_id, None)
        if guessed is not None and failure is FailureClass.CONTEXT_TOO_LONG and step.purpose is not Purpose.ROUTE:
            key = (step.participant, self._seating.model_of(step).model_name)
            known = self._corrections.get(key, UNCORRECTED)
            if step.purpose is Purpose.COMPACTION:
                known = replace(known, refused_part=min(guessed, known.refused_part or guessed))
            else:
                known = replace(known, refused_tokens=min(guessed, known.refused_tokens or guessed))
            self._corrections[key] = known
        return guessed

    def _key(self, step: AskModel) -> tuple[str, str]:
        """By what is kept what is known of a step's seat."""
        return step.participant, self._seating.participants[step.seat].model.model_name

    def entries(self, step: AskModel, *, trim_upto: int) -> list[Entry]:
        """The step's view, once old results up to a sequence are trimmed."""
        self._trim(step.view, step.seat, trim_upto)
        return self._views.of[step.view].entries

    def _trim(self, view_key: str, seat: str, upto: int) -> None:
        view = self._views.of[view_key]
        if upto > view.trimmed_upto:
            settings, reads_on = self._seating.definition.context, self._seating.reads_on(seat)
            view.trim(upto, shortened_calls(view, settings, reads_on=reads_on))

    def _correct(self, key: tuple[str, str], usage: Usage, guessed: int) -> None:
        counted = usage.input + usage.cached_input + usage.cache_write
        if not counted or not guessed or usage.estimated:
            return
        least, most = _RATIOS
        known = self._corrections.get(key, UNCORRECTED)
        self._corrections[key] = replace(known, ratio=min(max(counted / guessed, least), most))
