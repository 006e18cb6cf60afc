"""The wire package against docs/spec/contract.json and the 'Wire conventions' of docs/spec/README.md."""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Awaitable, Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from check_contract import ABSENT, CONTRACT, check
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

import folkmoot.wire
from folkmoot.kernel.errors import Fault
from folkmoot.wire.definitions import (
    AgentVersionRequest,
    AiModelPrices,
    AiModelPricesRequest,
    AiModelVersionRequest,
    RoundRobinInteractionVersionRequest,
)
from folkmoot.wire.errors import faults_of, problem_errors
from folkmoot.wire.formats import (
    Datetime,
    Page,
    RequestShape,
    ResponseShape,
    Timespan,
    VersionReference,
    VersionReferenceRequest,
    print_datetime,
    print_timespan,
)
from folkmoot.wire.items import ConversationItem, ConversationItemPage, InteractionProcessContext
from folkmoot.wire.keys import ApiKeyRequest
from folkmoot.wire.runs import InteractionProcess, InteractionProcessCredentialRequest, MessageRequest, StartRequest

ID = "01920000-0000-7000-8000-00000000000a"
TIME = "2026-10-26T12:00:00.0000000Z"
DATETIME: TypeAdapter[datetime] = TypeAdapter(Datetime)
TIMESPAN: TypeAdapter[timedelta] = TypeAdapter(Timespan)


