"""Schemas of a document as JSON Schema (draft 2020-12), for what a model sends.

References stay references, to `$defs` of the operation, so that recursion stays finite. What only a server sets (`readOnly`)
is gone; examples, titles and extensions too. Deliberately absent: schemas of answers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonschema_rs

from folkmoot.domain.schema_reports import refuse
from folkmoot.tools.openapi.references import References, Unsupported, has_unseen, shown, tokens_of

Json = Any
Schema = dict[str, Json]

MAX_DEFS = 500
MAX_DESCRIPTION = 1_000
MAX_PATTERN = 500
MAX_NAME = 200
_AS_THEY_ARE = [
    "const",
    "enum",
    "default",
    "format",
    "multipleOf",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "minContains",
    "maxContains",
    "contentEncoding",
    "contentMediaType",
]
_SINGLE = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
]
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


class Schemas:
    """The schemas of one operation. `is_old`: the document is 3.0, which has its own dialect. `defs` is whole once it is settled."""

    def __init__(self, references: References, *, is_old: bool, with_descriptions: bool = True) -> None:
        self._references = references
        self._is_old = is_old
        self._with_descriptions = with_descriptions
        self._names: dict[tuple[str, ...], str] = {}
        self._waiting: list[tuple[str, str]] = []
        self.defs: dict[str, Schema | bool] = {}

    def converted(self, schema: Json) -> Schema | bool:
        """The schema in draft 2020-12. Raises Unsupported for what is none, or leads out of the document."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise Unsupported("one of its schemas is no object")
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return self._plain(schema)
        pointer = {"$ref": f"#/$defs/{self._named(reference)}"}
        # In 3.0 what stands beside a $ref is ignored.
        return pointer if self._is_old else {**self._plain(schema), **pointer}

    def _named(self, reference: str) -> str:
        tokens = tokens_of(reference)
        if tokens in self._names:
            return self._names[tokens]
        if len(self._names) >= MAX_DEFS:
            raise Unsupported(f"it needs more than {MAX_DEFS} schemas")
        base = "".join(
            sign if (sign.isascii() and sign.isalnum()) or sign in "_-" else "_" for sign in (tokens or ("root",))[-1]
        )
        name, number = base[:60] or "schema", 2
        while name in self.defs:
            name, number = f"{base[:60]}_{number}", number + 1
        self._names[tokens] = name
        self.defs[name] = True  # taken, until it is settled
        self._waiting.append((name, reference))
        return name

    def settle(self) -> None:
        """Convert what references lead to, and what those lead to; one after the other, as a chain of them may be long."""
        while self._waiting:
            name, reference = self._waiting.pop()
            self.defs[name] = self.converted(self._references.at(reference))

    def _plain(self, schema: Schema) -> Schema:
        made: Schema = {keyword: schema[keyword] for keyword in _AS_THEY_ARE if keyword in schema}
        if "type" in schema:
            made["type"] = schema["type"]
        self._describe(schema, made)
        if _is_usable(schema.get("pattern")):
            made["pattern"] = schema["pattern"]
        for keyword in _SINGLE:
            if keyword in schema and not (keyword == "items" and isinstance(schema[keyword], list)):
                made[keyword] = self.converted(schema[keyword])
        for keyword in _LISTS:
            if isinstance(schema.get(keyword), list) and schema[keyword]:
                made[keyword] = [self.converted(inner) for inner in schema[keyword]]
        for keyword in _MAPS:
            if isinstance(schema.get(keyword), dict):
                made[keyword] = {_name(name): self.converted(inner) for name, inner in schema[keyword].items()}
        self._require(schema, made)
        if isinstance(schema.get("dependentRequired"), dict):
            made["dependentRequired"] = schema["dependentRequired"]
        return self._from_3_0(schema, made) if self._is_old else made

    def _describe(self, schema: Schema, made: Schema) -> None:
        if self._with_descriptions and isinstance(schema.get("description"), str):
            text = shown(schema["description"], MAX_DESCRIPTION)
            if text:
                made["description"] = text

    def _require(self, schema: Schema, made: Schema) -> None:
        """`required` without what is readOnly, whose properties go."""
        properties = schema.get("properties")
        hidden = {
            name
            for name, inner in (properties.items() if isinstance(properties, dict) else ())
            if self.is_read_only(inner)
        }
        for name in hidden:
            made["properties"].pop(name, None)
        required = schema.get("required")
        if isinstance(required, list):
            kept = (
                [name for name in dict.fromkeys(required) if name not in hidden] if _are_names(required) else required
            )
            if kept:
                made["required"] = kept

    def is_read_only(self, schema: Json) -> bool:
        """Whether only the server sets the property, directly or through its reference."""
        if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            if not self._is_old and schema.get("readOnly") is True:
                return True
            schema = self._references.resolved(schema, "a schema")
        return isinstance(schema, dict) and schema.get("readOnly") is True

    def _from_3_0(self, schema: Schema, made: Schema) -> Schema:
        for exclusive, bound in _BOUNDS:
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
        if schema.get("nullable") is not True:
            return made
        if isinstance(made.get("enum"), list) and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
            inner = {keyword: made.pop(keyword) for keyword in ("allOf", "anyOf", "oneOf", "not") if keyword in made}
            return {**made, "anyOf": [inner, {"type": "null"}]} if inner else made
        if any(keyword in made for keyword in ("allOf", "anyOf", "oneOf", "not", "enum")):
            outer: Schema = {keyword: made.pop(keyword) for keyword in ("description", "default") if keyword in made}
            return {**outer, "anyOf": [made, {"type": "null"}]}
        return made


def _name(name: Json) -> str:
    text = str(name)
    if len(text) > MAX_NAME or has_unseen(text):
        raise Unsupported(f"a property '{shown(text, 40)}' has a name that is too long or holds characters nobody sees")
    return text


def _are_names(values: list[Json]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_usable(pattern: Json) -> bool:
    return isinstance(pattern, str) and len(pattern) <= MAX_PATTERN and _compiles(pattern)


@lru_cache(maxsize=1_024)
def _compiles(pattern: str) -> bool:
    """Whether our checks read the pattern; one that only other engines read would keep the whole operation out."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, retriever=refuse)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True
