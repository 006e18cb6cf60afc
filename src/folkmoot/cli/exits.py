"""Exit codes (docs/spec/README.md): what each kind of end and each kind of error leaves the process with."""

from __future__ import annotations

from folkmoot.domain.agent_runs import AgentRunStatus
from folkmoot.domain.run_status import RunStatus
from folkmoot.kernel import errors

DONE = 0
FAILED = 1
WRONG_INPUT = 2
NOT_FOUND = 3
UNREACHABLE = 4
INTERRUPTED = 130

_OF_ERROR: tuple[tuple[type[errors.FolkmootError], int], ...] = (
    (errors.BadInput, WRONG_INPUT),
    (errors.KeyReused, WRONG_INPUT),
    (errors.ModelUnavailable, WRONG_INPUT),
    (errors.NotFound, NOT_FOUND),
    (errors.NotAllowed, NOT_FOUND),
    (errors.NotPermitted, NOT_FOUND),
    (errors.ConnectorFault, WRONG_INPUT),
    (errors.SecretFault, WRONG_INPUT),
    (errors.Unreachable, UNREACHABLE),
    (errors.DatabaseFault, UNREACHABLE),
)


def of_error(error: errors.FolkmootError) -> int:
    return next((code for kind, code in _OF_ERROR if isinstance(error, kind)), FAILED)


def of_agent_run(status: AgentRunStatus) -> int:
    return DONE if status is AgentRunStatus.COMPLETED else FAILED


def of_run(status: RunStatus) -> int:
    return DONE if status is RunStatus.COMPLETED else FAILED
