"""What is bound to a call: gone from the schema, and put in whatever the model sends (B50, F56); what bindings may say (F53)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.argument_paths import is_required, path_of
from folkmoot.domain.binding_checks import faults_beside, faults_of_bindings
from folkmoot.domain.bindings import Unfit, bound_schema, bound_value, final_arguments, without_bound
from folkmoot.domain.operation_changes import OperationSettings, first_version, next_version, with_settings
from folkmoot.domain.operations import (
    ApprovalMode,
    Argument,
    Bound,
    Http,
    McpDescriptor,
    OpenApiDescriptor,
    OperationTarget,
    OperationVersion,
    Place,
    is_gated,
)
from folkmoot.domain.schemas import compile_schema
from folkmoot.domain.tool_bindings import AuthenticationHeader, NamedValue, OperationBinding
from folkmoot.domain.tool_names import faults_of_tool_names

Json = Any
NOBODY = UUID(int=0)

FILTER = {
    "type": "object", "properties": {"customer": {"type": "integer"}, "state": {"type": "string"}}, "required": ["customer"],
}  # fmt: skip
SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "filter": {"$ref": "#/$defs/Filter"},
        "limit": {"type": "integer"},
        "dotted.name": {"type": "string"},
        "who": {"anyOf": [{"$ref": "#/$defs/Filter"}, {"type": "null"}]},
    },
    "required": ["filter", "limit"],
    "additionalProperties": False,
    "$defs": {"Filter": FILTER, "Unused": {"type": "string"}},
}
SEARCH = McpDescriptor("search", "Looks things up.", SCHEMA)
ORDER = OpenApiDescriptor(
    "PUT",
    "/customers/{id}/orders",
    "Orders.",
    {
        "type": "object",
        "properties": {
            "id_path": {"type": "integer"},
            "id": {"type": "string"},
            "verbose": {"type": "boolean"},
            "X-Tenant": {"type": "string"},
            "lines": {"type": "array"},
        },
        "required": ["id_path", "id"],
        "additionalProperties": False,
    },
    (
        Argument("id_path", "id", "path"),
        Argument("verbose", "verbose", "query", "form"),
        Argument("X-Tenant", "X-Tenant", "header"),
        Argument("id", "id", "field"),
        Argument("lines", "lines", "field"),
    ),
    "application/json",
)


def target(*bound: Bound, descriptor: McpDescriptor | OpenApiDescriptor = SEARCH) -> OperationTarget:
    return OperationTarget(NOBODY, "team/shop", NOBODY, 1, Http("https://shop.example.com"), descriptor, bound)


def request(name: str, value: Json, **more: Any) -> Bound:
    return Bound(Place.REQUEST, name, value, **more)


class TestTheSchemaThatTheModelSees:
    def test_a_bound_parameter_is_gone_from_properties_and_from_what_is_required(self) -> None:
        """B50."""
        seen = bound_schema(SEARCH, [request("limit", 5)])
        assert set(seen["properties"]) == {"filter", "dotted.name", "who"} and seen["required"] == ["filter"]
        assert "limit" in SCHEMA["properties"], "the descriptor itself is left as it is"

    def test_a_nested_one_is_gone_through_references_and_the_definition_with_it(self) -> None:
        """B50, nested too. The object that holds it need not be sent, for the bound value makes it."""
        seen = bound_schema(SEARCH, [request("filter.customer", 7), request("who.customer", 7)])
        assert "customer" not in json.dumps(seen) and "Unused" not in json.dumps(seen)
        assert seen["properties"]["filter"]["properties"] == {"state": {"type": "string"}}
        assert seen["required"] == ["limit"]
        assert compile_schema(json.dumps(seen)).faults({"limit": 3}) == ()

    def test_what_nobody_chose_is_gone_as_well(self) -> None:
        seen = bound_schema(SEARCH, [request("limit", None, is_sent=False)])
        assert "limit" not in seen["properties"]

    def test_without_bindings_the_schema_is_the_descriptors_own(self) -> None:
        assert bound_schema(SEARCH, []) is SCHEMA

    def test_a_schema_that_refers_to_itself_ends(self) -> None:
        schema = {
            "type": "object", "properties": {"a": {"type": "string"}, "next": {"$ref": "#"}}, "required": ["a"],
        }  # fmt: skip
        seen = bound_schema(McpDescriptor("t", "", schema), [request("next.next.a", "x")])
        assert "a" in seen["properties"] and "a" not in seen["properties"]["next"]["properties"]["next"]["properties"]

    @pytest.mark.parametrize(
        ("place", "name", "path"),
        [
            (Place.PATH, "id", ("id_path",)),
            (Place.REQUEST, "id", ("id",)),
            (Place.QUERY, "verbose", ("verbose",)),
            (Place.HEADER, "x-tenant", ("X-Tenant",)),
            (Place.QUERY, "id", None),
            (Place.REQUEST, "lines.0", None),
        ],
    )
    def test_an_openapi_target_is_found_by_its_place(self, place: Place, name: str, path: Json) -> None:
        assert path_of(ORDER, place, name) == path

    def test_an_mcp_target_is_found_by_its_whole_name_first(self) -> None:
        assert path_of(SEARCH, Place.REQUEST, "dotted.name") == ("dotted.name",)
        assert path_of(SEARCH, Place.REQUEST, "filter.customer") == ("filter", "customer")
        assert path_of(SEARCH, Place.PATH, "limit") is None and path_of(SEARCH, Place.REQUEST, "nothing") is None
        assert path_of(McpDescriptor("t", "", {"type": "object"}), Place.REQUEST, "a.b") == ("a", "b")
        assert is_required(SEARCH, ("filter", "customer")) and not is_required(SEARCH, ("who", "customer"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["filter", "customer", "state", "limit", "filter.customer", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
SENT = st.dictionaries(
    st.sampled_from(["filter", "customer", "limit", "filter.customer", "who", "x"]), JSON, max_size=6
)


class TestTheFinalArguments:
    @given(SENT, JSON, JSON)
    def test_the_bound_value_always_wins(self, sent: dict[str, Json], customer: Json, limit: Json) -> None:
        """B50: the model's value for it is dropped, nested too, however it is spelt; what is not bound stays."""
        made = final_arguments(target(request("filter.customer", customer), request("limit", limit)), sent)
        assert made["filter"]["customer"] == customer and made["limit"] == limit
        assert "filter.customer" not in made
        untouched = {"customer", "who", "x"}
        assert {name: made.get(name) for name in untouched} == {name: sent.get(name) for name in untouched}
        if isinstance(sent.get("filter"), dict):
            others = {name: value for name, value in sent["filter"].items() if name != "customer"}
            assert {name: value for name, value in made["filter"].items() if name != "customer"} == others

    @given(SENT)
    def test_what_nobody_chose_is_sent_by_nobody(self, sent: dict[str, Json]) -> None:
        bound = target(request("filter.customer", None, is_sent=False), request("limit", None, is_sent=False))
        made = final_arguments(bound, sent)
        assert "limit" not in made and "filter.customer" not in made
        assert not isinstance(made.get("filter"), dict) or "customer" not in made["filter"]

    @given(SENT, JSON)
    def test_the_arguments_that_were_sent_are_left_as_they_were(self, sent: dict[str, Json], value: Json) -> None:
        before = json.dumps(sent)
        final_arguments(target(request("filter.customer", value)), sent)
        assert json.dumps(sent) == before

    def test_one_name_in_two_places_is_two_parameters(self) -> None:
        bound = target(Bound(Place.PATH, "id", 7), Bound(Place.HEADER, "X-Tenant", "t"), descriptor=ORDER)
        sent = {"id_path": 8, "id": "mine", "X-Tenant": "other", "x-tenant": "third"}
        assert final_arguments(bound, sent) == {"id_path": 7, "id": "mine", "X-Tenant": "t", "x-tenant": "third"}
        assert without_bound(bound, {"id_path": 8, "id": "mine"}) == {"id": "mine"}


