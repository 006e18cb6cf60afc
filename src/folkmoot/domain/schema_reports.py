"""Why a value does not fit a schema, in sentences that a model or a person can act on.

jsonschema_rs decides; this only finds the places, going down where the value fails, so that the work is bounded by what
is reported. (Its own lists of errors grow without bound on nested alternatives and large arrays.) Deliberately absent:
the value itself, which may be large or private.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from folkmoot.domain.json_text import canonical, named
from folkmoot.domain.schema_documents import REFERENCES, SchemaDocument, joined, step

Json = Any

MAX_SENTENCES = 8
MAX_LENGTH = 300
_MAX_LOOKED_AT = 5_000
_MAX_LOOKED_AT_FOR_REASONS = 30
_ALTERNATIVES_SHOWN = 3
_PLACE_LENGTH = 120

# Keywords that need no other schema to be decided.
_LEAVES = (
    "const",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
)


@dataclass(slots=True)
class _Effort:
    """How many parts may still be looked at. Inside the reasons of an alternative no further reasons are given."""

    left: int
    is_for_reasons: bool = False


class SchemaReport:
    """Explains failures against one schema, which must have been checked. Compiles its parts when first needed."""

    def __init__(self, document: SchemaDocument) -> None:
        self._document = document
        self._parts = jsonschema_rs.validator_map_for(document.schema, retriever=refuse)

    def sentences(self, value: Json) -> tuple[str, ...]:
        """At most MAX_SENTENCES of at most MAX_LENGTH characters, for a value that does not fit."""
        found: list[str] = []
        try:
            found.extend(islice(self._faults("", value, "", _Effort(_MAX_LOOKED_AT)), MAX_SENTENCES + 1))
        except RecursionError:
            # A chain of references at each of many levels; what was found on the way down is true.
            found.append("The value does not fit the schema in a deeply nested place.")
        cut = tuple(shortened(sentence, MAX_LENGTH) for sentence in dict.fromkeys(found[:MAX_SENTENCES]))
        return (*cut[: MAX_SENTENCES - 1], "There is more that does not fit.") if len(found) > MAX_SENTENCES else cut

    def _fits(self, pointer: str, value: Json) -> bool:
        part = self._parts.get(f"#{pointer}")
        return part is None or part.is_valid(value)

    def _faults(self, pointer: str, value: Json, at: str, effort: _Effort) -> Iterator[str]:
        """Faults of a value that fails the schema at `pointer`; at least one."""
        node = self._document.places.get(pointer)
        if not isinstance(node, dict):
            yield f"{_place(at)} is not allowed; leave it out."
            return
        any_found = False
        for sentence in self._own_faults(pointer, node, value, at, effort):
            any_found = True
            yield sentence
        if not any_found:
            yield f"{_subject(at, value)} does not fit the schema{f' at {pointer}' if pointer else ''}."

    def _own_faults(self, pointer: str, node: dict[str, Json], value: Json, at: str, effort: _Effort) -> Iterator[str]:
        yield from _leaf_faults(node, value, at)
        for inner, part, inner_at in self._steps(pointer, node, value, at):
            effort.left -= 1
            if effort.left < 0:
                return
            if not self._fits(inner, part):
                yield from self._faults(inner, part, inner_at, effort)
        yield from self._alternatives(pointer, node, value, at, effort)

    def _steps(self, pointer: str, node: dict[str, Json], value: Json, at: str) -> Iterator[tuple[str, Json, str]]:
        """What must fit as well: (schema's pointer, part of the value, the part's place)."""
        for keyword in REFERENCES:
            target = self._document.target(node.get(keyword))
            if target is not None:
                yield target, value, at
        for index in range(len(node.get("allOf", ()))):
            yield joined(pointer, ["allOf", index]), value, at
        if "if" in node:
            branch = "then" if self._fits(step(pointer, "if"), value) else "else"
            if branch in node:
                yield step(pointer, branch), value, at
        if isinstance(value, dict):
            yield from self._property_steps(pointer, node, value, at)
        elif isinstance(value, list):
            yield from _item_steps(pointer, node, value, at)

    def _property_steps(
        self, pointer: str, node: dict[str, Json], value: dict[str, Json], at: str
    ) -> Iterator[tuple[str, Json, str]]:
        for name in node.get("dependentSchemas", ()):
            if name in value:
                yield joined(pointer, ["dependentSchemas", name]), value, at
        for name, part in value.items():
            is_named = name in node.get("properties", ())
            if is_named:
                yield joined(pointer, ["properties", name]), part, step(at, name)
            patterns = [pattern for pattern in node.get("patternProperties", ()) if _matches(pattern, name)]
            for pattern in patterns:
                yield joined(pointer, ["patternProperties", pattern]), part, step(at, name)
            if not is_named and not patterns and "additionalProperties" in node:
                yield step(pointer, "additionalProperties"), part, step(at, name)
            if "propertyNames" in node:
                yield step(pointer, "propertyNames"), name, f"{at} (the name '{shortened(name, 40)}')"

    def _alternatives(
        self, pointer: str, node: dict[str, Json], value: Json, at: str, effort: _Effort
    ) -> Iterator[str]:
        if "not" in node and self._fits(step(pointer, "not"), value):
            yield f"{_place(at)} is what the schema's 'not' excludes."
        for keyword in ("anyOf", "oneOf"):
            branches = [joined(pointer, [keyword, index]) for index in range(len(node.get(keyword, ())))]
            fitting = sum(self._fits(branch, value) for branch in branches)
            if branches and not fitting:
                yield self._none_fits(branches, value, at, effort)
            elif keyword == "oneOf" and fitting > 1:
                yield f"{_place(at)} fits {fitting} of the {len(branches)} alternatives; it must fit exactly one."

    def _none_fits(self, branches: list[str], value: Json, at: str, effort: _Effort) -> str:
        verdict = f"{_place(at)} fits none of the {len(branches)} alternatives"
        if effort.is_for_reasons:
            return f"{verdict}."
        inner = _Effort(_MAX_LOOKED_AT_FOR_REASONS, is_for_reasons=True)
        prefix = f"{_subject(at, value)} "
        first = (next(self._faults(branch, value, at, inner)) for branch in branches[:_ALTERNATIVES_SHOWN])
        reasons = dict.fromkeys(shortened(reason.removeprefix(prefix).rstrip("."), 90) for reason in first)
        more = "; …" if len(branches) > _ALTERNATIVES_SHOWN else ""
        return f"{verdict}: {'; '.join(reasons)}{more}."


def refuse(uri: str) -> NoReturn:
    """The retriever of every schema: nothing is fetched (F53)."""
    raise LookupError(f"'{shortened(uri, 100)}' lies outside the schema")


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _place(at: str) -> str:
    return f"The value at {shortened(at, _PLACE_LENGTH)}" if at else "The value"


def _subject(at: str, value: Json) -> str:
    return f"{_place(at)}, {named(value)},"


def _leaf_faults(node: dict[str, Json], value: Json, at: str) -> Iterator[str]:
    for keyword in _LEAVES:
        if keyword not in node:
            continue
        if keyword == "required" and isinstance(value, dict):
            yield from (f"{_place(at)} lacks '{shortened(name, 60)}'." for name in node[keyword] if name not in value)
            continue
        rule = jsonschema_rs.Draft202012Validator({keyword: node[keyword]}, mask=_subject(at, value))
        try:
            rule.validate(value)
        except jsonschema_rs.ValidationError as error:
            is_const = keyword == "const"
            yield f"{_subject(at, value)} is not {canonical(node[keyword])}." if is_const else f"{error.message}."


def _item_steps(pointer: str, node: dict[str, Json], value: list[Json], at: str) -> Iterator[tuple[str, Json, str]]:
    prefix = len(node.get("prefixItems", ()))
    for index, part in enumerate(value):
        if index < prefix:
            yield joined(pointer, ["prefixItems", index]), part, step(at, index)
        elif "items" in node:
            yield step(pointer, "items"), part, step(at, index)


def _matches(pattern: str, name: str) -> bool:
    """By the same engine as the check itself, whose patterns cannot run away."""
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}).is_valid(name)
