"""What a tool answered, as the text that the conversation keeps.

Pictures, sound and files are described by type and size, since the conversation holds text. Deliberately absent: cutting; an
answer over its limit is an error that says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import mcp_types as types

from folkmoot.domain.calls import CallResult
from folkmoot.tools.mcp.texts import shortened
from folkmoot.tools.results import TooLarge, Unwritable, text_of
from folkmoot.tools.sent_secrets import SentSecrets

_MAX_NAME = 300


def result_of(answer: types.CallToolResult, *, subject: str, limit_bytes: int, secrets: SentSecrets) -> CallResult:
    """The result of a call. `subject` begins the sentences about it; `secrets` are taken out of the text."""
    try:
        text = text_of(secrets.masked(_text(answer)), limit_bytes=limit_bytes)
    except TooLarge as error:
        done = "failed" if answer.is_error else "has run"
        return CallResult(text=f"{subject} {done}, but its result is not shown: {error}", is_error=True)
    except Unwritable as error:
        return CallResult(text=f"{subject} has run, but its result cannot be shown: {error}", is_error=True)
    if not text.strip():
        return CallResult(
            text=f"{subject} {'failed' if answer.is_error else 'gave nothing'}.", is_error=answer.is_error
        )
    return CallResult(text=text, is_error=answer.is_error)


def _text(answer: types.CallToolResult) -> str:
    parts = [part for block in answer.content for part in _parts(block)]
    # Servers send what is structured as text too; it counts where there is no text.
    is_said = any(isinstance(block, types.TextContent) and block.text for block in answer.content)
    if answer.structured_content is not None and not is_said:
        parts.insert(0, text_of(answer.structured_content, limit_bytes=_UNBOUND))
    return "\n".join(parts)


_UNBOUND = 1 << 62  # the whole text is measured at the end


def _parts(block: types.ContentBlock) -> Iterator[str]:
    match block:
        case types.TextContent():
            if block.text:
                yield block.text
        case types.ImageContent():
            yield f"[picture: {_named(block.mime_type)}, {_decoded_size(block.data):,} bytes, not shown]"
        case types.AudioContent():
            yield f"[sound: {_named(block.mime_type)}, {_decoded_size(block.data):,} bytes, not shown]"
        case types.ResourceLink():
            size = f", {block.size:,} bytes" if block.size is not None else ""
            yield f"[link to '{_named(block.name)}': {_named(str(block.uri))}, {_named(block.mime_type)}{size}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            # A text is what was asked for: servers of repositories hand their files over in this way.
            yield f"[{_named(str(resource.uri))}, {_named(resource.mime_type)}]"
            yield resource.text
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            size = f"{_decoded_size(resource.blob):,} bytes"
            yield f"[file: {_named(str(resource.uri))}, {_named(resource.mime_type)}, {size}, not shown]"


def _named(text: str | None) -> str:
    return shortened(text, _MAX_NAME) if text else "of unknown type"


def _decoded_size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4
