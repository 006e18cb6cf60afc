"""Schemas of functions as providers take them: an object on top, fewer words, and nothing refused that a model would rightly send."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest

from folkmoot.llm.function_schemas import FittedSchemas, as_object, for_gemini

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
PERSON = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^A"}}, "required": ["name"]}
CASES: list[tuple[dict[str, Any], list[Any]]] = [
    ({}, [{}, {"x": 1}]),
    (CITY, [{"city": "Oslo"}]),
    ({"anyOf": [CITY, {"$ref": "#/$defs/p"}], "$defs": {"p": PERSON}}, [{"city": "Oslo"}, {"name": "Ann"}]),
    ({"$ref": "#/$defs/p", "$defs": {"p": PERSON}}, [{"name": "Ann"}]),
    ({"allOf": [{**CITY, "additionalProperties": True}, PERSON]}, [{"city": "Oslo", "name": "Ann"}]),
    ({"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]}, [{"a": 1}, {"a": 2}]),
    (
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/p", "title": "P"}, "n": {"const": None}}, "$defs": {"p": PERSON}},
        [{"p": {"name": "Ann"}, "n": None}],
    ),
    (
        {"type": "object", "properties": {"t": {"allOf": [{"type": "string"}, {"minLength": 2}]}, "no": False, "any": True}},
        [{"t": "ab", "any": [1]}],
    ),
    ({"type": ["object", "null"], "properties": {"tree": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}, [{"tree": [[], [[]]]}]),
]  # fmt: skip


@pytest.mark.parametrize("transform", [as_object, for_gemini])
@pytest.mark.parametrize("schema, instances", CASES)
def test_what_the_function_takes_is_allowed_by_what_is_sent(
    transform: Any, schema: dict[str, Any], instances: list[Any]
) -> None:
    before = copy.deepcopy(schema)
    fitted = transform(schema)
    assert fitted["type"] == "object" and not {"anyOf", "oneOf", "allOf", "$ref"} & fitted.keys()
    for instance in instances:
        assert jsonschema_rs.is_valid(schema, instance) and jsonschema_rs.is_valid(fitted, instance)
        if '"properties"' in json.dumps(schema):  # else it names none
            assert instance.keys() <= fitted["properties"].keys(), "a parameter is not told to the model"
    assert schema == before


@pytest.mark.parametrize("transform", [as_object, for_gemini])
def test_what_the_function_does_not_take_is_refused_by_what_is_sent(transform: Any) -> None:
    assert not jsonschema_rs.is_valid(transform(CITY), {"city": 1})


def test_plain_schema_is_sent_as_it_is() -> None:
    assert as_object(CITY) is CITY


def test_schema_is_made_fit_once() -> None:
    made = []

    def transform(schema: Any) -> Any:
        made.append(schema)
        return dict(schema)

    fitted = FittedSchemas(transform)
    assert fitted.fitted(CITY) is fitted.fitted(CITY)
    assert fitted.fitted(PERSON) == PERSON
    assert made == [CITY, PERSON]
