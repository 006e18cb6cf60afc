"""How a long conversation is kept within a model's window: what is set, what applies, and what the engine is told of a prompt.

Sizes are in tokens, utilizations in per cent of the model's window. Deliberately absent: the deciding (`engine.context`), and counting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

Json = Any

DEFAULT_TOOL_LOOPS = 10
DEFAULT_TRIMMING_CYCLES = 3
DEFAULT_TARGET = 70
DEFAULT_COMPACT_AT = 80
DEFAULT_LOW_WATER = 50


class ContextMode(StrEnum):
    NONE = "None"
    TRIM = "Trim"
    COMPACT = "Compact"


class TrimmingMode(StrEnum):
    NEVER = "Never"
    AFTER_CYCLES = "AfterCycles"
    ON_PRESSURE = "OnPressure"


class TrimmingStyle(StrEnum):
    PLACEHOLDER = "Placeholder"
    HEAD_TAIL = "HeadTail"
    REMOVE = "Remove"


class CompactionType(StrEnum):
    SAME_AGENT = "SameAgent"
    DEDICATED_MODEL = "DedicatedModel"


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """What applies, defaults filled in. `keep_recent_tokens`, `summary_tokens` and `summary_limit_tokens` null: by the model's window.

    `trimming_cycles`: rounds of calls whose results stay whole. `replacement` null: the usual words. `summary_tokens`: how long a
    summary is asked to be; `summary_limit_tokens`: at most how long its reply may be.
    """

    mode: ContextMode = ContextMode.NONE
    trimming: TrimmingMode = TrimmingMode.NEVER
    trimming_cycles: int = DEFAULT_TRIMMING_CYCLES
    trimming_style: TrimmingStyle = TrimmingStyle.PLACEHOLDER
    replacement: str | None = None
    target_utilization: int = DEFAULT_TARGET
    low_water_utilization: int = DEFAULT_LOW_WATER
    compact_at_utilization: int = DEFAULT_COMPACT_AT
    compaction: CompactionType = CompactionType.SAME_AGENT
    keep_recent_tokens: int | None = None
    summary_tokens: int | None = None
    summary_limit_tokens: int | None = None
    max_tool_call_loops: int = DEFAULT_TOOL_LOOPS

    @property
    def trims(self) -> bool:
        return self.mode is not ContextMode.NONE and self.trimming is not TrimmingMode.NEVER


def effective(stored: Mapping[str, Json]) -> ContextSettings:
    """What applies where `stored` was set (by the wire's names; what is null or absent has its default)."""
    given = {name: value for name, value in stored.items() if value is not None}
    target, compact_at = given.get("targetUtilization"), given.get("compactAtUtilization")
    # A low water above a mark at which something starts would start it again at every turn.
    low = given.get("lowWaterUtilization", min(DEFAULT_LOW_WATER, target or 100, compact_at or 100))
    return ContextSettings(
        mode=ContextMode(given.get("mode", ContextMode.NONE)),
        trimming=TrimmingMode(given.get("toolResultTrimmingMode", TrimmingMode.NEVER)),
        trimming_cycles=given.get("toolResultTrimmingMaxCycles", DEFAULT_TRIMMING_CYCLES),
        trimming_style=TrimmingStyle(given.get("toolResultTrimmingStyle", TrimmingStyle.PLACEHOLDER)),
        replacement=given.get("toolResultTrimmingReplacement"),
        target_utilization=target or max(DEFAULT_TARGET, low),
        low_water_utilization=low,
        compact_at_utilization=compact_at or max(DEFAULT_COMPACT_AT, low),
        compaction=CompactionType(given.get("compactionType", CompactionType.SAME_AGENT)),
        keep_recent_tokens=given.get("compactKeepRecentTokens"),
        summary_tokens=given.get("compactTargetTokens"),
        summary_limit_tokens=given.get("compactMaxTokens"),
        max_tool_call_loops=given.get("maxToolCallLoops", DEFAULT_TOOL_LOOPS),
    )


@dataclass(frozen=True, slots=True)
class Correction:
    """What providers have shown of our guesses for a participant and a model. `ratio`: tokens that they counted for each guessed one.

    The smallest guesses that a provider refused as too long (null: none was): `refused_tokens` of the participant's prompts,
    `refused_part` of what its summariser was shown.
    """

    ratio: float = 1.0
    refused_tokens: int | None = None
    refused_part: int | None = None


UNCORRECTED = Correction()


@dataclass(frozen=True, slots=True)
class Cover:
    """A part of a participant's view that a summary is to stand for: all up to `upto` (a sequence) but what is pinned.

    `tokens_before`: of the whole prompt; `tokens_covered`: of the part; `summary_tokens`: how long the summary should be;
    `reply_tokens`: what its reply is bounded to. Guessed, not corrected: `most_tokens`, how long a summary may be, `covered`, what the
    part takes and so what stands for it must take less than, and `part_tokens`, what the summariser may be shown.
    """

    upto: int
    tokens_before: int
    tokens_covered: int
    summary_tokens: int
    reply_tokens: int
    most_tokens: int
    covered: int
    part_tokens: int


@dataclass(frozen=True, slots=True)
class PromptFact:
    """Where a participant's next prompt stands, once what `trim_upto` says is trimmed. `guessed`: before correction; `tokens`: after it.

    `cover`: what is to be summarised before the next call, null if nothing is. `covered_upto`: the sequence up to which a summary stands
    for the conversation.
    """

    guessed: int
    tokens: int
    covered_upto: int = 0
    trim_upto: int = 0
    cover: Cover | None = None


class PromptFacts(Protocol):
    """Where the next prompt of any view stands, looked at only when it is asked for."""

    def of(self, view_key: str, *, seat: str, beside: int) -> PromptFact:
        """`seat`: who is asked; `beside`: tokens that go with the view, of tools and last words."""
        ...
