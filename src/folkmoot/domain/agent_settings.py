"""What an agent's definition says of its runs: whose they are, what they may call, whom they may delegate to, what needs consent.

Deliberately absent: the links it holds to what others define, which are resolved at a start (`services.agent_closure`), and the loop (`agentloop`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from folkmoot.domain.references import Reference

Json = Any

DEFAULT_ITERATIONS = 3
MOST_ITERATIONS = 100
CONSENT_TIME = timedelta(days=3)
MOST_DELEGATIONS_DEEP = 4  # runs below a root, one under the other


class Comparison(StrEnum):
    """How an argument is held against a rule's value."""

    ALWAYS = "Always"  # whatever the arguments are
    ABOVE = "Above"
    BELOW = "Below"
    EQUALS = "Equals"
    DIFFERS = "Differs"
    CONTAINS = "Contains"


@dataclass(frozen=True, slots=True)
class ConsentRule:
    """A call of `tool` whose `argument` compares so needs the owner's consent, whatever the tool's own approval mode is.

    `argument`: a name at the top of the arguments, or a JSON pointer into them; null with `ALWAYS` alone.
    """

    tool: str
    comparison: Comparison = Comparison.ALWAYS
    argument: str | None = None
    value: Json = None


@dataclass(frozen=True, slots=True)
class AgentBudget:
    """Of a run with all that it delegates; null: no limit. `money`: US dollars; `calls`: of models; `working_time`: at work, waiting for
    people not counted."""

    tokens: int | None = None
    money: Decimal | None = None
    calls: int | None = None
    tool_calls: int | None = None
    working_time: timedelta | None = None


@dataclass(frozen=True, slots=True)
class AgentRunSettings:
    """`owner`: the user whose rights every phase has; null: whoever made the agent. `tool_whitelist`: names of the agent's tools that its
    runs may call; none that is not named. `channel`: `name` or `namespace/name` of a channel, or `web`; null: `web`.
    `consent_time`: how long a consent may take; null: for ever. `owner_name`: the owner as a request names them, until the version is
    saved; null in all that is stored.
    """

    owner: UUID | None = None
    tool_whitelist: tuple[str, ...] = ()
    specialists: tuple[Reference, ...] = ()
    consent_rules: tuple[ConsentRule, ...] = ()
    maximum_iterations: int = DEFAULT_ITERATIONS
    budget: AgentBudget = field(default_factory=AgentBudget)
    channel: str | None = None
    consent_time: timedelta | None = CONSENT_TIME
    owner_name: str | None = None
