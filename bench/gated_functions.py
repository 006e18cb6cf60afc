"""Functions of the runs in parts i and n, for FOLKMOOT_FUNCTIONS; each call adds a line to a log: its id and Unix nanoseconds."""

from __future__ import annotations

import os
import time

from folkmoot.tools.functions import CallContext, function_tool


@function_tool(approval_mode="Always")
async def sign(text: str, context: CallContext) -> str:
    """Sign a text; a person approves each call."""
    _note(context)
    return "signed"


@function_tool()
async def jot(text: str, context: CallContext) -> str:
    """Write a text down; nobody is asked."""
    _note(context)
    return "written"


def _note(context: CallContext) -> None:
    line = f"{context.call_id} {time.time_ns()}\n"
    log = os.open(os.environ["BENCH_CALLS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(log, line.encode())
    os.close(log)