class TestValues:
    @pytest.mark.parametrize(
        ("path", "text", "inputs", "value"),
        [
            (("limit",), "12", {}, 12),
            (("limit",), "%%n%%", {"n": "12"}, 12),
            (("filter", "state"), "open", {}, "open"),
            (("filter", "state"), "12", {}, "12"),
            (("filter", "state"), "%%n%%", {"n": "%%m%%", "m": "x"}, "%%m%%"),
            (
                ("filter",),
                '{"state": "%%n%%"}',
                {"n": '", "customer": 9, "x": "'},
                {"state": '", "customer": 9, "x": "'},
            ),
            (("filter",), "%%n%%", {"n": '{"state": "a"}'}, {"state": "a"}),
        ],
    )
    def test_a_value_is_of_its_parameters_type_and_filled_in_once(
        self, path: tuple[str, ...], text: str, inputs: dict[str, str], value: Json
    ) -> None:
        """F56: a value is never scanned again, and adds no fields."""
        assert bound_value(SEARCH, path, text, inputs) == value

    @pytest.mark.parametrize(
        ("path", "text", "inputs"),
        [
            (("limit",), "many", {}),
            (("limit",), "true", {}),
            (("limit",), "1.5", {}),
            (("limit",), '"12"', {}),
            (("filter",), '{"state": %%n%%}', {"n": '"a", "customer": 9'}),
            (("filter",), "[]", {}),
        ],
    )
    def test_a_value_of_another_type_is_refused(self, path: tuple[str, ...], text: str, inputs: dict[str, str]) -> None:
        with pytest.raises(Unfit):
            bound_value(SEARCH, path, text, inputs)


