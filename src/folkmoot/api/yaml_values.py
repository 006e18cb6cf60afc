"""YAML as plain JSON values, with the line of each: the core schema of YAML 1.2, bounded in size, depth and aliases.

`no`, `on`, `12:30` and `2026-10-26` are text; only true, false, null and numbers are more than that. Deliberately absent: tags,
merge keys and any object but mappings, lists and scalars.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from folkmoot.domain.schema_documents import step
from folkmoot.domain.yaml_scalars import plain_scalar
from folkmoot.kernel.errors import Fault

Json = Any

MAX_VALUES = 50_000
MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 100

_PLAIN = "plain"
_STRING = "tag:yaml.org,2002:str"
_ALLOWED_TAGS = (_PLAIN, _STRING, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Loader(yaml.SafeLoader):
    """Composes nodes; a scalar without quotes and tag is marked as such, and read by the core schema afterwards."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _STRING
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A value and the lines (from 1) of its parts by JSON pointer; '' is the whole. `faults` carry pointer and line."""

    value: Json
    lines: dict[str, int]
    faults: tuple[Fault, ...]


def read_documents(text: str, file: str) -> Iterator[YamlDocument]:
    """The documents of a YAML text, empty ones left out. What cannot be read at all ends it with a document of faults alone."""
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None and not (node.tag == _PLAIN and node.value in ("", "~", "null")):
                yield _Reading(file).read(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        yield _unreadable(file, mark.line + 1 if mark else None, _said(error))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        yield _unreadable(
            file, line, f"the character U+{_code(error.character):04X} is not allowed in YAML; take it out"
        )
    except RecursionError:
        yield _unreadable(file, None, f"it is nested deeper than {MAX_DEPTH} levels; make it flatter")


def _unreadable(file: str, line: int | None, reason: str) -> YamlDocument:
    return YamlDocument(None, {}, (Fault("", f"This is no YAML: {reason}.", file, line),))


def _said(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or error.context or "it cannot be read"
    if "'\\t'" in problem:
        return "a tab stands where YAML wants blanks; put spaces in its place"
    return f"{problem} ({error.context})" if error.context and error.context != problem else problem


def _code(character: Any) -> int:
    return ord(character) if isinstance(character, str) else int(character)


class _TooLarge(Exception):
    """The message is a sentence."""


@dataclass(slots=True)
class _Reading:
    """One document under way. What is left of its bounds counts aliases each time they are used."""

    file: str
    values_left: int = MAX_VALUES
    characters_left: int = MAX_CHARACTERS
    lines: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def read(self, node: yaml.Node) -> YamlDocument:
        line = node.start_mark.line + 1
        self.lines[""] = line
        try:
            value = self._value("", node, depth=0)
        except _TooLarge as error:
            return YamlDocument(None, self.lines, (Fault("", str(error), self.file, line),))
        return YamlDocument(value, self.lines, tuple(self.faults))

    def _value(self, pointer: str, node: yaml.Node, *, depth: int) -> Json:
        self.values_left -= 1
        if self.values_left < 0:
            raise _TooLarge(f"This has more than {MAX_VALUES:,} values, aliases counted each time; make it smaller.")
        if depth > MAX_DEPTH:
            raise _TooLarge(f"This is nested deeper than {MAX_DEPTH} levels, or contains itself; make it flatter.")
        if node.tag not in _ALLOWED_TAGS:
            self._fault(pointer, node, f"The tag '{node.tag[:60]}' is not read; write the value without it.")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(pointer, node, depth=depth)
        if isinstance(node, yaml.SequenceNode):
            return self._sequence(pointer, node, depth=depth)
        return self._scalar(node)

    def _mapping(self, pointer: str, node: yaml.MappingNode, *, depth: int) -> Json:
        made: dict[str, Json] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fault(pointer, key, "A field's name is a word; this one is a list or mapping.")
                continue
            name = key.value
            place = step(pointer, name)
            if name in made:
                other = self.lines[place]
                self._fault(
                    place, key, f"The field '{name[:80]}' is there twice (also at line {other}); leave one out."
                )
                continue
            self._spend(name)
            self.lines[place] = key.start_mark.line + 1
            made[name] = self._value(place, value, depth=depth + 1)
        return made

    def _sequence(self, pointer: str, node: yaml.SequenceNode, *, depth: int) -> Json:
        made = []
        for index, item in enumerate(node.value):
            place = step(pointer, index)
            self.lines[place] = item.start_mark.line + 1
            made.append(self._value(place, item, depth=depth + 1))
        return made

    def _scalar(self, node: yaml.Node) -> Json:
        text: str = node.value
        self._spend(text)
        if node.tag != _PLAIN:
            return text
        return plain_scalar(text)

    def _spend(self, text: str) -> None:
        self.characters_left -= len(text)
        if self.characters_left < 0:
            raise _TooLarge(
                f"This has more than {MAX_CHARACTERS:,} characters, aliases counted each time; make it smaller."
            )

    def _fault(self, pointer: str, node: yaml.Node, message: str) -> None:
        self.faults.append(Fault(pointer, message, self.file, node.start_mark.line + 1))