def shapes(kind: type[BaseModel]) -> list[type[BaseModel]]:
    """Every shape of that kind in the package, the abstract ones and the generic page excepted."""
    found: set[type[BaseModel]] = set()
    for module in pkgutil.walk_packages(folkmoot.wire.__path__, "folkmoot.wire."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            named = member not in (ResponseShape, RequestShape, Page) and "[" not in member.__name__
            if named and issubclass(member, kind):
                found.add(member)
    return sorted(found, key=lambda shape: shape.__name__)


RESPONSES = shapes(ResponseShape)
REQUESTS = shapes(RequestShape)


def giving() -> Callable[[], Awaitable[None]]:
    async def endpoint() -> None: ...

    return endpoint


def taking(shape: type[BaseModel]) -> Callable[..., Awaitable[None]]:
    async def endpoint(body: BaseModel) -> None: ...

    endpoint.__annotations__["body"] = shape
    return endpoint


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The OpenAPI document of an API that returns each response type and takes each request type."""
    app = FastAPI()
    for shape in RESPONSES:
        app.get(f"/{shape.__name__}", response_model=shape)(giving())
    for shape in REQUESTS:
        app.post(f"/{shape.__name__}", response_model=None)(taking(shape))
    return app.openapi()


@pytest.fixture(scope="module")
def contract() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(CONTRACT.read_text())
    return held


def sample(schema: dict[str, Any], parts: dict[str, Any], *, full: bool) -> Any:
    """A value that the schema admits: with `full`, nothing that can be something is null or empty."""
    if "$ref" in schema:
        return sample(parts[schema["$ref"].rsplit("/", 1)[-1]], parts, full=full)
    if "oneOf" in schema or "anyOf" in schema:
        members = schema.get("oneOf") or schema["anyOf"]
        nulls = [member for member in members if member.get("type") == "null"]
        return None if nulls and not full else sample(members[0], parts, full=full)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][-1]
    if "type" not in schema:  # any JSON value
        return 7
    if schema["type"] == "object" and "properties" in schema:
        return {name: sample(part, parts, full=full) for name, part in schema["properties"].items()}
    if schema["type"] == "string" and ("format" in schema or "pattern" in schema):
        return {"date-time": TIME, "date": TIME[:10], "uuid": ID}.get(schema.get("format", ""), "5.00:05:00.0100000")
    values = {"string": "text", "integer": 7, "number": 0.15, "boolean": True, "object": {}, "array": []}
    if full and schema["type"] == "array":
        return [sample(schema["items"], parts, full=full)]
    if full and schema["type"] == "object":
        values_of_it = schema.get("additionalProperties")
        return {"gpt": sample(values_of_it, parts, full=full) if isinstance(values_of_it, dict) else "own-gpt"}
    return values[schema["type"]]


def faults(shape: type[BaseModel], body: object) -> dict[str, str]:
    """What a shape says of a body, by pointer."""
    with pytest.raises(ValidationError) as refused:
        shape.model_validate(body)
    return {fault.pointer: fault.message for fault in faults_of(refused.value.errors())}


def panel(**changes: object) -> dict[str, object]:
    return {"agents": [{"agent": "optimist"}], "prompt": "Decide.", **changes}


# Against the contract


def test_every_type_is_shown_as_the_contract_says(document: dict[str, Any], contract: dict[str, Any]) -> None:
    """docs/spec/contract.json; the endpoints have tests of their own."""
    found = list(check(document, contract, existing=True))
    assert [fault for fault in found if fault is not ABSENT] == []
    assert set(contract["types"]) - set(document["components"]["schemas"]) == set()


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda run: run["required"].remove("output"), "not required"),
        (lambda run: run["properties"].pop("output"), "missing"),
        (lambda run: run["properties"].update(output={"type": "string"}), "must admit null"),
        (lambda run: run["properties"].update(output={"type": ["integer", "null"]}), "admits"),
        (lambda run: run["properties"].update(status={"enum": ["New"]}), "its values are not"),
        (lambda run: run["properties"]["id"].update(type=["string", "null"]), "must not admit null"),
    ],
)
def test_a_spoilt_type_is_a_fault(
    document: dict[str, Any], contract: dict[str, Any], spoil: Callable[[dict[str, Any]], object], fault: str
) -> None:
    """The negative control of the test above: the check sees each kind of fault."""
    spoilt = deepcopy(document)
    spoil(spoilt["components"]["schemas"]["InteractionProcess"])
    found = [text for text in check(spoilt, contract, existing=True) if isinstance(text, str)]
    assert len(found) == 1
    assert found[0].startswith("InteractionProcess.")
    assert fault in found[0]


def test_component_names_are_told_apart(document: dict[str, Any]) -> None:
    """README.md: request types are separate from response types, so that component names are the contract's."""
    names = set(document["components"]["schemas"])
    assert not [name for name in names if name.endswith(("-Input", "-Output")) or "__" in name]
    assert {shape.__name__ for shape in REQUESTS} <= {name for name in names if name.endswith("Request")}
    assert {"InteractionProcessPage", "ConversationItemPage", "ConversationItem"} <= names


@pytest.mark.parametrize("shape", RESPONSES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("full", [True, False], ids=["full", "bare"])
def test_every_field_is_present_and_comes_back_the_same(shape: type[BaseModel], full: bool) -> None:
    """README.md: every field of a type is present in every response; an empty one is null, a list is []."""
    schema = shape.model_json_schema(mode="serialization")
    assert set(schema.get("required", ())) == set(schema["properties"])
    shown = sample(schema, schema.get("$defs", {}), full=full)
    assert set(shown) == set(schema["properties"])
    read = shape.model_validate(shown)
    assert read.model_dump(mode="json") == shown
    assert json.loads(read.model_dump_json()) == shown


def test_a_run_without_anything_shows_all_49_fields(contract: dict[str, Any]) -> None:
    schema = InteractionProcess.model_json_schema(mode="serialization")
    shown = InteractionProcess.model_validate(sample(schema, schema["$defs"], full=False)).model_dump(mode="json")
    assert len(shown) == 49
    assert set(shown) == set(contract["types"]["InteractionProcess"])
    assert shown["output"] is None
    assert shown["tokenUsage"] == []
    assert set(shown["context"]) == set(contract["types"]["InteractionProcessContext"])


def test_no_response_field_may_be_left_out() -> None:
    with pytest.raises(ValidationError):
        VersionReference.model_validate({"id": ID})


# Items


def test_an_item_of_a_page_is_the_item_of_the_context_with_its_array_named() -> None:
    """api.md: `…/items` is a page of the conversation, merged, by sequence; all 15 kinds of contract.json."""
    schema = InteractionProcessContext.model_json_schema(mode="serialization")
    context = sample(schema, schema["$defs"], full=True)
    assert len(context) == 15
    page = {"items": [{**items[0], "kind": kind} for kind, items in context.items()], "next": None}
    assert ConversationItemPage.model_validate(page).model_dump(mode="json") == page


def test_an_item_of_no_kind_is_refused() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ConversationItem).validate_python({"kind": "gossip"})


# Times


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_the_same(moment: datetime) -> None:
    """README.md: UTC, seven fractional digits and Z."""
    written = json.loads(DATETIME.dump_json(moment))
    assert len(written) == len(TIME)
    assert written.endswith("0Z")
    assert DATETIME.validate_python(written) == moment


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)),
    st.integers(min_value=-23 * 60 - 59, max_value=23 * 60 + 59),
)
def test_a_time_of_any_offset_is_read(local: datetime, offset: int) -> None:
    """README.md: accepted on input: any RFC 3339 date-time with an offset."""
    moment = local.replace(tzinfo=timezone(timedelta(minutes=offset)))
    read = DATETIME.validate_python(moment.isoformat())
    assert read == moment
    assert read.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-10-26t12:00:00z", TIME),
        ("2026-10-26T12:00:00-00:00", TIME),
        ("2026-10-26T13:30:00.5+01:30", "2026-10-26T12:00:00.5000000Z"),
        ("2026-10-26T12:00:00.12345678901Z", "2026-10-26T12:00:00.1234560Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.0000000Z"),
        ("2017-01-01T00:59:60.9+01:00", "2017-01-01T00:00:00.0000000Z"),
    ],
)
def test_the_forms_of_rfc_3339_are_read(text: str, read: str) -> None:
    assert print_datetime(DATETIME.validate_python(text)) == read


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("2026-10-26T12:00:00", "needs an offset"),
        (datetime(2026, 10, 26), "needs an offset"),
        ("2026-10-26", "is written as"),
        ("2026-10-26 12:00:00Z", "is written as"),
        ("2026-10-26T24:00:00Z", "is written as"),
        ("\uff12\uff10\uff12\uff16-10-26T12:00:00Z", "is written as"),
        ("2026-10-26T12:00:00Z\n", "is written as"),
        (1793016000, "is written as"),
        ("2026-02-29T12:00:00Z", "no such time"),
        ("2026-10-26T12:00:60Z", "no such time"),
        ("2026-10-26T12:00:61Z", "no such time"),
        ("2026-10-26T12:00:00+24:00", "no such time"),
        ("0000-01-01T00:00:00Z", "no such time"),
        ("0001-01-01T00:00:00+01:00", "no such time"),
        ("9999-12-31T23:59:60Z", "no such time"),
        ("9999-12-31T23:59:59.9999999Z", "no such time"),
    ],
)
def test_what_is_no_time_is_refused(value: object, told: str) -> None:
    assert told in faults(ApiKeyRequest, {"name": "ci", "dateExpires": value})["/dateExpires"]


