"""Makes a tool's call: an operator's function, an external operation, a look into a kept result, or what a sub-run's tool does.

Secrets are read when a call is made and nowhere kept; what comes back is masked, as a last line. Never raises for what a tool
does. Deliberately absent: when a call may be made (`engine`), and its record (`drive`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never
from uuid import UUID

from folkmoot.domain.calls import (
    CallBounds,
    CallResult,
    DelegateTarget,
    FunctionTarget,
    ResultTarget,
    SwarmTarget,
    Tool,
)
from folkmoot.domain.operations import OperationTarget, SecretHeader
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import FolkmootError, Unreachable
from folkmoot.runtime import large_results, sub_runs
from folkmoot.runtime.sub_runs import SubRuns
from folkmoot.store.database import Database
from folkmoot.tools.functions import CallContext, FunctionTools


class Operations(Protocol):
    """Calls external operations. `verify`: first see that the operation is what the run is pinned to."""

    async def call(
        self,
        target: OperationTarget,
        arguments: dict[str, Any],
        *,
        headers: dict[str, str],
        bounds: CallBounds,
        verify: bool,
    ) -> CallResult: ...


_MASKED_AT_ONCE = 65_536  # characters
ReadHeader = Callable[[UUID, SecretHeader], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """`read_header`: a header's value for a tenant, opened now. `mask`: hides known secrets in a text."""

    database: Database
    functions: FunctionTools
    operations: Operations
    read_header: ReadHeader
    mask: Callable[[str], str]
    sub_runs: SubRuns

    async def call(
        self, tool: Tool, arguments: dict[str, Any], *, call_id: str, claim: Claim, participant: str
    ) -> CallResult:
        """The call's result, its secrets masked. A call's own id is its idempotency key. `participant`: whose call it is.

        Raises LeaseLost where a sub-run's tool finds the claim no more, and Unreachable where whether it was started is not known.
        """
        tenant_id, run_id = claim.tenant_id, claim.run_id
        match tool.target:
            case FunctionTarget():
                context = CallContext(call_id=call_id, idempotency_key=call_id, run_id=str(run_id))
                result = await self.functions.run(tool.name, json.dumps(arguments, ensure_ascii=False), context)
            case ResultTarget():
                result = await large_results.read(self.database, arguments, tenant_id=tenant_id, run_id=run_id)
            case SwarmTarget(action=action):
                caller = sub_runs.Caller(UUID(call_id), claim, participant)
                result = await self.sub_runs.call(action, arguments, caller)
            case OperationTarget() as target:
                result = await self._operation(tool, target, arguments, call_id=call_id, tenant_id=tenant_id)
            case DelegateTarget():
                raise AssertionError("a delegation is a run, which `delegations` sees to")
            case _:
                assert_never(tool.target)
        return replace(result, text=await self._masked(result.text))

    async def _masked(self, text: str) -> str:
        # Megabytes are looked through for seconds where many secrets are known: not while all other runs wait.
        return self.mask(text) if len(text) <= _MASKED_AT_ONCE else await asyncio.to_thread(self.mask, text)

    async def _operation(
        self, tool: Tool, target: OperationTarget, arguments: dict[str, Any], *, call_id: str, tenant_id: UUID
    ) -> CallResult:
        try:
            headers = {header.header_name: await self.read_header(tenant_id, header) for header in target.headers}
        except Unreachable:  # its words tell where the database is
            text = f"{tool.name} was not called: the secrets it sends could not be read just now. Call it again."
            return CallResult(text, is_error=True)
        except FolkmootError as error:
            return CallResult(f"{tool.name} was not called: {error}", is_error=True)
        bounds = CallBounds(tool.limit_seconds, tool.limit_bytes, call_id, tool.is_idempotent or tool.is_read_only)
        # `verify`: what a person approved is what is called, or nothing is (F32)
        return await self.operations.call(target, arguments, headers=headers, bounds=bounds, verify=tool.may_be_gated)
