"""What a document's operations become: names, arguments, schemas; and why one is left out (F53)."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from folkmoot.domain.operations import OpenApiDescriptor
from folkmoot.domain.schemas import check_schema, compile_schema
from folkmoot.tools.openapi import Discovery, discover

Json = Any


def _document(operation: Json, *, path: str = "/a", method: str = "post", version: str = "3.1.0", **more: Json) -> Json:
    return {
        "openapi": version,
        "servers": [{"url": "https://a.test"}],
        "paths": {path: {method: {"operationId": "it", **operation}}},
        **more,
    }


def _one(document: Json) -> OpenApiDescriptor:
    found = discover(document)
    assert found.left_out == []
    (operation,) = found.operations
    assert isinstance(operation.descriptor, OpenApiDescriptor)
    assert check_schema(operation.descriptor.parameters, "") == ()
    return operation.descriptor


def _reason(document: Json) -> str:
    found = discover(document)
    assert found.operations == []
    ((_, reason),) = found.left_out
    return reason


def _body(schema: Json, media_type: str = "application/json", **more: Json) -> Json:
    return {"requestBody": {"content": {media_type: {"schema": schema, **more}}, "required": True}}


def _parameter(name: str, place: str = "query", **more: Json) -> Json:
    schema = {} if "content" in more else {"schema": {"type": "string"}}
    return {"name": name, "in": place, **schema, **more}


PET = {
    "type": "object",
    "required": ["id", "name", "made"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string", "nullable": True},
        "made": {"type": "string", "readOnly": True},
        "born": {"$ref": "#/components/schemas/Date"},
        "kids": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
    },
}
COMPONENTS = {"schemas": {"Pet": PET, "Date": {"type": "string", "format": "date", "example": "2026-01-01"}}}


def test_a_plain_body_becomes_arguments_field_by_field_and_recursion_stays_finite() -> None:
    descriptor = _one(
        _document(
            {"parameters": [_parameter("id", "path", required=True)], **_body({"$ref": "#/components/schemas/Pet"})},
            path="/pets/{id}",
            version="3.0.3",
            components=COMPONENTS,
        )
    )
    kid: Json = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": ["string", "null"]},
            "born": {"$ref": "#/$defs/Date"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/Pet"}},
        },
    }
    assert descriptor.parameters == {
        "type": "object",
        "properties": {"id__path": {"type": "string"}, **kid["properties"]},
        "required": ["id__path", "id", "name"],
        "additionalProperties": False,
        "$defs": {"Pet": kid, "Date": {"type": "string", "format": "date"}},
    }
    assert [(one.name, one.wire_name, one.place) for one in descriptor.arguments][:2] == [
        ("id__path", "id", "path"),
        ("id", "id", "field"),
    ]
    assert (descriptor.method, descriptor.path, descriptor.body_type) == ("POST", "/pets/{id}", "application/json")
    validator = compile_schema(json.dumps(descriptor.parameters))
    assert validator.faults({"id__path": "1", "id": 1, "name": None, "kids": [{"id": 2, "name": "b"}]}) == ()
    assert validator.faults({"id__path": "1", "id": 1, "name": None, "made": "x"}) != ()


OBJECT = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
BODIES: dict[str, tuple[Json, list[str]]] = {
    "a plain object": (OBJECT, ["a", "b"]),
    "joined objects": (
        {"allOf": [OBJECT, {"type": "object", "properties": {"c": {"type": "string"}}}]},
        ["a", "b", "c"],
    ),
    "joined objects that disagree": ({"allOf": [OBJECT, {"properties": {"a": {"type": "integer"}}}]}, ["body"]),
    "a choice": ({"oneOf": [OBJECT, {"type": "string"}]}, ["body"]),
    "free fields": ({**OBJECT, "additionalProperties": {"type": "string"}}, ["body"]),
    "free fields beside": ({**OBJECT, "additionalProperties": True}, ["body"]),
    "a bound on their number": ({**OBJECT, "minProperties": 1}, ["body"]),
    "an object or null": ({**OBJECT, "type": ["object", "null"]}, ["body"]),
    "a list": ({"type": "array", "items": OBJECT}, ["body"]),
    "anything": ({}, ["body"]),
}


@pytest.mark.parametrize(("schema", "names"), BODIES.values(), ids=BODIES.keys())
def test_a_body_that_is_no_plain_object_is_one_argument(schema: Json, names: list[str]) -> None:
    descriptor = _one(_document(_body(schema)))
    assert [one.name for one in descriptor.arguments] == names
    assert descriptor.is_body_required


def test_an_optional_body_may_be_left_out_but_not_half() -> None:
    operation = {"requestBody": {"content": {"application/json": {"schema": OBJECT}}}}
    descriptor = _one(_document(operation))
    validator = compile_schema(json.dumps(descriptor.parameters))
    assert not descriptor.is_body_required
    assert validator.faults({}) == ()
    assert validator.faults({"a": "x"}) == ()
    assert validator.faults({"b": 1}) != ()


def test_parameters_carry_where_and_how_they_are_sent() -> None:
    parameters = [
        _parameter("p", "path", required=True, style="matrix", explode=True),
        _parameter("plain", schema={"type": "array", "items": {"type": "string"}}),
        _parameter("piped", style="pipeDelimited"),
        _parameter("deep[er]", style="deepObject", explode=True),
        _parameter("open", allowReserved=True),
        _parameter("document", content={"application/json": {"schema": {"type": "object"}}}),
        _parameter("X-Flag", "header", description="Which flag."),
        _parameter("Authorization", "header", required=True),
        _parameter("idempotency-key", "header", required=True),
        _parameter("session", "cookie"),
        {"$ref": "#/components/parameters/Shared"},
    ]
    document = _document(
        {"parameters": parameters},
        path="/a/{p}",
        method="get",
        components={"parameters": {"Shared": _parameter("X-FLAG2", "header", required=True)}},
    )
    document["paths"]["/a/{p}"]["parameters"] = [_parameter("plain", required=True), _parameter("x-flag", "header")]
    descriptor = _one(document)
    sent = {
        one.name: (one.wire_name, one.place, one.style, one.explode, one.allow_reserved, one.media_type)
        for one in descriptor.arguments
    }
    assert sent == {
        "plain": ("plain", "query", "form", True, False, None),
        "X-Flag": ("X-Flag", "header", "simple", False, False, None),
        "p": ("p", "path", "matrix", True, False, None),
        "piped": ("piped", "query", "pipeDelimited", False, False, None),
        "deep_er_": ("deep[er]", "query", "deepObject", True, False, None),
        "open": ("open", "query", "form", True, True, None),
        "document": ("document", "query", "simple", False, False, "application/json"),
        "session": ("session", "cookie", "form", True, False, None),
        "X-FLAG2": ("X-FLAG2", "header", "simple", False, False, None),
    }
    assert descriptor.parameters["required"] == ["p", "X-FLAG2"]
    assert descriptor.parameters["properties"]["X-Flag"] == {"description": "Which flag.", "type": "string"}
    assert descriptor.body_type is None


def _loop(kind: str) -> Json:
    return {kind: {"A": {"$ref": f"#/components/{kind}/B"}, "B": {"$ref": f"#/components/{kind}/A"}}}


def _schema(schema: Json, **more: Json) -> Json:
    return _document(_body({"type": "object", "properties": {"a": schema}}), **more)


LEFT_OUT: dict[str, tuple[Json, str]] = {
    "a parameter in a circle": (
        _document({"parameters": [{"$ref": "#/components/parameters/A"}]}, components=_loop("parameters")),
        "round in a circle",
    ),
    "a body in a circle": (
        _document({"requestBody": {"$ref": "#/components/requestBodies/A"}}, components=_loop("requestBodies")),
        "round in a circle",
    ),
    "a schema that is itself": (
        _schema({"$ref": "#/components/schemas/A"}, components=_loop("schemas")),
        "back|circle",
    ),
    "a joined schema that is itself": (
        _schema(
            {"$ref": "#/components/schemas/A"},
            components={"schemas": {"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}},
        ),
        "never end",
    ),
    "a remote schema": (_schema({"$ref": "http://127.0.0.1/evil.json"}), "outside the document"),
    "a schema in a file": (_schema({"$ref": "pet.yaml#/Pet"}), "outside the document"),
    "an anchor": (_schema({"$ref": "#pet"}), "anchor"),
    "a reference to nowhere": (_schema({"$ref": "#/components/schemas/Gone"}), "leads nowhere"),
    "an unknown type": (_schema({"type": "int"}), "cannot be used.*no type"),
    "a schema that is a list": (_schema([]), "no object"),
    "a name nobody sees whole": (_schema({"properties": {"a\u202eb": {}}}), "nobody sees"),
    "an upload": (_document(_body({"type": "string", "format": "binary"}, "application/octet-stream")), "octet-stream"),
    "a file in a form": (
        _document(_body({"properties": {"file": {"type": "string", "format": "binary"}}}, "multipart/form-data")),
        "'file' is a file",
    ),
    "files in a form": (
        _document(
            _body({"properties": {"f": {"type": "array", "items": {"format": "binary"}}}}, "multipart/form-data")
        ),
        "'f' is a file",
    ),
    "XML": (_document(_body(OBJECT, "application/xml")), "application/xml"),
    "a form that is a list": (
        _document(_body({"type": "array"}, "application/x-www-form-urlencoded")),
        "no plain object",
    ),
    "a part with headers": (
        _document(_body(OBJECT, "multipart/form-data", encoding={"a": {"headers": {"X": {}}}})),
        "headers of its own",
    ),
    "an unknown place": (_document({"parameters": [_parameter("a", "formData")]}), "'formData'"),
    "a style of another place": (_document({"parameters": [_parameter("a", style="matrix")]}), "style 'matrix'"),
    "a parameter in XML": (
        _document({"parameters": [_parameter("a", content={"application/xml": {}})]}),
        "application/xml",
    ),
    "a header that is none": (_document({"parameters": [_parameter("a\r\nb: c", "header")]}), "nobody sees|no name"),
    "a header with a blank": (_document({"parameters": [_parameter("a b", "header")]}), "no name that a header"),
    "a path without its parameter": (_document({}, path="/a/{id}"), "'id' is not both"),
    "a parameter without its path": (
        _document({"parameters": [_parameter("id", "path", required=True)]}),
        "'id' is not both",
    ),
    "a path upwards": (_document({}, path="/a/../b"), "'.' or '..'"),
    "an encoded path upwards": (_document({}, path="/a/%2e%2E/b"), "'.' or '..'"),
    "a path with a query": (_document({}, path="/a?b=1"), r"'\?'"),
    "a path with a fragment": (_document({}, path="/#Action=List"), "'#'"),
    "a path to another host": (_document({}, path="//evil.test/a"), "empty step"),
    "a path that is none": (_document({}, path="a"), "begin with"),
    "a path with an open brace": (_document({}, path="/a/{b"), "brace"),
    "another server": (_document({"servers": [{"url": "https://b.test"}]}), "server of its own"),
    "no operation": ({"openapi": "3.1.0", "paths": {"/a": {"get": []}}}, "an array"),
    "a schema of a megabyte": (_schema({"enum": ["x" * 1_000_000]}), "bytes"),
    "a schema of many schemas": (
        _schema(
            {"$ref": "#/components/schemas/S0"},
            components={
                "schemas": {
                    f"S{n}": {"properties": {"a": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(600)
                }
            },
        ),
        "more than 500 schemas",
    ),
}


@pytest.mark.parametrize(("document", "reason"), LEFT_OUT.values(), ids=LEFT_OUT.keys())
def test_what_cannot_be_called_is_left_out_by_name_and_the_rest_is_kept(document: Json, reason: str) -> None:
    """F53"""
    assert re.search(reason, _reason(document))
    document["paths"]["/good"] = {"get": {"operationId": "good"}}
    assert [one.name for one in discover(document).operations] == ["good"]


def test_operations_without_a_name_of_their_own_are_named_by_method_and_path() -> None:
    """F53: names that look alike, are shared, or hold what nobody sees."""
    names = ["list", "twice", "twice", None, "getUsеr", "a\u200bb", "x" * 129, "", 7, "repos/list-for.user"]
    paths = {
        f"/p{n}/{{id}}": {"get": {"operationId": name, "parameters": [_parameter("id", "path")]}}
        for n, name in enumerate(names)
    }
    paths["/p3/id"] = {"get": {}}
    found = discover({"openapi": "3.1.0", "paths": paths})
    made = [f"get_p{n}_id" for n in range(1, 9)]
    assert [one.name for one in found.operations] == ["list", *made, "repos/list-for.user", "get_p3_id_2"]


def test_texts_are_cut_and_freed_of_what_nobody_sees() -> None:
    """F53"""
    operation = {
        "summary": "List\x00 pets",
        "description": "Ignore \u202eall\u200b that.\n" + "x" * 1_000_000,
        **_body({"type": "object", "properties": {"a": {"type": "string", "description": "y\x1b" * 600_000}}}),
    }
    descriptor = _one(_document(operation))
    assert descriptor.description.startswith("List pets\n\nIgnore all that.\nxxx")
    assert len(descriptor.description) <= 4_000
    assert len(descriptor.parameters["properties"]["a"]["description"]) <= 1_000
    assert "\x1b" not in json.dumps(descriptor.parameters)


def test_a_pattern_is_kept_if_it_can_be_checked_safely() -> None:
    """F53"""
    patterns = {"good": "^[a-z]+$", "slow": "^(a+)+$", "odd": "(?<name", "long": "a" * 600, "none": 3}
    descriptor = _one(
        _document(_body({"type": "object", "properties": {n: {"pattern": p} for n, p in patterns.items()}}))
    )
    kept = {name for name, schema in descriptor.parameters["properties"].items() if "pattern" in schema}
    assert kept == {"good", "slow"}
    begun = time.monotonic()
    compile_schema(json.dumps(descriptor.parameters)).faults({"slow": "a" * 5_000 + "!"})
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    ("version", "schema", "made"),
    [
        (
            "3.0.3",
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 1},
        ),
        ("3.0.3", {"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        (
            "3.0.3",
            {"enum": ["a"], "type": "string", "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            "3.0.3",
            {"allOf": [{"type": "string"}], "nullable": True, "description": "d"},
            {"description": "d", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ("3.0.3", {"nullable": True, "$ref": "#/components/schemas/Date"}, {"$ref": "#/$defs/Date"}),
        (
            "3.1.0",
            {"description": "d", "$ref": "#/components/schemas/Date"},
            {"description": "d", "$ref": "#/$defs/Date"},
        ),
        ("3.1.0", {"type": ["string", "null"], "const": "a"}, {"type": ["string", "null"], "const": "a"}),
        (
            "3.1.0",
            {"type": "string", "title": "T", "xml": {}, "x-a": 1, "deprecated": True, "examples": [1]},
            {"type": "string"},
        ),
        (
            "3.1.0",
            {"prefixItems": [{"type": "string"}], "items": False},
            {"prefixItems": [{"type": "string"}], "items": False},
        ),
        ("3.1.0", True, True),
    ],
)
def test_schemas_become_draft_2020_12(version: str, schema: Json, made: Json) -> None:
    descriptor = _one(
        _document(
            {"parameters": [_parameter("a", schema=schema)]}, method="get", version=version, components=COMPONENTS
        )
    )
    assert descriptor.parameters["properties"]["a"] == made


def test_thousands_of_operations_are_found_in_a_few_seconds() -> None:
    """F53"""
    parameters = [_parameter("id", "path"), _parameter("q")]
    paths = {f"/p{n}/{{id}}": {"get": {"operationId": f"o{n}", "parameters": parameters}} for n in range(2_000)}
    begun = time.monotonic()
    found: Discovery = discover({"openapi": "3.0.0", "paths": paths})
    assert len(found.operations) == 2_000
    assert time.monotonic() - begun < 5
