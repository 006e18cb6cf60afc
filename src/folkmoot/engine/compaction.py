"""Summaries of what is old in a participant's view: when one is asked for, what its model reads, and what comes of the reply.

A compaction is a model call like any other, recorded under its participant; a failed one changes nothing, and after three in a row
it rests for a while. Deliberately absent: which part is to be covered (`context`), and putting a summary in its place (`view`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.contexts import CompactionType, PromptFact
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import (
    OF_KEYS,
    Entry,
    FailureClass,
    ModelCallFact,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    SystemText,
)
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions
from folkmoot.engine.context import prompt_of
from folkmoot.engine.estimates import entry_tokens, tokens_of
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel
from folkmoot.engine.view import View, summary_entry

FAILURES = 3  # in a row, and it rests
REST_CALLS = 8  # of the participant's own, for which it rests

_KEYS_TRIED = (
    10  # with each the next key is tried, which says nothing of the summariser; so many are a failure all the same
)
_OMITTED = "[...]"


def step_before(seating: Seating, protocol: Protocol, facts: Facts, step: AskModel) -> AskModel | None:
    """The compaction that comes before a step; null if none is needed, it rests, or it came to nothing."""
    refused = _refused(facts.model_calls.get(step.key, ()))
    if facts.prompts is None or len(refused) > 1 or step.purpose is Purpose.ROUTE:
        return None
    prompt = prompt_of(seating, facts.prompts, step)
    if prompt.cover is None:
        return None
    prefix = f"compact:{step.view}:{prompt.covered_upto}:"
    failed = _failed(facts.model_calls, prefix)
    calls = protocol.calls.get(step.view, 0)
    key = f"{prefix}{'forced:' if refused else ''}{calls}"  # a forced one has tries of its own
    if not refused:
        last = int(failed[-1].step_key.rsplit(":", 1)[1]) if failed else 0
        if failed and len(failed) % FAILURES == 0 and calls - last < REST_CALLS:
            return None
    if len([fact for fact in failed if fact.step_key == key]) >= FAILURES:
        return None
    tried = [fact for fact in facts.model_calls.get(key, ()) if fact.failure is not None]
    return AskModel(
        key=key,
        participant=step.participant,
        purpose=Purpose.COMPACTION,
        turn_id=step.turn_id,
        offered=(),
        required=False,
        instruction=instructions.summarise(step.participant, prompt.cover.summary_tokens),
        turn=step.turn,
        call=step.call,
        attempt=len(tried) + 1,
        not_before=tried[-1].not_before if tried else None,
        cover=prompt.cover,
        agent=step.agent,
        thread_id=step.thread_id,
    )


def _failed(model_calls: Mapping[str, tuple[ModelCallFact, ...]], prefix: str) -> list[ModelCallFact]:
    """What counts as a failure of the summariser, oldest first."""
    counted: list[ModelCallFact] = []
    of_keys = 0
    for fact in (fact for key, facts in model_calls.items() if key.startswith(prefix) for fact in facts):
        if fact.failure in (None, FailureClass.LOST):  # with its worker, which says nothing of the summariser either
            continue
        if fact.failure in OF_KEYS:
            of_keys += 1
            if of_keys % _KEYS_TRIED:
                continue
        counted.append(fact)
    return counted


def _refused(failures: Iterable[ModelCallFact]) -> list[ModelCallFact]:
    return [fact for fact in failures if fact.failure is FailureClass.CONTEXT_TOO_LONG]


def may_retry(failures: list[ModelCallFact], prompt: PromptFact | None) -> bool:
    """Whether a prompt that was refused as too long may be sent once more: where it has become smaller."""
    refused = _refused(failures)
    guessed = refused[-1].guessed_tokens
    return len(refused) == 1 and prompt is not None and guessed is not None and prompt.guessed < guessed


def read_by_summariser(seating: Seating, view: View, step: AskModel) -> list[Entry]:
    """What a compaction's model is shown: the part to be summarised, as a record of who said what."""
    cover = step.cover
    assert cover is not None
    end = bisect_right(view.entered, cover.upto)
    is_same = seating.definition.context.compaction is CompactionType.SAME_AGENT
    made: list[Entry] = []
    for entry, stays in zip(view.entries[:end], view.staying()[:end], strict=True):
        if isinstance(entry, SystemText):
            made += [entry] if is_same else []
        elif not stays or isinstance(entry, OtherText):
            made.append(told(entry, step.participant))
    return list(fitted(made, cover.part_tokens))


def told(entry: Entry, participant: str) -> Entry:
    """An entry of a participant's view as a record tells it."""
    if isinstance(entry, OwnText):
        return OtherText(participant, entry.text)
    if isinstance(entry, OwnCall):
        return OtherText(participant, instructions.told_call(entry))
    return entry


def fitted(entries: list[Entry], most_tokens: int) -> Iterator[Entry]:
    """The entries, each cut to head and tail where all of them are more than a model is to be shown."""
    if sum(entry_tokens(entry) for entry in entries) <= most_tokens:
        yield from entries
        return
    share = most_tokens // max(len(entries), 1)
    for entry in entries:
        tokens = entry_tokens(entry)
        if isinstance(entry, OtherText) and tokens > share:
            half = max(len(entry.text) * share // tokens - len(_OMITTED), 0) // 2
            yield OtherText(entry.speaker, f"{entry.text[:half]}{_OMITTED}{entry.text[len(entry.text) - half :]}")
        else:
            yield entry


def fault_of(step: AskModel, text: str) -> str | None:
    """Why a reply is no summary, as a sentence; null where it is one."""
    assert step.cover is not None
    if not text.strip():
        return "The summary came back empty."
    if (tokens := tokens_of(text)) > step.cover.most_tokens:
        return f"The summary came back with about {tokens:,} tokens; it may have {step.cover.most_tokens:,}."
    if (taken := entry_tokens(summary_entry(text))) >= step.cover.covered:
        return f"The summary would take about {taken:,} tokens, and what it is to stand for {step.cover.covered:,}."
    return None


def summary_item(seating: Seating, step: AskModel, *, text: str, item_id: UUID, model_call_id: UUID) -> Item:
    """The item that stands for the part from now on, in its participant's view."""
    cover = step.cover
    assert cover is not None
    taken = round(entry_tokens(summary_entry(text)) * cover.tokens_covered / cover.covered)
    after = max(cover.tokens_before - cover.tokens_covered, 0) + taken
    model = seating.summariser(step.seat).model_name
    body = items.Summary(text, cover.upto, cover.tokens_before, after, model)
    return Item(item_id, seating.authors[step.seat], body, None, step.turn_id, model_call_id, step.thread_id)
