"""What every drive of a worker shares: the database, the appender, the models, the tools, the lease, the listeners."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from folkmoot.domain.calls import CallResult, Tool
from folkmoot.domain.costs import UNKNOWN, Prices
from folkmoot.domain.model_calls import Model, ModelChoice
from folkmoot.domain.providers import is_usual_way
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import LeaseLost, SecretFault
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.delegations import Delegations
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.tenant_budgets import TenantBudgets
from folkmoot.runtime.watched import Watched
from folkmoot.store.appends import Appender
from folkmoot.store.database import Database
from folkmoot.vault.texts import SecretText


class Models(Protocol):
    """Gives the adapter of a model; raises ModelUnavailable with what to do."""

    def adapter_of(self, choice: ModelChoice) -> Model: ...


class Tools(Protocol):
    """Makes a participant's call that leaves the process, with its final arguments. Never raises for what the tool does."""

    async def call(
        self, tool: Tool, arguments: dict[str, Any], *, call_id: str, claim: Claim, participant: str
    ) -> CallResult: ...


def _no_vault(_: UUID, secret_id: UUID, __: bytes) -> SecretText:
    raise SecretFault(f"The secret {secret_id} cannot be opened: this worker has no vault.")


class PricesOf(Protocol):
    """A model's prices at a time; see `llm.catalogue`."""

    def __call__(
        self, model: ModelChoice, at: datetime, *, prompt_tokens: int = 0, service_tier: str | None = None
    ) -> Prices: ...


def no_prices(model: ModelChoice, at: datetime, *, prompt_tokens: int = 0, service_tier: str | None = None) -> Prices:
    """Where nothing is known of any model."""
    return UNKNOWN


@dataclass(frozen=True, slots=True)
class Workshop:
    """`may_act`: whether the worker's lease still allows a side effect to begin. `read_key(name)`: an environment
    variable's value now, or null. `chance`: from 0 to 1. `open_secret(tenant, secret, sealed)`: raises SecretFault.
    `may_send_key(provider, variable, url)`: whether the operator lets the key in this variable be sent there. `delegations`: null where no
    agents run. `seal_consent(tenant, message, secret)`: null where there is no key to seal it with."""

    database: Database
    appender: Appender
    models: Models
    tools: Tools
    watched: Watched
    new_id: NewId
    options: WorkerOptions
    may_act: Callable[[], bool]
    read_key: Callable[[str], str | None]
    chance: Callable[[], float] = random.random
    prices_of: PricesOf = no_prices
    tenant_budgets: TenantBudgets = field(default_factory=TenantBudgets)
    open_secret: Callable[[UUID, UUID, bytes], SecretText] = _no_vault
    may_send_key: Callable[[str, str, str | None], bool] = is_usual_way
    delegations: Delegations | None = None
    random_bytes: Callable[[int], bytes] = secrets.token_bytes
    seal_consent: Callable[[UUID, UUID, str], bytes | None] = lambda _, __, ___: None

    def must_act(self, what: str) -> None:
        """Raises LeaseLost where the lease lets no side effect begin. `what`: such as 'no model is called'."""
        if not self.may_act():
            raise LeaseLost(f"The worker's lease was not renewed in time; {what} under it.")


@dataclass(slots=True)
class DatabaseClock:
    """The database's time, carried on by this machine's monotonic clock between two looks."""

    now_at_mark: datetime
    mark: float = field(default_factory=time.monotonic)

    def set(self, now: datetime) -> None:
        self.now_at_mark = now
        self.mark = time.monotonic()

    def now_timestamp(self) -> float:
        return self.now_at_mark.timestamp() + time.monotonic() - self.mark
