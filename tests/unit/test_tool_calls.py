"""What becomes of a call whose secrets cannot be read, of a large result, and of one that needs consent."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import pytest

from folkmoot.domain.agent_settings import Comparison, ConsentRule
from folkmoot.domain.calls import CallResult, Tool
from folkmoot.domain.operations import Http, McpDescriptor, OperationTarget, SecretHeader
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import FolkmootError, NotFound, Unreachable
from folkmoot.runtime.tool_calls import ToolCalls
from folkmoot.tools.functions import FunctionTools, function_tool

CLAIM = Claim(UUID(int=4), UUID(int=5), 1, UUID(int=6))


class _Uncalled:
    async def call(self, target: OperationTarget, arguments: dict[str, Any], **_: Any) -> CallResult:
        raise AssertionError("The call was made without its header.")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (NotFound("There is no secret with the id 7."), "There is no secret"),
        (Unreachable("The database at db.internal:5432 cannot be reached."), "could not be read just now"),
    ],
)
async def test_a_call_without_its_secret_is_not_made_and_tells_nothing_of_the_database(
    error: FolkmootError, says: str
) -> None:
    """B52, B67: what a model reads holds no address of ours."""

    async def read_header(tenant_id: UUID, header: SecretHeader) -> str:
        raise error

    some: Any = None  # of the database nothing is asked
    target = OperationTarget(
        UUID(int=1), "a/files", UUID(int=2), 1, Http("https://files.example/mcp"), McpDescriptor("read", "Read.", {}),
        headers=(SecretHeader("Authorization", UUID(int=3)),),
    )  # fmt: skip
    calls = ToolCalls(some, FunctionTools.discover({}), _Uncalled(), read_header, lambda text: text, some)
    result = await calls.call(
        Tool("read", "Read.", {}, target=target),
        {},
        call_id="1",
        claim=CLAIM,
        participant="Ann",
    )
    assert result.is_error and "was not called" in result.text and says in result.text
    assert "5432" not in result.text


async def test_a_large_result_is_masked_beside_the_loop() -> None:
    """F11, F44: what takes seconds holds up no other run."""
    threads: list[bool] = []

    def mask(text: str) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return text.replace("hush", "•••")

    async def dump(size: int) -> str:
        return "hush" + "x" * size

    some: Any = None
    functions = FunctionTools.discover({"dump": function_tool(limit_bytes=1_000_000)(dump)})
    calls = ToolCalls(some, functions, _Uncalled(), some, mask, some)
    for size in (10, 100_000):
        tool = functions.offered("dump")
        result = await calls.call(tool, {"size": size}, call_id="1", claim=CLAIM, participant="Ann")
        assert result.text.startswith("•••x"), result.text[:200]
    assert threads == [True, False]


@pytest.mark.parametrize(
    ("gate", "is_verified"),
    [({"is_gated": True}, True), ({"consent_rules": (ConsentRule("pay", Comparison.ABOVE, "amount", 50),)}, True), ({}, False)],
)  # fmt: skip
async def test_what_a_person_may_have_approved_is_compared_with_its_server_by_whatever_gate(
    gate: dict[str, Any], is_verified: bool
) -> None:
    """F32: by the approval mode, or by a rule on arguments."""
    verified: list[bool] = []

    class Operations:
        async def call(
            self, target: OperationTarget, arguments: dict[str, Any], *, verify: bool, **_: Any
        ) -> CallResult:
            verified.append(verify)
            return CallResult("Paid.", is_error=False)

    some: Any = None
    target = OperationTarget(
        UUID(int=1), "a/bank", UUID(int=2), 1, Http("https://bank.example/mcp"), McpDescriptor("pay", "Pay.", {})
    )
    calls = ToolCalls(some, FunctionTools.discover({}), Operations(), some, lambda text: text, some)
    tool = Tool("pay", "Pay.", {}, target=target, **gate)
    await calls.call(tool, {"amount": 100}, call_id="1", claim=CLAIM, participant="Ann")
    assert verified == [is_verified]
