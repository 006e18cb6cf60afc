"""The JSON Schema of a tool's arguments as it is kept: draft 2020-12, an object with properties, and nothing in it hides.

Deliberately absent: mending. What older drafts say in other words is put into the words of 2020-12; the rest is checked as it is.
"""

from __future__ import annotations

import re
from typing import Any

from folkmoot.domain.schemas import check_schema
from folkmoot.tools.mcp.texts import unveiled

Json = Any

_KNOWN = re.compile(r"https?://json-schema\.org/(?:draft-0[67]|draft/2019-09|draft/2020-12)/schema#?")
_NOTES = frozenset(("description", "title", "$comment"))
_VALUES = frozenset(("const", "enum", "default", "examples", "required"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))


def parameters_of(schema: Json) -> dict[str, Json] | str:
    """The schema as it is kept, with `type` and `properties` always there; or a sentence that says why it cannot be used."""
    try:
        taken = _taken(schema)
    except RecursionError:
        return "It is nested too deeply; let it be flatter."
    if not isinstance(taken, dict):
        return "It is no object."
    dialect = taken.get("$schema")
    if isinstance(dialect, str) and _KNOWN.fullmatch(dialect):
        del taken["$schema"]
    parameters = {"type": "object", "properties": {}, **taken}
    for fault in check_schema(parameters, ""):
        return str(fault)
    if parameters["type"] != "object" or not isinstance(parameters["properties"], dict):
        return "Its 'type' must be 'object', since arguments have names."
    return parameters


def _taken(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_taken(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return _renewed({key: _part(key, value) for key, value in schema.items()})


def _part(key: str, value: Json) -> Json:
    """What a keyword says. A name of a property may be that of a keyword, so both are told apart."""
    if key in _NAMED and isinstance(value, dict):
        return {name: _taken(inner) for name, inner in value.items()}
    if key == "dependencies" and isinstance(value, dict):
        return {name: inner if isinstance(inner, list) else _taken(inner) for name, inner in value.items()}
    if key in _NOTES and isinstance(value, str):
        return unveiled(value)
    return value if key in _VALUES else _taken(value)


def _renewed(schema: dict[str, Json]) -> dict[str, Json]:
    """Tuples and dependencies, which drafts before 2020-12 said in other words."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    dependencies = schema.get("dependencies")
    if isinstance(dependencies, dict):
        del schema["dependencies"]
        names = {name: value for name, value in dependencies.items() if isinstance(value, list)}
        schemas = {name: value for name, value in dependencies.items() if name not in names}
        schema.update(
            {"dependentRequired": names} if names else {}, **({"dependentSchemas": schemas} if schemas else {})
        )
    return schema
