"""How large the prompts of a run are: our guesses, what providers counted of them, and what was trimmed.

Deliberately absent: what is cut (`engine.context`), and the conversation itself (`transcript`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from folkmoot.domain.contexts import UNCORRECTED, ContextMode, Correction, PromptFact
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import Entry, FailureClass, ModelCallFact, Purpose, Usage
from folkmoot.engine import estimates
from folkmoot.engine.context import Prompts
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
        self._corrections: dict[str, Correction] = {}
        self._guesses: dict[UUID, int] = {}

    @property
    def are_cut(self) -> bool:
        """Whether anything is ever trimmed or summarised in this run."""
        return self._seating.definition.context.mode is not ContextMode.NONE

    def take(self, prompted: Prompted) -> None:
        """What the calls of former claims tell of a participant's prompts."""
        name = prompted.participant
        if name not in self._views.of:
            return
        if prompted.refused_tokens is not None:
            self._corrections[name] = Correction(refused_tokens=prompted.refused_tokens)
        if prompted.usage is not None and prompted.guessed_tokens is not None:
            self._correct(name, prompted.usage, prompted.guessed_tokens)
        self._trim(name, prompted.trimmed_upto)

    def facts(
        self, model_calls: Mapping[str, tuple[ModelCallFact, ...]], *, unread: Sequence[Item] = ()
    ) -> Mapping[str, PromptFact]:
        """Where each participant's next prompt stands. `unread`: items that are not in the views yet, and are guessed roughly."""
        tokens = sum(estimates.item_tokens(item) for item in unread)
        return Prompts(
            self._seating, self._views, corrections=self._corrections, model_calls=model_calls, unread_tokens=tokens
        )

    def note_begun(self, call_id: UUID, guessed_tokens: int) -> None:
        self._guesses[call_id] = guessed_tokens

    def note_reply(self, step: AskModel, call_id: UUID, usage: Usage) -> None:
        guessed = self._guesses.pop(call_id, None)
        if guessed is not None and step.purpose is not Purpose.COMPACTION:
            self._correct(step.participant, usage, guessed)

    def note_failure(self, step: AskModel, call_id: UUID, failure: FailureClass) -> int | None:
        """What the prompt of a failed call was guessed to hold; a refusal as too long says that it is more than fits."""
        guessed = self._guesses.pop(call_id, None)
        is_too_long = failure is FailureClass.CONTEXT_TOO_LONG and step.purpose is not Purpose.COMPACTION
        if guessed is not None and is_too_long:
            known = self._corrections.get(step.participant, UNCORRECTED)
            smallest = min(guessed, known.refused_tokens or guessed)
            self._corrections[step.participant] = replace(known, refused_tokens=smallest)
        return guessed

    def entries(self, participant: str, *, trim_upto: int) -> list[Entry]:
        """The view, once old results up to a sequence are trimmed."""
        self._trim(participant, trim_upto)
        return self._views.of[participant].entries

    def _trim(self, participant: str, upto: int) -> None:
        view = self._views.of[participant]
        if upto > view.trimmed_upto:
            view.trim(upto, shortened_calls(view, self._seating.definition.context))

    def _correct(self, participant: str, usage: Usage, guessed: int) -> None:
        counted = usage.input + usage.cached_input + usage.cache_write
        if not counted or not guessed or usage.estimated:
            return
        least, most = _RATIOS
        known = self._corrections.get(participant, UNCORRECTED)
        self._corrections[participant] = replace(known, ratio=min(max(counted / guessed, least), most))