def binding(**fields: Any) -> OperationBinding:
    return OperationBinding(**{"name": "search", "external_operation_id": NOBODY, **fields})


VERSION = OperationVersion(1, SEARCH, approval_mode=ApprovalMode.DESTRUCTIVE, limit_seconds=30, limit_bytes=1000)


class TestWhatABindingMaySay:
    @pytest.mark.parametrize(
        ("fields", "pointer"),
        [
            ({"approval_mode": ApprovalMode.NEVER}, "/approvalMode"),
            ({"limit_seconds": 31.0}, "/limitSeconds"),
            ({"limit_bytes": 1001}, "/limitBytes"),
            ({"request_bindings": (NamedValue("nothing", "1"),)}, "/requestBindings/0"),
            ({"path_bindings": (NamedValue("limit", "1"),)}, "/pathBindings/0"),
            ({"request_bindings": (NamedValue("limit", "x"),)}, "/requestBindings/0"),
            ({"request_bindings": (NamedValue("filter.state", "x"), NamedValue("filter", "{}"))}, "/requestBindings/1"),
        ],
    )
    def test_it_loosens_nothing_and_its_targets_exist(self, fields: dict[str, Any], pointer: str) -> None:
        """interactions.md: a binding may tighten these, never loosen them."""
        (fault,) = faults_beside("/b", binding(**fields), VERSION)
        assert fault.pointer == f"/b{pointer}"

    def test_it_may_tighten(self) -> None:
        tight = binding(approval_mode=ApprovalMode.ALWAYS, limit_seconds=1.0, limit_bytes=10, is_idempotent=False)
        assert list(faults_beside("", tight, VERSION)) == [] == list(faults_of_bindings([("", tight)]))

    @pytest.mark.parametrize(
        ("fields", "pointer"),
        [
            ({"external_operation_id": None, "operation": "x"}, ""),
            ({"is_idempotent": True}, "/isIdempotent"),
            ({"limit_seconds": 0.0}, "/limitSeconds"),
            ({"request_bindings": (NamedValue("a", "%%typo%%"),)}, "/requestBindings/0/value"),
            ({"prompt_guidance": "Use %%typo%%."}, "/promptGuidance"),
            ({"prompt_guidance": "For %%customer%%.", "request_bindings": (NamedValue("a", "%%customer%%"),)}, "/promptGuidance"),
            ({"authentication_header": AuthenticationHeader("X", secret_input_name="typo")}, "/authenticationHeader/secretInputName"),
            ({"authentication_header": AuthenticationHeader("X")}, "/authenticationHeader"),
            ({"authentication_header": AuthenticationHeader("Host", secret_input_name="k")}, "/authenticationHeader/headerName"),
            ({"authentication_header": AuthenticationHeader("a b", secret_input_name="k")}, "/authenticationHeader/headerName"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_in_itself_is_told_with_its_place(self, fields: dict[str, Any], pointer: str) -> None:
        """interactions.md: of an input that goes into calls the model sees nothing, not by way of guidance either."""
        found = list(
            faults_of_bindings(
                [("/b", binding(**fields))], inputs=["q", "customer"], prompt_inputs=["q"], secret_inputs=["k"]
            )
        )
        assert [fault.pointer for fault in found] == [f"/b{pointer}"]

    @pytest.mark.parametrize(
        ("names", "count"),
        [
            (["read", "write"], 0),
            (["read", "read"], 1),
            (["read_file", "read-file"], 1),
            (["Read", "read"], 1),
            (["list_l", "list_1", "list_I"], 2),
            (["pass"], 1),
            (["read_tool_result"], 1),
            (["r\u0435ad"], 1),
            (["a b", "", "x" * 65], 3),
        ],
    )
    def test_names_of_tools_are_told_apart_by_everybody(self, names: list[str], count: int) -> None:
        """F53: look-alike names."""
        assert len(faults_of_tool_names((f"/{index}", name) for index, name in enumerate(names))) == count


class TestWhatAServerSaysAnew:
    READS = McpDescriptor("t", "Reads.", {"type": "object"}, read_only_hint=True, idempotent_hint=True)
    WRITES = McpDescriptor("t", "Writes.", {"type": "object"})

    def test_annotations_never_lower_the_approval_that_is_required(self) -> None:
        """F53."""
        first = first_version(self.WRITES)
        assert is_gated(first.approval_mode, first.descriptor)
        second = next_version(first, self.READS)
        assert (second.number, second.approval_mode) == (2, ApprovalMode.ALWAYS)
        assert (
            is_gated(second.approval_mode, second.descriptor) and not second.is_read_only and not second.is_idempotent
        )
        third = next_version(second, self.WRITES)
        assert third.approval_mode is ApprovalMode.ALWAYS

    def test_what_turns_harmful_is_gated_again_and_neither_repeated_nor_run_beside_others(self) -> None:
        first = first_version(self.READS)
        assert first.is_read_only and first.is_idempotent and not is_gated(first.approval_mode, first.descriptor)
        freed = with_settings(first, OperationSettings(approval_mode=ApprovalMode.NEVER))
        second = next_version(freed, self.WRITES)
        assert (
            is_gated(second.approval_mode, second.descriptor) and not second.is_read_only and not second.is_idempotent
        )

    def test_the_operators_word_holds_on(self) -> None:
        decided = with_settings(
            first_version(self.WRITES),
            OperationSettings(
                ApprovalMode.NEVER, is_idempotent=True, is_read_only=True, limit_seconds=5.0, limit_bytes=9
            ),
        )
        after = next_version(decided, replace(self.WRITES, description="Writes well."))
        assert (after.approval_mode, after.is_idempotent, after.is_read_only) == (ApprovalMode.NEVER, True, True)
        assert (after.number, after.limit_seconds, after.limit_bytes) == (3, 5.0, 9)
        assert with_settings(after, OperationSettings(limit_bytes=9)) is after

    @pytest.mark.parametrize(
        ("method", "is_idempotent", "is_read_only"),
        [("GET", True, True), ("HEAD", True, True), ("PUT", True, False), ("DELETE", True, False), ("OPTIONS", True, False),
         ("POST", False, False), ("PATCH", False, False)],
    )  # fmt: skip
    def test_a_method_says_what_may_be_repeated(self, method: str, is_idempotent: bool, is_read_only: bool) -> None:
        version = first_version(replace(ORDER, method=method))
        assert (version.is_idempotent, version.is_read_only) == (is_idempotent, is_read_only)
