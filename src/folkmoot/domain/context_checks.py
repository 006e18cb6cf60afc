"""What must hold of an interaction's context settings when they are saved. Pointers are into the version, by the wire's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from folkmoot.domain.contexts import ContextMode, TrimmingMode, effective
from folkmoot.domain.schema_documents import step
from folkmoot.kernel.errors import Fault

Json = Any

LARGEST_COUNT = 2_147_483_647

_PLACE = "/contextSettings"
_PERCENTAGES = ("targetUtilization", "lowWaterUtilization", "compactAtUtilization")
_COUNTS = ("maxToolCallLoops", "responseMaxTokens", "compactMaxTokens", "compactTargetTokens")
_COUNTS_FROM_NONE = ("toolResultTrimmingMaxCycles", "compactKeepRecentTokens")


def faults_of_context(settings: Mapping[str, Json]) -> Iterator[Fault]:
    """A fault for each number out of its bounds; if all are within, for what contradicts itself."""
    faults = [
        *_out_of_bounds(settings, _PERCENTAGES, 1, 100),
        *_out_of_bounds(settings, _COUNTS, 1, LARGEST_COUNT),
        *_out_of_bounds(settings, _COUNTS_FROM_NONE, 0, LARGEST_COUNT),
    ]
    yield from faults or _contradictions(settings)


def _out_of_bounds(settings: Mapping[str, Json], names: tuple[str, ...], least: int, most: int) -> Iterator[Fault]:
    for name in names:
        value = settings.get(name)
        if value is not None and not (type(value) is int and least <= value <= most):
            yield Fault(step(_PLACE, name), f"This is a whole number from {least} to {most}, or null; correct it.")


def _contradictions(settings: Mapping[str, Json]) -> Iterator[Fault]:
    applies = effective(settings)
    if applies.mode is ContextMode.TRIM and applies.trimming is TrimmingMode.NEVER:
        message = "The mode 'Trim' trims old tool results, and toolResultTrimmingMode 'Never' leaves them all; set that to 'OnPressure' or 'AfterCycles'."
        yield Fault(f"{_PLACE}/toolResultTrimmingMode", message)
    low = settings.get("lowWaterUtilization")
    for name in ("targetUtilization", "compactAtUtilization"):
        mark = settings.get(name)
        if low is not None and mark is not None and low > mark:
            message = f"This is how far down trimming and summarising go, and must not be above {name} ({mark}), where they start; lower it."
            yield Fault(f"{_PLACE}/lowWaterUtilization", message)
    limit, target = settings.get("compactMaxTokens"), settings.get("compactTargetTokens")
    if limit is not None and target is not None and limit < target:
        message = f"A summary of {target} tokens (compactTargetTokens) does not fit into a reply of this many; raise it, or lower that."
        yield Fault(f"{_PLACE}/compactMaxTokens", message)
