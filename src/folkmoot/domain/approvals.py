"""What an approval is bound to: one call, by its operation, version, server and final arguments (B05).

A changed provider's call id leaves it as it is; a changed argument makes it another. Deliberately absent: who approves, and how.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from folkmoot.domain.bindings import final_arguments
from folkmoot.domain.calls import Tool
from folkmoot.domain.operations import Http, OperationTarget
from folkmoot.domain.schemas import canonical, parse_arguments


@dataclass(frozen=True)
class FinalCall:
    """A call as it is sent: `arguments` with bound values in their places."""

    tool: Tool
    arguments: dict[str, Any]

    @cached_property
    def hash(self) -> bytes:
        """What binds an approval and a call's record to it."""
        identity = canonical([self.tool.name, *_operation(self.tool), self.arguments])
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


def final_call(tool: Tool, arguments_json: str) -> FinalCall:
    """The call that these arguments of a model's lead to. They were read and checked before; others are taken as none."""
    parsed = parse_arguments(arguments_json)
    arguments: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
    if isinstance(tool.target, OperationTarget):
        arguments = final_arguments(tool.target, arguments)
    return FinalCall(tool, arguments)


def server_of(target: OperationTarget) -> str:
    """Where a call goes, as a person is shown it."""
    if isinstance(target.server, Http):
        return target.server.url
    return " ".join((target.server.command, *target.server.arguments))


def _operation(tool: Tool) -> tuple[str | int, ...]:
    target = tool.target
    if not isinstance(target, OperationTarget):
        return (target.type,)
    return (target.type, str(target.operation_id), target.operation_version, server_of(target))