# Timespans


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=999_999)))
def test_a_timespan_comes_back_the_same(span: timedelta) -> None:
    """README.md: `[d.]hh:mm:ss[.fffffff]`."""
    assert TIMESPAN.validate_python(json.loads(TIMESPAN.dump_json(span))) == span


@given(st.from_regex(r"\A([0-9]{1,6}\.)?([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?\Z"))
def test_every_text_of_the_pattern_is_read_and_settles(text: str) -> None:
    span = TIMESPAN.validate_python(text)
    assert TIMESPAN.validate_python(print_timespan(span)) == span


@pytest.mark.parametrize(
    ("text", "span", "written"),
    [
        ("00:05:00", timedelta(minutes=5), "00:05:00"),
        ("5.00:00:00", timedelta(days=5), "5.00:00:00"),
        ("0.23:59:59.5", timedelta(hours=24) - timedelta(seconds=0.5), "23:59:59.5000000"),
        ("00:00:00.0000019", timedelta(microseconds=1), "00:00:00.0000010"),
    ],
)
def test_timespans_are_written_in_one_way(text: str, span: timedelta, written: str) -> None:
    assert TIMESPAN.validate_python(text) == span
    assert print_timespan(span) == written


@pytest.mark.parametrize("value", ["-00:05:00", "-5.00:00:00", timedelta(seconds=-1)])
def test_a_negative_timespan_is_refused_with_its_place(value: object) -> None:
    """README.md: negative ones are refused."""
    assert faults(StartRequest, {"durationAutoTermination": value}) == {
        "/durationAutoTermination": "A timespan cannot be negative."
    }


