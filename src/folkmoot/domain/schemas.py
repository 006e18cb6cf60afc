"""JSON Schemas (draft 2020-12) that others wrote: checked when they are saved, then held against values.

`format` is a note, as the draft has it, and no check. Deliberately absent: any fetch; a reference never leaves its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jsonschema_rs

from folkmoot.domain.json_text import (
    MAX_DEPTH,
    Unreadable,
    canonical,
    is_deeper,
    named,
    normal,
    parse_arguments,
    read_json,
    visible,
)
from folkmoot.domain.schema_documents import REFERENCES, SchemaDocument, Unbounded, joined, step
from folkmoot.domain.schema_reports import SchemaReport, refuse, shortened
from folkmoot.kernel.errors import BadDefinition, Fault

__all__ = ["Validator", "canonical", "check_schema", "compile_schema", "normal", "parse_arguments", "visible"]

Json = Any

MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMA_DEPTH = 64
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = "array, boolean, integer, null, number, object and string"
_MANY = 100  # from this weight on, the size of a value matters
_MAX_EFFORT = 2_000_000  # schemas met, times parts of the value: about a second
_CACHED = 256


class Validator:
    """A schema made ready, for any number of values and threads."""

    def __init__(self, document: SchemaDocument, weight: int) -> None:
        self._document = document
        self._weight = weight
        self._compiled = jsonschema_rs.Draft202012Validator(document.schema, retriever=refuse)
        self._report: SchemaReport | None = None

    def faults(self, value: Json) -> tuple[str, ...]:
        """What does not fit, as a few short sentences without the value; () where all fits. Never raises for JSON values."""
        parts, is_flat = _measured(value)
        if not is_flat:
            return (f"The value is nested deeper than {MAX_DEPTH} levels; make it flatter.",)
        if self._weight > _MANY and self._weight * parts > _MAX_EFFORT:
            return ("The value is too large for a schema with so many alternatives; send a smaller one.",)
        try:
            return self._found(value)
        except UnicodeError:
            return self._found(normal(value))

    def _found(self, value: Json) -> tuple[str, ...]:
        is_valid: bool = self._compiled.is_valid(value)
        if is_valid:
            return ()
        if self._report is None:
            self._report = SchemaReport(self._document)
        return self._report.sentences(value)


def check_schema(schema: str | Json, pointer: str) -> tuple[Fault, ...]:
    """What keeps the schema from being used; () if nothing does. `schema`: JSON text, or the value itself (as YAML gives it).

    For text every fault has `pointer` and names the place inside in its sentence; for a value the pointers lead further in.
    """
    try:
        value = _read(schema)
    except Unreadable as error:
        return (Fault(pointer, f"The schema was not read. {error}"),)
    return tuple(_fault(pointer, at, message, is_text=isinstance(schema, str)) for at, message in _problems(value))


@lru_cache(maxsize=_CACHED)
def compile_schema(text: str) -> Validator:
    """The validator of a schema's JSON text; raises BadDefinition with what `check_schema` finds. Kept, up to 256 of them."""
    faults = check_schema(text, "")
    if faults:
        raise BadDefinition(f"The JSON Schema cannot be used: {faults[0].message}", faults)
    document = SchemaDocument.of(_read(text))
    known: dict[str, int] = {}
    return Validator(document, max(document.weigh(place, known) for place in document.places))


def _read(schema: str | Json) -> Json:
    """The schema as a value of its own, within the bounds."""
    if isinstance(schema, str):
        text = schema
    else:
        try:
            text = canonical(schema)
        except (RecursionError, ValueError, TypeError):
            raise Unreadable("It holds what JSON does not have, or is nested too deeply.") from None
    size = len(visible(text).encode())
    if size > MAX_SCHEMA_BYTES:
        raise Unreadable(f"It has {size:,} bytes; at most {MAX_SCHEMA_BYTES:,} are allowed. Make it shorter.")
    if is_deeper(text, than=MAX_SCHEMA_DEPTH):
        raise Unreadable(
            f"It is nested deeper than {MAX_SCHEMA_DEPTH} levels. Move inner parts to '$defs' and refer to them."
        )
    return read_json(text)


def _problems(value: Json) -> Iterator[tuple[str, str]]:
    """Pairs of the place inside the schema and a sentence; what comes later is looked at only if nothing came before."""
    if not isinstance(value, dict | bool):
        yield "", f"It is {named(value)}; a JSON Schema is an object, or true or false."
        return
    dialect = value.get("$schema") if isinstance(value, dict) else None
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") != _DIALECT):
        yield "/$schema", f"Only draft 2020-12 is read; set '$schema' to '{_DIALECT}', or leave it out."
        return
    document = SchemaDocument.of(value)
    outward = list(_references_out(document))
    yield from outward
    if not outward:
        yield from _unfit(document)


def _references_out(document: SchemaDocument) -> Iterator[tuple[str, str]]:
    for place, node in document.places.items():
        if not isinstance(node, dict):
            continue
        if place and "$id" in node:
            yield step(place, "$id"), "Only the whole schema may have an '$id'; leave this one out."
        for keyword in REFERENCES:
            reference = node.get(keyword)
            if isinstance(reference, str) and not reference.startswith("#"):
                shown = shortened(reference, 100)
                yield (
                    step(place, keyword),
                    f"'{shown}' is fetched from nowhere; put what it means under '$defs' and refer to it as '#/$defs/NAME'.",
                )


def _unfit(document: SchemaDocument) -> Iterator[tuple[str, str]]:
    try:
        jsonschema_rs.Draft202012Validator(document.schema, retriever=refuse)
    except jsonschema_rs.ValidationError as error:
        yield joined("", error.instance_path), _explained(error)
        return
    except (ValueError, RecursionError) as error:
        yield "", f"It cannot be used: {shortened(str(error), 200)}."
        return
    known: dict[str, int] = {}
    for place in document.places:
        try:
            document.weigh(place, known)
        except Unbounded as error:
            yield place, str(error)
            return


def _explained(error: jsonschema_rs.ValidationError) -> str:
    path = error.instance_path
    if not path:
        return f"A reference leads nowhere: {shortened(error.message, 200)}. Correct the '$ref'."
    if path[-1] == "type" or (len(path) > 1 and path[-2] == "type"):
        return f"This is no type: {shortened(error.message.split(' is not ')[0], 60)}. The types are {_TYPES}."
    if path[-1] == "pattern" or (len(path) > 1 and path[-2] == "patternProperties"):
        return f"The pattern is no regular expression, or too large: {shortened(error.message, 150)}."
    return f"This does not fit draft 2020-12: {shortened(error.message, 200)}."


def _fault(pointer: str, at: str, message: str, *, is_text: bool) -> Fault:
    if not is_text:
        return Fault(pointer + at, message)
    return Fault(
        pointer, f"At {shortened(at, 150)} of the schema: {message}" if at else f"The schema is wrong. {message}"
    )


def _measured(value: Json) -> tuple[int, bool]:
    """How many values a JSON value is made of, and whether it keeps to MAX_DEPTH: beyond, native code overflows its stack."""
    count = 0
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        count += 1
        if depth > MAX_DEPTH:
            return count, False
        if isinstance(inner, dict):
            waiting += [(part, depth + 1) for part in inner.values()]
        elif isinstance(inner, list | tuple):
            waiting += [(part, depth + 1) for part in inner]
    return count, True
