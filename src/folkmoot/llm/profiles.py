"""What a provider's protocol takes and what it demands, as data that rendering and sending follow.

Deliberately absent: models (what one of them can do is in its definition), keys, and any SDK.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = Any


def as_it_is(schema: Json) -> Json:
    return schema


@dataclass(frozen=True, slots=True)
class Profile:
    """`protocol`: as a sentence calls it. `schema`: makes a function's schema fit. `marks_cache`: the stable part of a prompt is marked,
    so that it is cheap the next time. `needs_functions_for_calls`: a history with calls needs functions beside it, also where none is
    offered. `tells_end`: a whole reply always says why it ended, so that one which does not was cut. `default_max_tokens`: what is
    asked for where neither the agent nor the model names a largest response; null: the protocol needs none. `has_models_without_tools`: such
    models get them through a schema of the reply (`shim`).
    """

    protocol: str
    schema: Callable[[Json], Json] = as_it_is
    marks_cache: bool = False
    needs_functions_for_calls: bool = False
    tells_end: bool = False
    highest_temperature: float = 2.0
    takes_seed: bool = True
    takes_both_samplings: bool = True
    default_max_tokens: int | None = None
    has_models_without_tools: bool = False
