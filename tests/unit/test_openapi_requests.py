"""Requests as they are built: every style, every kind of body, and what is refused before anything is sent (F51)."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.domain.operations import Argument, OpenApiDescriptor
from folkmoot.tools.openapi.requests import BuiltRequest, build
from folkmoot.tools.openapi.styles import UnfitArguments

Json = Any
LIST = ["a", "b c"]
OBJECT = {"k": "v", "l": 2}


def _build(
    arguments: dict[str, Json],
    *described: Argument,
    path: str = "/x",
    body_type: str | None = None,
    headers: dict[str, str] | None = None,
    is_body_required: bool = False,
) -> BuiltRequest:
    descriptor = OpenApiDescriptor("POST", path, "", {}, described, body_type, is_body_required)
    return build("https://a.test/v1/", descriptor, arguments, headers=headers or {})


def _argument(place: Json, style: str, *, explode: bool, name: str = "n", reserved: bool = False) -> Argument:
    return Argument(name, name, place, style, explode, reserved)


PATHS = [
    ("simple", False, "b c", "b%20c"),
    ("simple", False, True, "true"),
    ("simple", False, 1.5, "1.5"),
    ("simple", False, LIST, "a,b%20c"),
    ("simple", True, LIST, "a,b%20c"),
    ("simple", False, OBJECT, "k,v,l,2"),
    ("simple", True, OBJECT, "k=v,l=2"),
    ("label", False, "b", ".b"),
    ("label", False, LIST, ".a,b%20c"),
    ("label", True, LIST, ".a.b%20c"),
    ("label", False, OBJECT, ".k,v,l,2"),
    ("label", True, OBJECT, ".k=v.l=2"),
    ("matrix", False, "b", ";n=b"),
    ("matrix", False, LIST, ";n=a,b%20c"),
    ("matrix", True, LIST, ";n=a;n=b%20c"),
    ("matrix", False, OBJECT, ";n=k,v,l,2"),
    ("matrix", True, OBJECT, ";k=v;l=2"),
    ("simple", False, "a/b", "a%2Fb"),
    ("simple", False, "a?b#c&d=e;f", "a%3Fb%23c%26d%3De%3Bf"),
    ("simple", False, "50%", "50%25"),
    ("simple", False, "ä", "%C3%A4"),
    ("simple", False, "...", "..."),
    ("simple", False, ["a,b"], "a%2Cb"),
]


@pytest.mark.parametrize(("style", "explode", "value", "text"), PATHS)
def test_a_value_is_one_step_of_the_path_in_every_style(style: str, explode: bool, value: Json, text: str) -> None:
    """F51"""
    built = _build({"n": value}, _argument("path", style, explode=explode), path="/a b/{n}/c")
    assert built.url == f"https://a.test/v1/a%20b/{text}/c"


@pytest.mark.parametrize(
    "value",
    [
        ".",
        "..",
        "../etc",
        "a/../b",
        "..\\b",
        "%2e%2e",
        "%2E%2e%2f",
        "%252e%252e%252f",
        "a%2f..%2fb",
        "a\r\nX: y",
        "a%0d%0ab",
        "a\x00",
        "",
        None,
        [],
        {},
        [["a"]],
        ["..", "a"],
        {"..": None},
        {"k": {"l": 1}},
    ],
)
def test_a_value_that_some_server_may_take_for_other_steps_is_refused(value: Json) -> None:
    """F51"""
    for style in ("simple", "matrix", "label"):
        with pytest.raises(UnfitArguments, match="'n'"):
            _build({"n": value}, _argument("path", style, explode=False), path="/a/{n}")


def test_two_values_that_are_harmless_alone_make_no_step_upwards() -> None:
    """F51"""
    arguments = [_argument("path", "label", explode=False, name=name) for name in ("m", "n")]
    assert _build({"m": "a", "n": "b"}, *arguments, path="/{m}{n}").url == "https://a.test/v1/.a.b"
    half = [Argument(name, name, "path") for name in ("m", "n")]
    with pytest.raises(UnfitArguments):
        _build({"m": ".", "n": "."}, *half, path="/{m}{n}")


QUERIES = [
    ("form", True, "b c", "n=b%20c"),
    ("form", True, "", "n="),
    ("form", True, False, "n=false"),
    ("form", True, None, ""),
    ("form", True, [], ""),
    ("form", True, LIST, "n=a&n=b%20c"),
    ("form", False, LIST, "n=a,b%20c"),
    ("form", False, ["a,b", None], "n=a%2Cb"),
    ("form", True, OBJECT, "k=v&l=2"),
    ("form", False, OBJECT, "n=k,v,l,2"),
    ("spaceDelimited", False, LIST, "n=a%20b%20c"),
    ("pipeDelimited", False, LIST, "n=a%7Cb%20c"),
    ("pipeDelimited", False, OBJECT, "n=k%7Cv%7Cl%7C2"),
    ("deepObject", True, OBJECT, "n%5Bk%5D=v&n%5Bl%5D=2"),
    ("deepObject", False, {"a": {"b": [1, 2]}}, "n%5Ba%5D%5Bb%5D%5B0%5D=1&n%5Ba%5D%5Bb%5D%5B1%5D=2"),
    ("form", True, "a&b=c#d+e\r\n", "n=a%26b%3Dc%23d%2Be%0D%0A"),
    ("form", True, "\ud83d\x00", "n=%5Cud83d%E2%90%80"),
]


@pytest.mark.parametrize(("style", "explode", "value", "text"), QUERIES)
def test_a_value_stays_in_its_part_of_the_query_in_every_style(
    style: str, explode: bool, value: Json, text: str
) -> None:
    """F51"""
    built = _build({"n": value}, _argument("query", style, explode=explode))
    assert built.url == "https://a.test/v1/x" + (f"?{text}" if text else "")


def test_reserved_characters_are_left_where_the_document_says_so_but_for_those_that_end_a_value() -> None:
    built = _build({"n": "a/b?c:d&e#f+g=h"}, _argument("query", "form", explode=True, reserved=True))
    assert built.url.partition("?")[2] == "n=a/b?c:d%26e%23f%2Bg%3Dh"


def test_what_is_spread_over_a_query_cannot_say_again_what_is_bound() -> None:
    """B50"""
    free, fixed = (
        _argument("query", "form", explode=True, name="free"),
        Argument("tenant", "tenant", "query", "form", True),
    )
    assert _build({"free": {"a": 1}, "tenant": "own"}, free, fixed).url.endswith("?a=1&tenant=own")
    with pytest.raises(UnfitArguments, match="'tenant', which is an argument itself"):
        _build({"free": {"tenant": "other"}, "tenant": "own"}, free, fixed)
    with pytest.raises(UnfitArguments, match="bracket"):
        _build({"n": {"a][b": 1}}, _argument("query", "deepObject", explode=True))
    with pytest.raises(UnfitArguments, match="lists or objects inside"):
        _build({"n": [[1]]}, _argument("query", "form", explode=True))


def test_parameters_that_are_documents_are_sent_as_such() -> None:
    as_json = [
        Argument("n", "n", place, media_type="application/json") for place in ("query", "header", "cookie", "path")
    ]
    value = {"a": [1, None]}
    assert _build({"n": value}, as_json[0]).url.endswith("?n=%7B%22a%22%3A%5B1%2Cnull%5D%7D")
    assert _build({"n": value}, as_json[1]).headers["n"] == '{"a":[1,null]}'
    assert _build({"n": value}, as_json[2]).headers["Cookie"] == "n=%7B%22a%22%3A%5B1%2Cnull%5D%7D"
    assert _build({"n": value}, as_json[3], path="/{n}").url.endswith("/v1/%7B%22a%22%3A%5B1%2Cnull%5D%7D")


@pytest.mark.parametrize(
    ("explode", "value", "text"),
    [
        (False, "plain", "plain"),
        (False, 3, "3"),
        (False, LIST, "a,b c"),
        (False, OBJECT, "k,v,l,2"),
        (True, OBJECT, "k=v,l=2"),
        (False, None, None),
    ],
)
def test_headers_have_the_simple_style(explode: bool, value: Json, text: str | None) -> None:
    assert _build({"n": value}, _argument("header", "simple", explode=explode)).headers.get("n") == text


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\x00", "ä", ["a", "b\n"], {"k\r\n": "v"}])
def test_a_header_holds_one_line_of_ascii(value: Json) -> None:
    """F51"""
    with pytest.raises(UnfitArguments, match="header"):
        _build({"n": value}, _argument("header", "simple", explode=False))


def test_the_connectors_headers_stand_over_a_models() -> None:
    """F51"""
    built = _build(
        {"n": "mine", "c": "a;b=c"},
        Argument("n", "x-api-key", "header"),
        _argument("cookie", "form", explode=True, name="c"),
        headers={"X-Api-Key": "secret", "accept": "text/plain"},
    )
    assert {name.lower(): value for name, value in built.headers.items()} == {
        "x-api-key": "secret",
        "accept": "text/plain",
        "user-agent": "folkmoot",
        "cookie": "c=a%3Bb%3Dc",
    }
    for secret in ("hush\r\nX: y", "hüsh"):
        with pytest.raises(UnfitArguments) as caught:
            _build({}, headers={"X-Api-Key": secret})
        assert secret not in str(caught.value)
    with pytest.raises(UnfitArguments, match="one cookie"):
        _build({"c": ["a"]}, _argument("cookie", "form", explode=True, name="c"))


FIELDS = (Argument("a", "a", "field"), Argument("b_", "b.b", "field"))
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("arguments", "body_type", "is_required", "content"),
    [
        ({"a": None, "b_": {"c": [1, None, "ä"]}}, "application/json", True, '{"a":null,"b.b":{"c":[1,null,"ä"]}}'),
        ({"a": "\ud83d"}, "application/merge-patch+json; charset=utf-8", False, '{"a":"\\ud83d"}'),
        ({}, "application/json", True, "{}"),
        ({}, "application/json", False, None),
        ({"a": 1}, None, False, None),
    ],
)
def test_json_bodies_hold_what_was_given_and_null_is_given(
    arguments: dict[str, Json], body_type: str | None, is_required: bool, content: str | None
) -> None:
    built = _build(arguments, *FIELDS, body_type=body_type, is_body_required=is_required)
    assert (built.content.decode() if built.content is not None else None) == content
    assert built.headers.get("Content-Type") == (body_type if content is not None else None)


def test_a_whole_body_is_sent_as_its_type_says() -> None:
    whole = Argument("body", "body", "body")
    assert _build({"body": None}, whole, body_type="application/json").content == b"null"
    assert _build({"body": ["a"]}, whole, body_type="application/json").content == b'["a"]'
    built = _build({"body": "two words"}, whole, body_type="text/plain")
    assert (built.content, built.headers["Content-Type"]) == (b"two words", "text/plain; charset=utf-8")
    with pytest.raises(UnfitArguments, match="send a string"):
        _build({"body": {}}, whole, body_type="text/plain")


def test_forms_are_sent_field_by_field() -> None:
    fields = [
        Argument("a", "a", "field", "form", True),
        Argument("o", "o", "field", "form", True),
        Argument("d", "d", "field", "deepObject", True),
        Argument("c", "c", "field", "form", False),
        Argument("z", "z", "field", "form", True),
    ]
    values = {"a": ["x", "y&z"], "o": {"k": 1}, "d": {"k": 1}, "c": ["p", "q"], "z": None}
    built = _build(values, *fields, body_type=FORM)
    assert built.content is not None
    assert sorted(built.content.decode().split("&")) == sorted(
        ["a=x", "a=y%26z", "o=%7B%22k%22%3A1%7D", "d%5Bk%5D=1", "c=p,q"]
    )
    assert built.headers["Content-Type"] == FORM


def test_a_part_of_a_multipart_form_cannot_become_two() -> None:
    """F51"""
    fields = [Argument("a", 'a"\r\nX: y', "field", "form", True), Argument("o", "o", "field", "form", True)]
    built = _build(
        {"a": ["1", "--\r\nContent-Disposition: form-data"], "o": {"k": 1}}, *fields, body_type="multipart/form-data"
    )
    boundary = built.headers["Content-Type"].partition("boundary=")[2]
    assert built.content is not None
    parts = built.content.decode().split(f"--{boundary}")
    assert parts == [
        "",
        '\r\nContent-Disposition: form-data; name="a%22%0D%0AX: y"\r\n\r\n1\r\n',
        '\r\nContent-Disposition: form-data; name="a%22%0D%0AX: y"\r\n\r\n--\r\nContent-Disposition: form-data\r\n',
        '\r\nContent-Disposition: form-data; name="o"\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n',
        "--\r\n",
    ]


def test_an_argument_that_is_unknown_or_missing_is_named() -> None:
    with pytest.raises(UnfitArguments, match=r"no argument 'c'.*There are: a, b_\."):
        _build({"c": 1}, *FIELDS, body_type="application/json")
    with pytest.raises(UnfitArguments, match="'n' of the path is missing"):
        _build({}, Argument("n", "n", "path"), path="/{n}")
    descriptor = OpenApiDescriptor("GET", "/", "", {"required": ["n"]}, (Argument("n", "n", "query", "form", True),))
    with pytest.raises(UnfitArguments, match="'n' is missing"):
        build("https://a.test", descriptor, {}, headers={})
