"""What MCP servers say is read so that nothing in it hides, and lines are cut without keeping what is too long (F53)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest

from folkmoot.domain.operations import McpDescriptor
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.mcp.lines import Lines, Oversized
from folkmoot.tools.mcp.listing import described, difference, discovered
from folkmoot.tools.mcp.parameters import parameters_of
from folkmoot.tools.mcp.texts import MAX_DESCRIPTION_BYTES, bounded, unveiled


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with\ttabs\nand lines", "plain, with\ttabs\nand lines"),
        ("Größe 数 🙂", "Größe 数 🙂"),
        ("a\x00b\x1b[31m", "a\u2400b\\u001b[31m"),
        ("\u202egnp.exe\u200b", "\\u202egnp.exe\\u200b"),
        ("\U000e0041\U000e0042", "\\U000e0041\\U000e0042"),
        ("\ud83d", "\\ud83d"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    """F53: control characters and characters without a shape are seen by whoever reads a description."""
    assert unveiled(text) == shown


def test_long_descriptions_are_cut_visibly() -> None:
    """F53: 1 MB of description is at most 16 KB, and says so; cutting splits no character."""
    for text in ("d" * 1_000_000, "数" * 300_000, "\u200b" * 16_000):
        cut = bounded(text)
        assert len(cut.encode()) <= MAX_DESCRIPTION_BYTES
        assert cut.startswith(unveiled(text[:500])) and "[cut: the description has " in cut[-70:]
    assert bounded("short") == "short"


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {
                    "pair": {"items": [{"type": "string"}], "additionalItems": False},
                    "dependencies": {"type": "array", "items": {"type": "string"}},
                    "default": {"description": "hid\u200bden", "default": "\u200b"},
                },
                "dependencies": {"pair": ["default"], "default": {"required": ["pair"]}},
            },
            {
                "type": "object",
                "properties": {
                    "pair": {"prefixItems": [{"type": "string"}], "items": False},
                    "dependencies": {"type": "array", "items": {"type": "string"}},
                    "default": {"description": "hid\\u200bden", "default": "\u200b"},
                },
                "dependentRequired": {"pair": ["default"]},
                "dependentSchemas": {"default": {"required": ["pair"]}},
            },
        ),
    ],
)
def test_schemas_are_kept_in_the_words_of_2020_12(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    assert parameters_of(schema) == kept


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": {"a": {"$ref": "https://elsewhere/x"}}}, "fetched from nowhere"),
        ({"type": "array"}, "must be 'object'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "draft 2020-12"),
        ({"properties": {"a": {"type": "strong"}}}, "no type"),
        ({"properties": {"a": {"pattern": "("}}}, "pattern"),
    ],
)
def test_schemas_that_cannot_be_used_are_refused_with_a_reason(schema: dict[str, Any], reason: str) -> None:
    said = parameters_of(schema)
    assert isinstance(said, str) and reason in said


def test_bad_tools_are_refused_by_name() -> None:
    """F53: look-alike names, one name twice, schemas that lead away: all named at once."""
    tools = [
        _tool("alike"),
        _tool("\u0430dd"),
        _tool("alike"),
        _tool("far", input_schema={"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}),
    ]
    with pytest.raises(ConnectorFault) as caught:
        discovered(tools)
    for part in ("'\u0430dd'", "'alike'", "'far'"):
        assert part in str(caught.value)
    with pytest.raises(ConnectorFault, match=r"And 3 more\.$"):
        discovered([_tool(f"{number}\u0430") for number in range(8)])


def test_hints_are_the_cautious_ones_where_nothing_is_said() -> None:
    silent = described(_tool("touch"))
    assert (silent.read_only_hint, silent.destructive_hint, silent.idempotent_hint) == (False, True, False)
    said = described(_tool("look", annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False)))
    assert (said.read_only_hint, said.destructive_hint, said.idempotent_hint) == (True, False, False)


def test_every_change_of_a_tool_is_seen() -> None:
    """F32: a new description, schema or annotation is not what was approved; the order of keys is."""
    tool = _tool(
        "touch", description="reads", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}}
    )
    pinned = described(tool)
    reordered = {"properties": {"a": {"type": "integer"}}, "type": "object"}
    assert difference(pinned, _tool("touch", description="reads", input_schema=reordered)) is None
    changes: list[tuple[McpDescriptor, str]] = [
        (replace(pinned, description="deletes"), "its description"),
        (replace(pinned, parameters={"type": "object", "properties": {}}), "its schema of arguments"),
        (replace(pinned, read_only_hint=True), "its annotations"),
    ]
    for then, part in changes:
        assert part in (difference(then, tool) or "")
    assert difference(pinned, None) == "is no longer offered"


def test_lines_are_cut_wherever_the_pieces_end() -> None:
    stream = b'{"a":1}\n\n' + b"x" * 30 + b"\nlast"
    for size in (1, 2, 7, 1_000):
        lines = Lines(100)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert [line for piece in pieces for line in lines.feed(piece)] == [b'{"a":1}', b"", b"x" * 30]


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"t":"%s"}}', 7),
        (b'{"jsonrpc": "2.0", "id": 7, "result": {"t": "%s"}}', 7),
        (b'{"result":{"t":"%s"},"jsonrpc":"2.0","id":12}', 12),
        (b'{"result":{"t":"%s"},"id":12,"jsonrpc":"2.0"}', 12),
        (b'{"result":{"id":5,"t":"%s"}}', None),
    ],
)
def test_a_line_that_is_too_long_is_dropped_and_its_request_known(line: bytes, request_id: int | None) -> None:
    """F52: what is kept of it are its ends; the lines after it are read."""
    whole = line % (b"y" * 5_000)
    lines = Lines(1_000)
    stream = whole + b"\nnext\n"
    found = [item for at in range(0, len(stream), 300) for item in lines.feed(stream[at : at + 300])]
    assert found == [Oversized(len(whole), request_id), b"next"]


def _tool(name: str, **more: Any) -> types.Tool:
    return types.Tool(**{"name": name, "input_schema": {"type": "object"}, **more})
