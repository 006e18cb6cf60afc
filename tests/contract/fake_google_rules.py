"""What the Gemini API refuses, in its words: the rules that the fake server holds requests to."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

Json = Any

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), "
    "colons (:), or dashes (-), with a maximum length of 64."
)
# Accepted in place of a signature for calls that another model made.
_STAND_INS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
# JSON Schema words that `parametersJsonSchema` takes.
_SCHEMA_WORDS = frozenset(
    [
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
        "minLength",
        "maxLength",
        "pattern",
        "default",
        "nullable",
        "minProperties",
        "maxProperties",
    ]
)


def fault_of(body: Json, model: str) -> str | None:
    """What the real one would refuse, in its words; null if it would take this."""
    if not body.get("contents"):
        return "* GenerateContentRequest.contents: contents is not specified"
    functions = functions_of(body)
    if "toolConfig" in body and not functions:
        return "Function calling config is set without function_declarations."
    if any(not tool for tool in body.get("tools", ())) or body.get("tools") == []:
        return (
            "* GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one initialized field"
        )
    if functions and body.get("generationConfig", {}).get("responseMimeType") == "application/json":
        return "Function calling with a response mime type: 'application/json' is unsupported"
    return _fault_of_functions(functions) or _fault_of_contents(body["contents"], model)


def _fault_of_functions(functions: list[Json]) -> str | None:
    for n, made in enumerate(functions):
        if not _NAME.fullmatch(made["name"]):
            return f"* GenerateContentRequest.tools[0].function_declarations[{n}].name: {_NAME_RULE}"
        schema = schema_of(made)
        if schema is not None:
            fault = _fault_of_schema(schema, f"tools[0].function_declarations[{n}].parameters_json_schema")
            if fault:
                return fault
        elif "$ref" in json.dumps(made.get("parameters", {})):
            return f"Invalid JSON payload received. Unknown name \"$ref\" at 'tools[0].function_declarations[{n}].parameters': Cannot find field."
    names = [made["name"] for made in functions]
    repeated = [name for name in names if names.count(name) > 1]
    return f"Duplicate function declaration found: {repeated[0]}" if repeated else None


def _fault_of_schema(schema: Json, place: str, *, is_top: bool = True) -> str | None:
    if not isinstance(schema, dict):
        return None
    if is_top and schema.get("type") != "object":
        return f"{place}: schema for a function's parameters must be of type OBJECT"
    unknown = schema.keys() - _SCHEMA_WORDS
    if unknown:
        return f"{place}: JSON schema keyword '{min(unknown)}' is not supported"
    if "$ref" in schema and schema.keys() - {"$ref", "$defs", "description", "title", "default"}:
        return f"{place}: $ref must not have siblings"
    below = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    below += [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("prefixItems", ()), schema.get("items")]
    below.append(schema.get("additionalProperties"))
    return next((fault for part in below if (fault := _fault_of_schema(part, place, is_top=False))), None)


def _fault_of_contents(contents: list[Json], model: str) -> str | None:
    before_calls: int | None = None
    for n, content in enumerate(contents):
        role, parts = content.get("role"), content.get("parts")
        if role not in ("user", "model"):
            return "Please use a valid role: user, model."
        if not parts or any(part.get("text") == "" and len(part) == 1 for part in parts):
            return f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty."
        calls = [part for part in parts if "functionCall" in part]
        results = [part for part in parts if "functionResponse" in part]
        if results and before_calls is None:
            return "Please ensure that function response turn comes immediately after a function call turn."
        if before_calls is not None and len(results) != before_calls:
            return (
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function "
                "call turn."
            )
        if calls and (n == 0 or contents[n - 1]["role"] != "user"):
            return "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        if any(not _NAME.fullmatch(part["functionCall"]["name"]) for part in calls):
            return f"* GenerateContentRequest.contents[{n}].parts[0].function_call.name: {_NAME_RULE}"
        before_calls = len(calls) if calls else None
        fault = _fault_of_signatures(n, parts, model)
        if fault:
            return fault
    if contents[-1]["role"] == "model":
        return "Please ensure that multiturn requests end with a user role or a function response."
    return None


def _fault_of_signatures(n: int, parts: list[Json], model: str) -> str | None:
    for part in parts:
        given = part.get("thoughtSignature")
        if given is None or given == signature_of(model):
            continue
        if base64.urlsafe_b64decode(given).decode("latin-1") not in (*_STAND_INS, f"signed-by-{model}"):
            return "Corrupted thought signature."
    first = next((part for part in parts if "functionCall" in part), None)
    if model.startswith("gemini-3") and first is not None and "thoughtSignature" not in first:
        name = first["functionCall"]["name"]
        return f"Function call is missing a thought_signature in functionCall parts. Function call `default_api:{name}`, position {n}."
    return None


def functions_of(body: Json) -> list[Json]:
    return [made for tool in body.get("tools", ()) for made in tool.get("functionDeclarations", ())]


def schema_of(made: Json) -> Json:
    """A field may be named as on the wire or as in the protocol's description."""
    return made.get("parametersJsonSchema", made.get("parameters_json_schema"))


def signature_of(model: str) -> str:
    return base64.b64encode(f"signed-by-{model}".encode()).decode()
