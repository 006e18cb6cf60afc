"""Results that are too large for a conversation: kept whole in the content store, shown by head and tail, read on by id.

They are written before the commit that refers to them: one that no item comes to name is swept. Deliberately absent: who may
read on; a result is found by its run alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from folkmoot.domain.calls import CallResult, ResultTarget, Tool
from folkmoot.domain.json_text import visible
from folkmoot.domain.runs import Claim
from folkmoot.engine.large_results import LARGEST_SHOWN, head_and_tail
from folkmoot.kernel import fault_points
from folkmoot.runtime.workshop import Workshop
from folkmoot.store import contents, conversations
from folkmoot.store.database import Database, Reader

_PIECE = 20_000  # characters that are read on at once, if the model names no length


async def kept(workshop: Workshop, claim: Claim, result: CallResult, *, tool: Tool) -> CallResult:
    """The result as the conversation carries it."""
    text = visible(result.text)
    size = len(text.encode())
    if size <= LARGEST_SHOWN or isinstance(tool.target, ResultTarget):
        return result
    content_id = workshop.new_id()
    async with workshop.database.writer() as writer:
        await contents.put(writer, claim.tenant_id, run_id=claim.run_id, content_id=content_id, text=text, size=size)
    fault_points.reach("after_content")
    return replace(result, text=head_and_tail(text, str(content_id)), content_id=content_id, size=size)


async def read(database: Database, arguments: dict[str, Any], *, tenant_id: UUID, run_id: UUID) -> CallResult:
    """A piece of a kept result, or of one that was trimmed from a prompt: `id`, and from `offset` on `length` characters."""
    try:
        content_id = UUID(str(arguments.get("id")))
    except ValueError:
        return CallResult("This is no id of a result; it stands where the result was cut.", is_error=True)
    offset, length = arguments.get("offset", 0), arguments.get("length", _PIECE)
    async with database.reader() as reader:
        part = await contents.read(
            reader, tenant_id, run_id=run_id, content_id=content_id, offset=offset, length=min(length, LARGEST_SHOWN)
        )
        if part is None:
            part = await _of_conversation(
                reader, content_id, tenant_id=tenant_id, run_id=run_id, offset=offset, length=length
            )
    if part is None:
        return CallResult(f"This run has no result with the id {content_id}.", is_error=True)
    # What is read on is itself no larger than what is shown.
    piece = part.text.encode()[:LARGEST_SHOWN].decode(errors="ignore")
    left = part.characters - offset - len(piece)
    if left > 0:
        return CallResult(
            f"{piece}\n[{left:,} characters follow, from offset {offset + len(piece)} on.]", is_error=False
        )
    return CallResult(
        piece or f"The result has {part.characters:,} characters; there is nothing from here on.", is_error=False
    )


async def _of_conversation(
    reader: Reader, call_id: UUID, *, tenant_id: UUID, run_id: UUID, offset: int, length: int
) -> contents.Part | None:
    """A piece of a result that stands whole in the conversation, where a prompt shows it trimmed: by the id of its call."""
    text = await conversations.result_of_call(reader, tenant_id, run_id=run_id, call_id=str(call_id))
    return contents.Part(text[offset : offset + length], len(text)) if text is not None else None
