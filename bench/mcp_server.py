"""An MCP server over HTTP on loopback with one tool, `sign`, whose calls leave the same lines as the functions'.

`python -m bench.mcp_server LOG` prints its URL once it listens. Deliberately absent: anything but the official library's own server.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

IDEMPOTENCY_KEY = "folkmoot/idempotencyKey"


def _server(log: Path) -> MCPServer:
    server = MCPServer("notary", log_level="WARNING")

    @server.tool()
    async def sign(text: str, context: Context) -> str:
        """Sign a text."""
        call_id = (context.request_context.meta or {}).get(IDEMPOTENCY_KEY)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"{call_id} {time.time_ns()}\n")
        return "signed"

    return server


def main() -> None:
    app = _server(Path(sys.argv[1])).streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
