"""Reading a document: JSON or YAML, within bounds, or refused with a sentence (F53)."""

from __future__ import annotations

import time

import pytest

from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.openapi import discover, read_document

YAML = """
openapi: 3.1.0
info: {title: t, version: 2026-10-26}
x-note: &note {enabled: no, at: 12:30, count: 0x10, half: .5, none: ~, text: "1"}
x-again: *note
paths:
  /a:
    get:
      responses:
        200: {description: fine}
"""


def test_yaml_is_read_by_the_core_schema_with_names_as_text() -> None:
    document = read_document(YAML, source="a.yaml")
    assert document["x-note"] == {"enabled": "no", "at": "12:30", "count": 16, "half": 0.5, "none": None, "text": "1"}
    assert document["x-again"] == document["x-note"]
    assert document["info"]["version"] == "2026-10-26"
    assert document["paths"]["/a"]["get"]["responses"] == {"200": {"description": "fine"}}


@pytest.mark.parametrize(
    "data", [b'\xef\xbb\xbf{"openapi": "3.1.0"}', '\ufeff {"openapi": "3.1.0"}', b"{openapi: 3.1.0}"]
)
def test_json_and_flow_style_are_read_with_a_byte_order_mark_or_without(data: bytes | str) -> None:
    assert read_document(data, source="a") == {"openapi": "3.1.0"}


def _laughs(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


HOSTILE = {
    "a billion laughs": (_laughs(12), "too many values"),
    "an alias to itself": ("a: &a [*a]", "contains itself"),
    "an alias without an anchor": ("a: *b", "no anchor"),
    "a merge key": ("a: &a {b: 1}\nc: {<<: *a}", "merge key"),
    "a tag of Python": ("a: !!python/object/apply:os.system [id]", "tag"),
    "a tag of YAML 1.1": ("a: !!binary aGk=", "tag"),
    "a field twice": ("a: 1\na: 2", "there twice"),
    "a list as a name": ("? [a]\n: 1", "write a word"),
    "two documents": ("a: 1\n---\nb: 2", "several"),
    "deep YAML": ("a: " + "[" * 5_000 + "]" * 5_000, "deep|nesting"),
    "deep aliases": ("a0: &a0 [1]\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200)), "deep"),
    "deep JSON": ('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", "deep"),
    "NaN": ('{"a": NaN}', "NaN"),
    "a list": ("[]", "an array"),
    "a word": ("hello", "a string"),
    "nothing": ("  ", "empty"),
    "a control character": ("a: \x01", "neither JSON nor YAML"),
    "broken JSON": ('{"a": 1', "not JSON"),
    "no text": (b"\xff\x00\x80binary", "UTF-"),
    "33 MB": (b" " * 33_554_433, "at most 33,554,432"),
}


@pytest.mark.parametrize(("data", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_document_is_refused_by_a_sentence_and_soon(data: bytes | str, reason: str) -> None:
    """F53"""
    begun = time.monotonic()
    with pytest.raises(ConnectorFault, match=reason) as caught:
        read_document(data, source="the.yaml")
    assert str(caught.value).startswith("The document 'the.yaml' was not read. ")
    assert str(caught.value).endswith(".")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"swagger": "2.0", "paths": {}}, r"Swagger 2\.0"),
        ({"openapi": "3.2.0", "paths": {}}, r"OpenAPI 3\.2\.0; 3\.0 and 3\.1 are read"),
        ({"openapi": "4.0.0"}, r"4\.0\.0"),
        ({"paths": {}}, "no field 'openapi'"),
        ({"openapi": 3.1}, "no field 'openapi'"),
        ({"openapi": "3.1.0", "paths": []}, "'paths' of the document is an array"),
        (
            {"openapi": "3.1.0", "paths": {f"/{n}": {"get": {}} for n in range(10_001)}},
            "more than 10,000 operations",
        ),
    ],
)
def test_a_document_of_another_kind_is_refused_by_name(document: dict[str, object], reason: str) -> None:
    """F53"""
    with pytest.raises(ConnectorFault, match=reason):
        discover(document)


@pytest.mark.parametrize(
    ("servers", "source", "base"),
    [
        ([{"url": "https://a.test/v1/"}, {"url": "https://b.test"}], None, "https://a.test/v1"),
        ([{"url": "/v2"}], "https://a.test/docs/openapi.json", "https://a.test/v2"),
        ([{"url": "v2"}], "https://a.test/docs/openapi.json", "https://a.test/docs/v2"),
        (None, "https://a.test/docs/openapi.json", "https://a.test"),
        (None, None, None),
        ([{"url": "/v2"}], None, None),
        (
            [
                {
                    "url": "https://{host}.test:{port}/v",
                    "variables": {"host": {"default": "a"}, "port": {"default": 8443}},
                }
            ],
            None,
            "https://a.test:8443/v",
        ),
        ([{"url": "https://{host}.test"}], None, None),
        ([{"url": "https://user:pass@a.test"}], None, None),
        ([{"url": "ftp://a.test"}], None, None),
        ([{"url": "https://a.test/?x=1"}], None, None),
        ([{"url": "https://a.test/../b"}], None, None),
        ([{"url": "https://a.test\r\nX: y"}], None, None),
        ([{"url": 3}], None, None),
        ("https://a.test", None, None),
    ],
)
def test_the_base_url_is_that_of_the_first_server_if_it_can_be_called(
    servers: object, source: str | None, base: str | None
) -> None:
    assert discover({"openapi": "3.1.0", "servers": servers, "paths": {}}, source=source).base_url == base
