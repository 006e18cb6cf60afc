"""Schemas of functions as providers take them: where a protocol takes less than a schema says, it is told more loosely, since the engine
validates arguments by the whole schema anyway.

Deliberately absent: that validation, and schemas of replies (`shim`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import reduce
from typing import Any

Json = Any
Transform = Callable[[Json], Json]

_BRANCHES = ("anyOf", "oneOf", "allOf")
_NOT_ON_TOP = frozenset((*_BRANCHES, "enum", "const", "not", "if", "then", "else", "$ref", "dependentSchemas"))
_KEPT = 1024
# What `parametersJsonSchema` of the Gemini API takes.
_GEMINI_WORDS = frozenset(
    (
        *("$defs", "$ref", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems"),
        *("minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"),
    )
)  # fmt: skip
_BESIDE_REF = frozenset(("$ref", "$defs", "description"))


class FittedSchemas:
    """Schemas made fit by one transform. A schema is found by identity, since it stays the same object from call to call; it is
    held, so that its id is not given to another one."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._kept: OrderedDict[int, tuple[Json, Json]] = OrderedDict()

    def fitted(self, schema: Json) -> Json:
        """The schema as it is sent; read it, never change it."""
        known = self._kept.get(id(schema))
        if known is not None:
            self._kept.move_to_end(id(schema))
            return known[1]
        made = self._transform(schema)
        self._kept[id(schema)] = (schema, made)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return made


def as_object(schema: Json) -> Json:
    """The schema with `type: object` on top and no branches there, which OpenAI and Anthropic refuse."""
    if schema.get("type") == "object" and _NOT_ON_TOP.isdisjoint(schema):
        return schema
    flat = _flat(schema, schema, depth=0)
    return {**{word: value for word, value in flat.items() if word not in _NOT_ON_TOP}, "type": "object"}


def for_gemini(schema: Json) -> Json:
    """The schema in the words that the Gemini API takes; a function without parameters has an empty object."""
    return _in_gemini_words(as_object(schema))


def _flat(schema: Json, root: Json, *, depth: int) -> Json:
    """A schema of an object with its branches merged into it: what any of them allows."""
    if not isinstance(schema, dict) or depth > 8:
        return {}
    reference = schema.get("$ref")
    parts = [_flat(_target(reference, root), root, depth=depth + 1)] if isinstance(reference, str) else []
    own = {word: value for word, value in schema.items() if word not in _NOT_ON_TOP}
    parts += [_flat(part, root, depth=depth + 1) for part in schema.get("allOf", ())]
    for word in ("anyOf", "oneOf"):
        options = [_flat(option, root, depth=depth + 1) for option in schema.get(word, ())]
        if options:
            parts.append(reduce(_either, options))
    return reduce(_both, [*parts, own])


def _both(one: Json, other: Json) -> Json:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    # Each part may close itself to what the other one names.
    if one.get("additionalProperties") is False or other.get("additionalProperties") is False:
        merged.pop("additionalProperties")
    return merged


def _either(one: Json, other: Json) -> Json:
    properties = dict(one.get("properties", {}))
    for name, schema in other.get("properties", {}).items():
        known = properties.get(name, schema)
        properties[name] = schema if known == schema else {"anyOf": [known, schema]}
    required = [name for name in one.get("required", ()) if name in other.get("required", ())]
    merged: Json = {"properties": properties} if properties else {}
    return {**merged, **({"required": required} if required else {})}


def _target(reference: str, root: Json) -> Json:
    place = root
    if not reference.startswith("#"):
        return {}
    for step in reference[1:].split("/")[1:]:
        place = place.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(place, dict) else {}
    return place


def _in_gemini_words(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return {} if schema is True else schema
    if "allOf" in schema:
        schema = reduce(_both, [*schema["allOf"], {word: value for word, value in schema.items() if word != "allOf"}])
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    words = _BESIDE_REF if "$ref" in schema else _GEMINI_WORDS
    return {word: _value(word, value) for word, value in schema.items() if word in words}


def _value(word: str, value: Json) -> Json:
    if word in ("properties", "$defs"):
        return {name: _in_gemini_words(part) for name, part in value.items() if part is not False}
    if word in ("anyOf", "oneOf", "prefixItems"):
        return [_in_gemini_words(part) for part in value if part is not False]
    if word in ("items", "additionalProperties"):
        return value if isinstance(value, bool) else _in_gemini_words(value)
    return value
