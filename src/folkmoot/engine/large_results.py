"""The result of dispatched work as its manager reads it: what is too large for a conversation by head and tail, to be read on in.

The item has it whole, and is read by the call's id. Deliberately absent: results of tools, which are cut before they are recorded.
"""

from __future__ import annotations

from dataclasses import replace

from folkmoot.domain.items import ToolResult
from folkmoot.domain.tool_names import READ_RESULT_TOOL

LARGEST_SHOWN = 32 * 1024  # bytes of UTF-8
HEAD, TAIL = 6_000, 2_000  # characters


def is_large(result: ToolResult) -> bool:
    return result.result_size > LARGEST_SHOWN


def large_result(result: ToolResult) -> ToolResult:
    """The result itself where it is not too large."""
    if not is_large(result):
        return result
    return replace(result, result=head_and_tail(result.result, result.tool_call_id))


def head_and_tail(text: str, result_id: str) -> str:
    """What is shown of a text, and how to read on. `result_id`: by which it is found."""
    cut = len(text) - HEAD - TAIL
    note = f"[{cut:,} of {len(text):,} characters are not shown. Read on with {READ_RESULT_TOOL}, id {result_id}, offset {HEAD}.]"
    return f"{text[:HEAD]}\n{note}\n{text[-TAIL:]}"
