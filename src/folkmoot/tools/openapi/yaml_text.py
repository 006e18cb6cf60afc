"""YAML text as plain JSON values by the core schema of YAML 1.2: `no`, `12:30` and dates are text, keys always are.

An alias counts as often as it is used. Deliberately absent: tags, merge keys, and lines of faults (a connector's document is
another's, not a file to be corrected by whoever reads).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from folkmoot.domain.json_text import Unreadable
from folkmoot.domain.yaml_scalars import plain_scalar

Json = Any

_TAGS = (None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
# The parser of libyaml is ten times as fast; not every build of PyYAML has it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, *, max_depth: int, max_values: int) -> Json:
    """The one document of the text. Raises Unreadable with a sentence."""
    try:
        return _Reading(yaml.parse(text, Loader=_LOADER), max_depth, max_values).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" at line {mark.line + 1}" if mark else ""
        raise Unreadable(
            f"It is neither JSON nor YAML: {(error.problem or 'it cannot be read')[:200]}{line}."
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise Unreadable(
            "It is neither JSON nor YAML: it holds a character or nesting that YAML does not allow."
        ) from None


@dataclass(slots=True)
class _Kept:
    """What an anchor names: a value, and of how many values it is made."""

    value: Json
    count: int
    height: int


@dataclass(slots=True)
class _Reading:
    events: Iterator[Any]
    max_depth: int
    values_left: int
    anchors: dict[str, _Kept] = field(default_factory=dict)

    def read(self) -> Json:
        value: Json = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise Unreadable("It holds several YAML documents; give one.")
                value = self._node(next(self.events), depth=0).value
        return value

    def _node(self, event: Any, *, depth: int) -> _Kept:
        if isinstance(event, yaml.AliasEvent):
            return self._again(str(event.anchor), depth=depth)
        self._spend(1)
        if depth > self.max_depth:
            raise Unreadable(f"It is nested deeper than {self.max_depth} levels; make it flatter.")
        if event.tag not in _TAGS:
            raise Unreadable(f"It holds the tag '{event.tag[:60]}', which is not read; write the value without it.")
        if isinstance(event, yaml.MappingStartEvent):
            kept = self._mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            kept = self._sequence(depth)
        else:
            kept = _Kept(_scalar(event), 1, 0)
        if event.anchor is not None:
            self.anchors[event.anchor] = kept
        return kept

    def _again(self, anchor: str, *, depth: int) -> _Kept:
        kept = self.anchors.get(anchor)
        if kept is None:
            raise Unreadable(f"Its alias '*{anchor[:60]}' has no anchor before it, or contains itself; write it out.")
        self._spend(kept.count)
        if depth + kept.height > self.max_depth:
            raise Unreadable(f"It is nested deeper than {self.max_depth} levels; make it flatter.")
        return kept

    def _mapping(self, depth: int) -> _Kept:
        made: dict[str, Json] = {}
        count, height = 1, 0
        while not isinstance(key := next(self.events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise Unreadable("A field's name in it is a list, a mapping or an alias; write a word.")
            name = str(key.value)
            if name == "<<" and key.implicit[0]:
                raise Unreadable("It holds a merge key ('<<'), which is not read; write the fields out.")
            if name in made:
                raise Unreadable(f"The field '{name[:80]}' is there twice (line {_line(key)}); leave one out.")
            inner = self._node(next(self.events), depth=depth + 1)
            made[name] = inner.value
            count, height = count + inner.count, max(height, inner.height + 1)
        return _Kept(made, count, height)

    def _sequence(self, depth: int) -> _Kept:
        made: list[Json] = []
        count, height = 1, 0
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            inner = self._node(event, depth=depth + 1)
            made.append(inner.value)
            count, height = count + inner.count, max(height, inner.height + 1)
        return _Kept(made, count, height)

    def _spend(self, count: int) -> None:
        self.values_left -= count
        if self.values_left < 0:
            raise Unreadable("It has too many values, aliases counted each time; split it into smaller documents.")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _scalar(event: Any) -> Json:
    text = str(event.value)
    return plain_scalar(text) if event.implicit[0] and event.tag != "!" else text
