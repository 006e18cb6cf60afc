"""The error tree. Codes are stable and appear on the wire, in logs and in docs/errors.md; HTTP statuses do not live here.

FolkmootError
+-- BadInput                what was sent is wrong; says where and what to do            bad_input
|   +-- BadDefinition       a definition does not hold together                          bad_definition
|   `-- NotYetBuilt         a field that this version stores but cannot run yet          not_yet_built
+-- NotFound                no such thing, or not yours                                  not_found
+-- NotAllowed              the key is missing, unknown, revoked or expired              not_allowed
+-- NotPermitted            the caller is known and lacks the right                      not_permitted
+-- Conflict                the state of the thing does not admit it                     conflict
|   +-- RunEnded            the run has ended                                            run_ended
|   +-- NotWaiting          the run is at work and waits for nobody now                  not_waiting
|   +-- WaitingForApproval  the run waits for an approval, not for this                  waiting_for_approval
|   +-- AlreadyDecided      somebody has answered otherwise; says what, who and when     already_decided
|   +-- TooLate             what was asked has expired, or the run was stopped           too_late
|   +-- StaleApproval       the card shown is not what would run: read it again          stale_approval
|   `-- InFlight            the same Idempotency-Key is still at work                    in_flight
+-- KeyReused               an Idempotency-Key came back with another body               key_reused
+-- BudgetSpent             the tenant's budget of the day is used up                    budget_spent
+-- Unreachable             database, server or network cannot be reached                unreachable
+-- DatabaseFault           the embedded server or its data directory needs attention    database_fault
+-- ConnectorFault          a connector's server or document cannot be used              connector_fault
+-- SecretFault             a sealed secret cannot be opened: wrong or missing key       secret_fault
+-- ModelUnavailable        a model cannot be had: its file, its key or its package      model_unavailable
`-- LeaseLost               another claim exists: drop everything of the run (internal)  lease_lost

Expected failures of models and tools are outcomes, recorded as items, and not in this tree.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `pointer` is a JSON pointer into what was sent ('' for the whole), `message` a sentence."""

    pointer: str
    message: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.pointer + ': ' if self.pointer else ''}{self.message}"


class FolkmootError(Exception):
    """What is wrong, where, and what to do, in a sentence without secrets."""

    code = "error"


class BadInput(FolkmootError):
    """The request or file is wrong; `faults` says where."""

    code = "bad_input"

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class BadDefinition(BadInput):
    code = "bad_definition"


class NotYetBuilt(BadInput):
    code = "not_yet_built"


class NotFound(FolkmootError):
    code = "not_found"


class NotAllowed(FolkmootError):
    code = "not_allowed"


class NotPermitted(FolkmootError):
    code = "not_permitted"


class Conflict(FolkmootError):
    code = "conflict"


class RunEnded(Conflict):
    code = "run_ended"


class NotWaiting(Conflict):
    code = "not_waiting"


class WaitingForApproval(Conflict):
    code = "waiting_for_approval"


class AlreadyDecided(Conflict):
    code = "already_decided"


class TooLate(Conflict):
    code = "too_late"


class StaleApproval(Conflict):
    code = "stale_approval"


class InFlight(Conflict):
    code = "in_flight"


class KeyReused(FolkmootError):
    code = "key_reused"


class BudgetSpent(FolkmootError):
    """`retry_after_seconds`: until the next day begins."""

    code = "budget_spent"

    def __init__(self, message: str, *, retry_after_seconds: int = 86_400) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unreachable(FolkmootError):
    code = "unreachable"


class DatabaseFault(FolkmootError):
    code = "database_fault"


class ConnectorFault(FolkmootError):
    code = "connector_fault"


class SecretFault(FolkmootError):
    code = "secret_fault"


class ModelUnavailable(FolkmootError):
    code = "model_unavailable"


class LeaseLost(FolkmootError):
    code = "lease_lost"