@pytest.mark.parametrize(
    "value",
    [
        "5m",
        "PT5M",
        "24:00:00",
        "00:60:00",
        "5:00:00",
        "00:05",
        "00:05:00\n",
        "1000000.00:00:00",
        "\u0660\u0660:\u0660\u0665:\u0660\u0660",
        300,
        True,
    ],
)
def test_what_is_no_timespan_is_refused(value: object) -> None:
    assert "is written as" in faults(StartRequest, {"durationHumanTimeout": value})["/durationHumanTimeout"]


# Requests


@pytest.mark.parametrize("shape", REQUESTS, ids=lambda shape: shape.__name__)
def test_every_request_refuses_unknown_fields_by_name(shape: type[BaseModel]) -> None:
    """README.md: unknown fields in a request body are refused, by name."""
    assert shape.model_json_schema()["additionalProperties"] is False
    assert faults(shape, {"a/b~c": 1})["/a~1b~0c"] == "There is no field 'a/b~c' here; remove it, or correct its name."


def test_a_field_under_its_python_name_is_unknown() -> None:
    assert set(faults(StartRequest, {"response_json_schema": "{}"})) == {"/response_json_schema"}


def test_faults_point_into_the_body() -> None:
    """README.md: `errors`, a JSON pointer and a message each, for a body that does not validate."""
    body = panel(agents=[{"agent": "optimist"}, {"agent": {"id": ID, "versoin": 2}, "webAccess": {"fetch": "yes"}}, {}])
    assert faults(RoundRobinInteractionVersionRequest, body) == {
        "/agents/1/agent/versoin": "There is no field 'versoin' here; remove it, or correct its name.",
        "/agents/1/webAccess/fetch": "Input should be a valid boolean.",
        "/agents/2/agent": "The field 'agent' is required.",
    }


def test_what_is_left_out_has_its_default() -> None:
    """interactions.md: both rules default to `Majority`."""
    version = RoundRobinInteractionVersionRequest.model_validate(panel())
    assert (version.solution_rule, version.vote_rule) == ("Majority", "Majority")
    assert version.context_settings.mode == "None"
    assert version.maximum_rounds is None
    assert StartRequest.model_validate({}).inputs == ()
    assert InteractionProcessCredentialRequest.model_validate({"provider": "openai"}).model_name_overrides == {}


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("examples/small@3", "examples/small@3"),
        ({"id": ID}, VersionReferenceRequest(id=UUID(ID), version=None)),
        ({"id": ID.upper(), "version": 0}, VersionReferenceRequest(id=UUID(ID), version=0)),
    ],
)
def test_a_reference_is_a_name_or_an_id_with_a_version(model: object, read: object) -> None:
    """interactions.md: version 0 or null in a link means the latest enabled one."""
    assert AgentVersionRequest.model_validate({"model": model}).model == read


@pytest.mark.parametrize(
    "model", ["", "x" * 421, 5, None, ["small"], {"id": f"urn:uuid:{ID}"}, {"id": ID, "version": -1}]
)
def test_what_is_no_reference_is_refused_in_its_place(model: object) -> None:
    assert all(pointer.startswith("/model") for pointer in faults(AgentVersionRequest, {"model": model}))


@pytest.mark.parametrize("value", [0, -1, 2**31, "3", 3.0, True])
def test_a_bound_on_passes_is_a_whole_number_in_its_range(value: object) -> None:
    """interactions.md, maximumNoActionLoops: 1 to 2147483647, null: no limit."""
    assert set(faults(RoundRobinInteractionVersionRequest, panel(maximumNoActionLoops=value))) == {
        "/maximumNoActionLoops"
    }
    for good in (None, 1, 2**31 - 1):
        read = RoundRobinInteractionVersionRequest.model_validate(panel(maximumNoActionLoops=good))
        assert read.maximum_no_action_loops == good


@pytest.mark.parametrize("value", [3, True, None, {"a": 1}])
def test_the_value_of_an_input_is_a_string(value: object) -> None:
    """README.md: `NameValuePair.value` is always a string."""
    assert set(faults(StartRequest, {"inputs": [{"name": "n", "value": value}]})) == {"/inputs/0/value"}


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1, "0.15", True])
def test_what_is_no_price_is_refused(price: object) -> None:
    assert set(faults(AiModelPricesRequest, {"input": price})) == {"/input"}


