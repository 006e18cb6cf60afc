"""What a server offers, read into descriptors: page by page, bounded, and refused by name where it cannot be used (B53, F53).

Hints are kept as the server's claims. Deliberately absent: guessing; two tools of one name are refused, not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict

import mcp_types as types
from mcp.client.session import ClientSession

from folkmoot.domain.operations import Discovered, McpDescriptor
from folkmoot.domain.schemas import canonical
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.mcp.parameters import parameters_of
from folkmoot.tools.mcp.texts import bounded, shortened

MAX_TOOLS = 2_000
_SHOWN_FAULTS = 5
# Letters of other alphabets look like these, and a name is what people tell tools apart by.
_NAME = re.compile(r"[A-Za-z0-9_.:/ -]{1,128}")


async def listed(session: ClientSession) -> list[types.Tool]:
    """Every tool of the server. Raises ConnectorFault beyond MAX_TOOLS, and where its pages do not end."""
    tools: list[types.Tool] = []
    async for page in _Pages(session):
        tools += page
        if len(tools) > MAX_TOOLS:
            raise ConnectorFault(
                f"The server offers more than {MAX_TOOLS:,} tools, which are more than are taken; let it offer fewer."
            )
    return tools


async def found(session: ClientSession, name: str) -> types.Tool | None:
    """One tool of the server as it is now, or None. Reads no further than it."""
    count = 0
    async for page in _Pages(session):
        for tool in page:
            if tool.name == name:
                return tool
        count += len(page)
        if count > MAX_TOOLS:
            break
    return None


class _Pages:
    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._cursor: str | None = None
        self._seen: set[str] = set()
        self._is_over = False

    def __aiter__(self) -> _Pages:
        return self

    async def __anext__(self) -> list[types.Tool]:
        if self._is_over:
            raise StopAsyncIteration
        page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=self._cursor))
        self._cursor = page.next_cursor
        self._is_over = self._cursor is None
        if self._cursor is not None:
            if self._cursor in self._seen or len(self._seen) > MAX_TOOLS:
                raise ConnectorFault(
                    "The server's list of tools does not end: it gives the same pages again and again."
                )
            self._seen.add(self._cursor)
        return page.tools


def discovered(tools: Sequence[types.Tool]) -> list[Discovered]:
    """The tools as operations, in the server's order. Raises ConnectorFault that names the first tools that cannot be used."""
    faults: list[str] = []
    operations: dict[str, Discovered] = {}
    for tool in tools:
        if tool.name in operations:
            faults.append(f"Two tools are called '{tool.name}'; let each have a name of its own.")
            continue
        try:
            operations[tool.name] = Discovered(tool.name, described(tool))
        except ConnectorFault as fault:
            faults.append(str(fault))
    if faults:
        more = f" And {len(faults) - _SHOWN_FAULTS:,} more." if len(faults) > _SHOWN_FAULTS else ""
        raise ConnectorFault(" ".join(faults[:_SHOWN_FAULTS]) + more)
    return list(operations.values())


def described(tool: types.Tool) -> McpDescriptor:
    """A tool as it is kept. Raises ConnectorFault where its name or schema cannot be used."""
    if not _NAME.fullmatch(tool.name):
        raise ConnectorFault(
            f"The tool '{shortened(tool.name, 100)}' has a name that is not taken; it must be 1 to 128 characters, "
            "ASCII letters, digits, blanks or '_.:/-'."
        )
    parameters = parameters_of(tool.input_schema)
    if isinstance(parameters, str):
        raise ConnectorFault(f"The schema of the tool '{tool.name}' cannot be used: {parameters}")
    hints = tool.annotations or types.ToolAnnotations()
    return McpDescriptor(
        tool_name=tool.name,
        description=bounded(tool.description or tool.title or hints.title or ""),
        parameters=parameters,
        read_only_hint=bool(hints.read_only_hint),
        destructive_hint=hints.destructive_hint is not False,
        idempotent_hint=bool(hints.idempotent_hint),
    )


def difference(pinned: McpDescriptor, tool: types.Tool | None) -> str | None:
    """What changed since a descriptor was taken, as a clause after 'it'; None if nothing did."""
    if tool is None:
        return "is no longer offered"
    try:
        now = asdict(described(tool))
    except ConnectorFault:
        return "is now described in a way that cannot be used"
    then = asdict(pinned)
    changed = [key for key in then if canonical(then[key]) != canonical(now[key])]
    names = {"description": "description", "parameters": "schema of arguments"}
    parts = dict.fromkeys(names.get(key, "annotations") for key in changed)
    return f"has changed there: its {' and its '.join(parts)}" if parts else None
