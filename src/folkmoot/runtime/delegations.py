"""Makes the calls that delegate: starts a specialist's run the first time, and reads what came of it once it has ended.

Expected refusals are results: they say what is wrong and what to do. Deliberately absent: waiting in between, which is no call under way
but a pause of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain.calls import CallResult
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import FolkmootError, LeaseLost, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_closure, delegations
from folkmoot.services.closure import Workbench
from folkmoot.services.delegations import Wanted
from folkmoot.store.agent_runs import DelegatedResult
from folkmoot.store.database import Database

_UNDER_WAY = CallResult("", is_error=False, is_under_way=True)


@dataclass(frozen=True, slots=True)
class Delegations:
    """`bench`: what this machine adds to a start. `new_token`: a correlation token. `tell`: notifies all processes."""

    database: Database
    bench: Workbench
    new_id: NewId
    new_token: Callable[[], str]
    tell: Callable[[dict[str, Any]], None]

    async def call(
        self, arguments: dict[str, Any], *, call_id: UUID, claim: Claim, tool_calls_left: int | None
    ) -> CallResult:
        """The call's result, under way while the specialist's run goes on. Raises LeaseLost and Unreachable."""
        found = await delegations.result(self.database, claim, run_id=call_id)
        if found is not None:
            return _result(arguments["specialist"], found)
        wanted = Wanted(call_id, arguments["specialist"], arguments["task"], tool_calls_left)
        try:
            await delegations.start(
                self.database, claim, wanted=wanted, bench=self.bench, new_id=self.new_id, new_token=self.new_token, tell=self.tell
            )  # fmt: skip
        except (Unreachable, LeaseLost):
            raise
        except FolkmootError as error:
            return CallResult(agent_closure.shown(error), is_error=True)
        return _UNDER_WAY


def _result(specialist: str, found: DelegatedResult) -> CallResult:
    if found.status not in FINAL:
        return _UNDER_WAY
    if found.status is RunStatus.COMPLETED:
        return CallResult(found.output or "", is_error=False, delegated_calls=found.tool_calls)
    why = found.failure_details or f"it was cancelled by {found.stopped_by}"
    return CallResult(f"{specialist} did not do it: {why}", is_error=True, delegated_calls=found.tool_calls)