def test_a_price_is_a_number_on_the_wire_and_exact_inside() -> None:
    """platform.md: cost is null where no price is known, never 0."""
    read = AiModelPricesRequest.model_validate({"input": 0.1, "output": 0.2})
    assert read.input is not None
    assert read.output is not None
    shown = AiModelPrices(
        input=read.input + read.output, cached_input=None, cache_write=None, output=None, reasoning=None
    )
    assert json.loads(shown.model_dump_json()) == {
        "input": 0.3,
        "cachedInput": None,
        "cacheWrite": None,
        "output": None,
        "reasoning": None,
    }


@pytest.mark.parametrize(
    ("shape", "body", "told"),
    [
        (MessageRequest, {"message": "a\ud800b"}, "lone surrogate"),
        (MessageRequest, {"message": "hi", "\ud800": 1}, "lone surrogate"),
        (MessageRequest, ["message"], "should be a JSON object"),
        (MessageRequest, {"message": "m" * 1_000_001}, "at most 1000000 characters"),
        (RoundRobinInteractionVersionRequest, panel(agents="Ann"), "should be a JSON array"),
        (AiModelVersionRequest, {"provider": "x" * 201, "modelName": "m"}, "at most 200 characters"),
        (
            InteractionProcessCredentialRequest,
            {"provider": "p", "modelNameOverrides": {"a": "\ud800"}},
            "lone surrogate",
        ),
        (
            InteractionProcessCredentialRequest,
            {"provider": "p", "modelNameOverrides": {"\ud800": "a"}},
            "lone surrogate",
        ),
    ],
    ids=["value", "name", "array", "long", "text", "long name", "inside", "inside name"],
)
def test_hostile_text_is_refused_in_text_that_can_be_sent(shape: type[BaseModel], body: object, told: str) -> None:
    """F25: a documented normal form or a clear refusal, never a 500."""
    with pytest.raises(ValidationError) as refused:
        shape.model_validate(body)
    found = problem_errors(faults_of(refused.value.errors()))
    assert any(told in error.message for error in found)
    assert all(error.model_dump_json().encode("utf-8") for error in found)


def test_a_fault_of_a_key_points_at_its_entry() -> None:
    body = {"provider": "p", "modelNameOverrides": {"k" * 1_000_001: "v"}}
    assert set(faults(InteractionProcessCredentialRequest, body)) == {"/modelNameOverrides/" + "k" * 1_000_001}


def test_a_fault_that_utf_8_cannot_hold_is_shown_escaped() -> None:
    """F25; the checks after the wire's own name what they found too."""
    (error,) = problem_errors([Fault("/prompt/\ud800", "No input is called '\udfff'.")])
    assert json.loads(error.model_dump_json()) == {
        "pointer": "/prompt/\\ud800",
        "message": "No input is called '\\udfff'.",
    }


def test_a_long_unknown_name_is_cut_in_the_message() -> None:
    assert len(faults(MessageRequest, {"message": "m", "x" * 10_000: 1})["/" + "x" * 10_000]) < 200


def test_refused_values_are_not_repeated() -> None:
    """platform.md: a secret reaches no error."""
    told = faults(AiModelVersionRequest, {"provider": "openai", "modelName": "m", "contextWindow": "sk-canary"})
    assert "sk-canary" not in str(told)


def test_bodies_that_are_no_json_and_missing_ones_are_told_of() -> None:
    """The same faults through FastAPI, whose locations begin with `body`."""
    app = FastAPI()
    seen: list[tuple[Fault, ...]] = []
    app.post("/messages")(taking(MessageRequest))
    with TestClient(app) as client:
        for content in ('{"message": ', "", '{"message": "m", "to": "Ann"}', "[]"):
            answer = client.post("/messages", content=content, headers={"content-type": "application/json"})
            assert answer.status_code == 422
            seen.append(faults_of(answer.json()["detail"], within=("body",)))
    assert [(fault.pointer, fault.message) for found in seen for fault in found] == [
        ("", "This is not JSON at character 12; correct it and send it again."),
        ("", "A body is required."),
        ("/to", "There is no field 'to' here; remove it, or correct its name."),
        ("", "This should be a JSON object."),
    ]
