"""Functions that workers of acceptance tests call: each call leaves a line in a log outside the database.

Deliberately absent: anything that makes a call safe; that is the server's work.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

from folkmoot.tools.functions import CallContext, function_tool


def _log(name: str, context: CallContext, **arguments: Any) -> None:
    entry = {
        "time": time.time(),
        "pid": os.getpid(),
        "name": name,
        "call_id": context.call_id,
        "key": context.idempotency_key,
    }
    line = json.dumps({**entry, "run_id": context.run_id, "arguments": arguments}) + "\n"
    log = os.open(os.environ["TOOL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(log, line.encode())
    os.close(log)


def _wait_at_gate(name: str) -> None:
    while os.path.exists(f"{os.environ['TOOL_GATE']}.{name}"):
        time.sleep(0.02)


@function_tool(is_read_only=True)
def look(text: str, context: CallContext) -> str:
    """Look something up."""
    _log("look", context, text=text)
    return f"seen {text}"


@function_tool(is_idempotent=True)
def note(text: str, context: CallContext) -> str:
    """Write a note, once however often it is asked for with the same key."""
    _log("note", context, text=text)
    return f"noted {text}"


@function_tool()
def pay(amount: int, context: CallContext) -> str:
    """Pay an amount. While the gate's file of this name is there, the answer waits."""
    _log("pay", context, amount=amount)
    _wait_at_gate("pay")
    return f"paid {amount}"


@function_tool(is_idempotent=True)
def wait(text: str, context: CallContext) -> str:
    """The same as note, but it waits as pay does."""
    _log("wait", context, text=text)
    _wait_at_gate("wait")
    return f"waited {text}"


@function_tool(is_idempotent=True)
def break_down(context: CallContext) -> str:
    """Takes the whole process down."""
    _log("break_down", context)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@function_tool(approval_mode="Always")
def sign(text: str, context: CallContext) -> str:
    """Sign, once a person has approved it."""
    _log("sign", context, text=text)
    return f"signed {text}"


@function_tool(is_read_only=True, limit_bytes=1_000_000)
def dump(context: CallContext) -> str:
    """More than a conversation carries."""
    _log("dump", context)
    return "a long line of text\n" * 5000
