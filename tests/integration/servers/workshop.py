"""An MCP server as others write them, with the official library: over standard input and output, or as an app for HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel


class Weight(BaseModel):
    kilograms: float


def workshop(journal: Path | None = None) -> MCPServer:
    """`journal`: a file to which `note` adds a line for each call, with what it was sent along."""
    server = MCPServer("workshop", instructions="A bench with a few tools.")

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True))
    async def add(first: int, second: int, context: Context) -> str:
        """Add two numbers."""
        await context.report_progress(1, 2, "half of it")
        return str(first + second)

    @server.tool(annotations=types.ToolAnnotations(destructive_hint=False))
    async def note(text: str, context: Context, seconds: float = 0) -> str:
        """Write a line into the journal."""
        meta: dict[str, Any] = dict(context.request_context.meta or {})
        assert journal is not None
        with journal.open("a") as file:
            file.write(f"{text} {meta.get('folkmoot/idempotencyKey')}\n")
        await asyncio.sleep(seconds)
        return "noted"

    @server.tool()
    def weigh(thing: str) -> Weight:
        """Weigh a thing."""
        return Weight(kilograms=len(thing) / 2)

    @server.tool()
    def only_structured() -> types.CallToolResult:
        """Give structure and no text."""
        return types.CallToolResult(content=[], structured_content={"rows": [1, 2], "none": None})

    @server.tool()
    def nothing_needed() -> str:
        """Take no arguments."""
        return ""

    @server.tool()
    def pictures() -> types.CallToolResult:
        """Give what is no text."""
        return types.CallToolResult(
            content=[
                types.TextContent(text="see:"),
                types.ImageContent(data="AAAAAAAA", mime_type="image/png"),
                types.ResourceLink(name="plan", uri="file:///plan.pdf", mime_type="application/pdf", size=12),
                types.EmbeddedResource(
                    resource=types.TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="inside")
                ),
                types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///b.bin", blob="AAAA")),
            ]
        )

    @server.tool()
    def break_down() -> str:
        """Fail."""
        raise ToolError("the blade is blunt")

    @server.tool()
    async def ask(context: Context) -> str:
        """Ask the person for a weight."""
        answer = await context.elicit("How heavy?", Weight)
        return f"{answer.action}"

    @server.tool()
    def surroundings() -> list[str]:
        """Name the environment's variables."""
        return sorted(os.environ)

    @server.tool()
    def credentials(context: Context) -> str:
        """Show the header that came with the call."""
        return f"came with {(context.headers or {}).get('authorization')}"

    @server.tool()
    def much(megabytes: int) -> str:
        """Give a lot of text."""
        return "much of it" * (megabytes * 100_000)

    return server


if __name__ == "__main__":
    workshop(Path(sys.argv[1]) if len(sys.argv) > 1 else None).run("stdio")
