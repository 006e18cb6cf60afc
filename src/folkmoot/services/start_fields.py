"""What a start says, and what the operator's machine adds to it. Deliberately absent: what comes of it (`closure`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from folkmoot.domain.budgets import Budget
from folkmoot.domain.calls import Tool
from folkmoot.domain.costs import Prices, own_prices
from folkmoot.domain.credentials import StackEntry, StackSnapshot
from folkmoot.domain.definitions import AiModelVersion, ModelOverride
from folkmoot.domain.model_calls import ModelChoice

Json = Any
FindFunction = Callable[[str], Tool | None]
ReadScript = Callable[[str], Json]


@dataclass(frozen=True, slots=True)
class StartFields:
    """What a start says beside the interaction and its version.

    `inputs`: names and values as text, in the order given. `response_json_schema` takes the place of the definition's;
    the durations likewise. `disabled_tools` null: none were named. `later`: the fields of later parts that were
    sent, by their wire names. `model`: one to use in place of all that the definitions name; only commands set it, for all
    sub-runs too. `budget`: lowers the definition's. `credentials`: entries without names; `credential_stack`: `name` or `namespace/name`.
    `inherited_disabled_tools`, `inherited_stack`: of a run that starts this one; names that no participant has are no faults then.
    `parent_process_id`: the App run that the run is started under; null: none. `chooses_secrets`: inputs may name secrets, as a
    participant's may not.
    """

    inputs: tuple[tuple[str, str], ...] = ()
    response_json_schema: str | None = None
    disabled_tools: tuple[str, ...] | None = None
    duration_auto_termination: timedelta | None = None
    duration_human_timeout: timedelta | None = None
    duration_warning_to_ai: timedelta | None = None
    ai_model_overrides: tuple[ModelOverride, ...] = ()
    tags: tuple[str, ...] = ()
    priority: int = 0
    credentials: tuple[StackEntry, ...] = ()
    credential_stack: str | None = None
    allow_platform_fallback: bool | None = None
    model: ModelChoice | None = None
    budget: Budget | None = None
    parent_process_id: UUID | None = None
    later: Mapping[str, Json] = field(default_factory=dict)
    inherited_disabled_tools: tuple[str, ...] = ()
    inherited_stack: StackSnapshot | None = None
    chooses_secrets: bool = True

    @property
    def all_disabled_tools(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(self.disabled_tools or ()), *self.inherited_disabled_tools)))


@dataclass(frozen=True, slots=True)
class Workbench:
    """What the operator's machine adds: its functions by name, and a reader of scripted models' files (BadInput, OSError).

    `lack_of`: a sentence about what a model lacks on this machine, or null; set where the run will be worked on here.
    `read_key`: the value of an environment variable now; set likewise. `allows_stdio`: whether the operator lets connectors run
    commands. `window_of`: what the catalogue of known models says that a model holds, in tokens; `prices_of`: what it costs now.
    """

    find_function: FindFunction
    read_script: ReadScript
    lack_of: Callable[[ModelChoice], str | None] = lambda _: None
    read_key: Callable[[str], str | None] | None = None
    allows_stdio: bool = True
    window_of: Callable[[AiModelVersion], int | None] = lambda _: None
    prices_of: Callable[[ModelChoice], Prices] = lambda model: own_prices(model.prices)
