"""Where the subschemas of a JSON Schema (draft 2020-12) stand, and where its references lead. Pointers are JSON pointers.

A document holds one schema whose references stay inside it. Deliberately absent: what a keyword means for a value
(`schema_reports` says it, jsonschema_rs decides it).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

Json = Any

MAX_CHAIN = 64  # references and combinations that may follow each other at one place
MAX_ALTERNATIVES = 1_000  # subschemas that may be held against one and the same value

_SINGLE = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_MAPS = ("$defs", "definitions", "patternProperties", "properties")
_LISTS = ("prefixItems",)
# These look at the very value that their schema looks at, not at a part of it.
_IN_PLACE_SINGLE = ("else", "if", "not", "then")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAPS = ("dependentSchemas",)
REFERENCES = ("$ref", "$dynamicRef")


class Unbounded(Exception):
    """Checking a value against the schema has no bound worth the name; the message is a sentence."""


def step(pointer: str, token: str | int) -> str:
    """The pointer one token further on."""
    return f"{pointer}/{str(token).replace('~', '~0').replace('/', '~1')}"


def joined(pointer: str, tokens: list[str | int]) -> str:
    for token in tokens:
        pointer = step(pointer, token)
    return pointer


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """A schema with its places. `anchors`: pointer by the name of an `$anchor` or `$dynamicAnchor`."""

    schema: Json
    places: dict[str, Json] = field(default_factory=dict)
    anchors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Json) -> SchemaDocument:
        """Walk the schema, places that only a reference makes a schema included. It must not nest deeper than the stack."""
        document = cls(schema)
        waiting = [""]
        while waiting:
            pointer = waiting.pop()
            node = document.at(pointer)
            if pointer in document.places or not isinstance(node, dict | bool):
                continue
            document.places[pointer] = node
            if isinstance(node, dict):
                document._name(pointer, node)
                waiting += _children(pointer, node, _SINGLE, _LISTS, _MAPS)
                waiting += _children(pointer, node, _IN_PLACE_SINGLE, _IN_PLACE_LISTS, _IN_PLACE_MAPS)
                waiting += [target for keyword in REFERENCES if (target := _plain(node.get(keyword))) is not None]
        return document

    def at(self, pointer: str) -> Json:
        """What stands at the pointer; null where nothing does."""
        node = self.schema
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict):
                node = node.get(key)
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                return None
        return node

    def target(self, reference: Json) -> str | None:
        """The pointer that a reference leads to; null where it leads out of the document or nowhere."""
        plain = _plain(reference)
        if plain is not None:
            return plain
        if isinstance(reference, str) and reference.startswith("#"):
            return self.anchors.get(unquote(reference[1:]))
        return None

    def in_place(self, pointer: str) -> Iterator[str]:
        """The pointers of the schemas that look at the same value as the one at `pointer`."""
        node = self.places.get(pointer)
        if not isinstance(node, dict):
            return
        for keyword in REFERENCES:
            target = self.target(node.get(keyword))
            if target is not None:
                yield target
        yield from _children(pointer, node, _IN_PLACE_SINGLE, _IN_PLACE_LISTS, _IN_PLACE_MAPS)

    def weigh(self, pointer: str, known: dict[str, int], trail: tuple[str, ...] = ()) -> int:
        """How many schemas one value meets at `pointer`, shared ones counted as often as they are met. Raises Unbounded."""
        if pointer in known:
            return known[pointer]
        if pointer in trail:
            raise Unbounded(
                "A '$ref' leads back to where it stands, so that a check would never end; "
                "let it pass through a property or an item, or take it out."
            )
        if len(trail) >= MAX_CHAIN:
            raise Unbounded(f"More than {MAX_CHAIN} references and combinations follow each other; join some of them.")
        weight = 1
        for inner in self.in_place(pointer):
            weight += self.weigh(inner, known, (*trail, pointer))
        if weight > MAX_ALTERNATIVES:
            raise Unbounded(f"One value meets more than {MAX_ALTERNATIVES:,} schemas; combine fewer.")
        known[pointer] = weight
        return weight

    def _name(self, pointer: str, node: dict[str, Json]) -> None:
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self.anchors.setdefault(node[keyword], pointer)


def _plain(reference: Json) -> str | None:
    """The pointer of a reference that is one: `#` or `#/…`."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    return unquote(reference[1:])


def _children(
    pointer: str, node: dict[str, Json], single: tuple[str, ...], lists: tuple[str, ...], maps: tuple[str, ...]
) -> Iterator[str]:
    for keyword in single:
        if isinstance(node.get(keyword), dict | bool):
            yield step(pointer, keyword)
    for keyword in lists:
        if isinstance(node.get(keyword), list):
            yield from (joined(pointer, [keyword, index]) for index in range(len(node[keyword])))
    for keyword in maps:
        if isinstance(node.get(keyword), dict):
            yield from (joined(pointer, [keyword, name]) for name in node[keyword])
