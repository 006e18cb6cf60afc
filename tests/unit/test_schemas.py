"""Schemas that others wrote, and JSON that models wrote (spec/interactions.md, solutionSchema; B33, B43, F25, F53)."""

import json
import time

import pytest

from folkmoot.domain.json_text import MAX_CHARACTERS, Unreadable, read_json
from folkmoot.domain.schema_reports import MAX_LENGTH, MAX_SENTENCES
from folkmoot.domain.schemas import canonical, check_schema, compile_schema, normal, parse_arguments
from folkmoot.kernel.errors import BadDefinition

ANSWER = json.dumps(
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["answer", "reason"],
        "properties": {"answer": {"type": "string", "maxLength": 8}, "reason": {"type": "string"}},
    }
)


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


class TestArguments:
    @pytest.mark.parametrize("text", ["", "  \n\t ", "\ufeff", "{}"])
    def test_empty_means_no_arguments(self, text: str) -> None:
        assert parse_arguments(text) == {}

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": [1, {"b": "}"}]}',
            '```json\n{"a": [1, {"b": "}"}]}\n```',
            '```\n{"a": [1, {"b": "}"}]}```',
            'Here you are:\n```json\n{"a": [1, {"b": "}"}]}\n```\nIs that right?',
            'Sure! {"a": [1, {"b": "}"}]} Done.',
            '\ufeff {"a": [1, {"b": "}"}]}\n',
            json.dumps('{"a": [1, {"b": "}"}]}'),
        ],
    )
    def test_an_object_in_a_fence_prose_or_a_string_is_read(self, text: str) -> None:
        """B33: structured replies in code fences or nearly right are read."""
        assert parse_arguments(text) == {"a": [1, {"b": "}"}]}

    def test_a_code_fence_inside_a_value_is_no_fence(self) -> None:
        assert parse_arguments('```json\n{"code": "```py\\nx\\n```"}\n```') == {"code": "```py\nx\n```"}

    def test_raw_line_breaks_in_strings_are_read(self) -> None:
        assert parse_arguments('{"a": "one\ntwo\ttabs"}') == {"a": "one\ntwo\ttabs"}

    @pytest.mark.parametrize(
        "text", ['{"a":1}{"a":2}', '{"a":1} or {"b":2}', '[{"a":1}]x', 'x [1] {"a":1}', '{"a":{"b":1}', '{"a":1}}']
    )
    def test_which_object_is_meant_is_never_guessed(self, text: str) -> None:
        """B43: arguments that do not parse never run."""
        answer = parse_arguments(text)
        assert isinstance(answer, str)
        assert "not JSON" in answer

    @pytest.mark.parametrize(
        ("text", "kind"),
        [("[1]", "an array"), ("3", "a number"), ("null", "null"), ("true", "a boolean"), ('"x"', "a string")],
    )
    def test_what_is_no_object_is_named(self, text: str, kind: str) -> None:
        answer = parse_arguments(text)
        assert isinstance(answer, str)
        assert f"The arguments are {kind}, not an object" in answer

    def test_of_duplicate_keys_the_last_wins(self) -> None:
        """F25: a documented normal form."""
        assert parse_arguments('{"a":1,"a":2}') == {"a": 2}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('{"a":NaN}', "NaN"),
            ('{"a":[-Infinity]}', "-Infinity"),
            ('{"a":1e999}', "too large"),
            (f'{{"a":{"9" * 5000}}}', "5,000 digits"),
            (f'{{"a":-{"9" * 5000}}}', "digits"),
            (nested(100_000), "nested deeper"),
            ("[" * 100_000, "nested deeper"),
            ("x" * (MAX_CHARACTERS + 1), "characters"),
            ('{"a":"' + '\\"' * 400_000, "not JSON"),
            ('{"a":' + '"' * 400_001, "not JSON"),
        ],
    )
    def test_hostile_text_is_refused_with_a_sentence_at_once(self, text: str, words: str) -> None:
        """F25: NaN, 5,000-digit integers, nesting of 100,000, large texts: a clear refusal, never an exception."""
        began = time.perf_counter()
        answer = parse_arguments(text)
        assert time.perf_counter() - began < 1
        assert isinstance(answer, str)
        assert words in answer
        assert len(answer) < 400
        assert answer.endswith(".")

    def test_a_fenced_refusal_names_the_fault_inside(self) -> None:
        answer = parse_arguments('```json\n{"a": 1e999}\n```')
        assert isinstance(answer, str)
        assert "too large" in answer

    def test_brackets_in_strings_are_no_nesting(self) -> None:
        assert parse_arguments(json.dumps({"a": "[" * 5_000 + '\\"'})) == {"a": "[" * 5_000 + '\\"'}

    def test_nul_and_lone_surrogates_become_visible(self) -> None:
        """B25, F25: the same form as the store writes."""
        assert parse_arguments('{"a\\u0000":"\\ud83d \\ud83d\\ude00 \\u0000"}') == {"a\u2400": "\\ud83d 😀 \u2400"}
        assert parse_arguments('{"a":"\ud800"}') == {"a": "\\ud800"}

    def test_a_long_whole_number_within_bounds_is_kept_exactly(self) -> None:
        assert parse_arguments('{"a":12345678901234567890123}') == {"a": 12345678901234567890123}


class TestCanonical:
    def test_order_blanks_and_whole_floats_make_no_difference(self) -> None:
        assert canonical({"b": 1.0, "a": [True, None]}) == canonical(json.loads('{ "a" : [true, null], "b" : 1 }'))
        assert canonical({"b": 1.0, "a": (1,)}) == '{"a":[1],"b":1}'

    def test_true_is_not_one_and_text_is_no_number(self) -> None:
        values: tuple[object, ...] = (True, 1, "1", "true", 1.5, None, [], {}, "")
        assert len({canonical(value) for value in values}) == len(values)

    def test_the_text_reads_back_as_the_normal_form(self) -> None:
        value: dict[str, object] = {"ä": "\x00\ud800", "n": -0.0, "big": 1e300, "list": [float("nan")]}
        assert json.loads(canonical(value)) == normal(value)
        canonical(value).encode()

    def test_normalising_twice_changes_nothing(self) -> None:
        value: dict[str, object] = {"\x00": ["\ud800", 2.0, float("inf")]}
        assert normal(normal(value)) == normal(value)


class TestCheckSchema:
    @pytest.mark.parametrize(
        "schema",
        [
            ANSWER,
            "true",
            "{}",
            '{"$schema":"https://json-schema.org/draft/2020-12/schema#","$id":"https://example.com/a"}',
            '{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}}}',
            '{"$defs":{"node":{"$anchor":"n","properties":{"next":{"$ref":"#n"}}}},"$ref":"#/$defs/node"}',
            '{"const":{"$ref":"https://example.com/x"},"examples":[{"$ref":"#"}],"properties":{"$ref":{"type":"string"}}}',
        ],
    )
    def test_a_good_schema_has_no_faults(self, schema: str) -> None:
        assert check_schema(schema, "/solutionSchema") == ()
        compile_schema(schema)

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            ("nope", "not JSON"),
            ("", "not JSON"),
            ("[]", "an array; a JSON Schema is an object"),
            ("null", "null; a JSON Schema is an object"),
            ('{"type":"strng"}', "no type"),
            ('{"properties":{"a":5}}', "/properties/a"),
            ('{"required":"a"}', "/required"),
            ('{"minLength":-1}', "/minLength"),
            ('{"pattern":"("}', "no regular expression"),
            ('{"pattern":"((a{1000}){1000}){1000}"}', "too large"),
            ('{"$schema":"http://json-schema.org/draft-07/schema#"}', "Only draft 2020-12"),
            ('{"$ref":"#/$defs/none"}', "leads nowhere"),
            ('{"$ref":5}', "/$ref"),
            ('{"default":NaN}', "NaN"),
            (f'{{"maximum":{"9" * 5000}}}', "digits"),
            (json.dumps({"description": "x" * 65_536}), "65,536"),
            (nested(65), "64 levels"),
            (nested(100_000), "bytes"),
        ],
    )
    def test_what_is_no_schema_is_refused_in_a_sentence(self, schema: str, words: str) -> None:
        faults = check_schema(schema, "/solutionSchema")
        assert faults
        assert all(fault.pointer == "/solutionSchema" and len(fault.message) < 500 for fault in faults)
        assert words in faults[0].message
        with pytest.raises(BadDefinition, match="cannot be used"):
            compile_schema(schema)

    @pytest.mark.parametrize(
        "reference",
        [
            "https://example.com/s.json",
            "file:///etc/passwd",
            "other.json",
            "//host/x",
            "urn:x:y",
            "https://json-schema.org/draft/2020-12/schema",
        ],
    )
    @pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
    def test_a_reference_out_of_the_schema_is_refused_wherever_it_stands(self, keyword: str, reference: str) -> None:
        """F53: remote refs."""
        schema = json.dumps({"properties": {"a": {"anyOf": [{"items": {keyword: reference}}]}}})
        (fault,) = check_schema(schema, "/s")
        assert "fetched from nowhere" in fault.message
        assert f"/properties/a/anyOf/0/items/{keyword}" in fault.message

    def test_a_reference_made_remote_by_an_inner_id_is_refused(self) -> None:
        (fault,) = check_schema('{"$defs":{"a":{"$id":"http://127.0.0.1/x","$ref":"#/y"}}}', "/s")
        assert "$id" in fault.message

    @pytest.mark.parametrize(
        "schema",
        [
            '{"$ref":"#"}',
            '{"allOf":[{"$ref":"#"}]}',
            '{"not":{"anyOf":[{"$ref":"#"}]}}',
            '{"$dynamicAnchor":"x","$dynamicRef":"#x"}',
            '{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}',
            '{"dependentSchemas":{"a":{"$ref":"#"}}}',
            '{"unknown":{"$ref":"#/unknown"},"properties":{"x":{"$ref":"#/unknown"}}}',
        ],
    )
    def test_a_circle_that_never_moves_on_is_refused(self, schema: str) -> None:
        (fault,) = check_schema(schema, "/s")
        assert "leads back" in fault.message

    def test_alternatives_that_double_at_each_reference_are_refused(self) -> None:
        """F53: 2 to the 40th checks of one value out of 3 KB."""
        definitions: dict[str, object] = {
            f"d{n}": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"not": {"$ref": f"#/$defs/d{n + 1}"}}]}
            for n in range(20)
        }
        (fault,) = check_schema(json.dumps({"$defs": definitions | {"d20": {}}, "$ref": "#/$defs/d0"}), "/s")
        assert "1,000 schemas" in fault.message

    def test_in_a_value_the_pointer_leads_to_the_place(self) -> None:
        faults = check_schema({"properties": {"a/b": {"type": "x"}}}, "/version/solutionSchema")
        assert [fault.pointer for fault in faults] == ["/version/solutionSchema/properties/a~1b/type"]

    def test_a_value_that_holds_itself_is_refused(self) -> None:
        schema: dict[str, object] = {}
        schema["not"] = schema
        (fault,) = check_schema(schema, "/s")
        assert "nested" in fault.message


class TestValidator:
    def test_what_fits_has_no_faults(self) -> None:
        assert compile_schema(ANSWER).faults({"answer": "keep", "reason": "since"}) == ()

    def test_each_fault_says_where_and_what(self) -> None:
        faults = compile_schema(ANSWER).faults({"answer": "far too long", "other": 1})
        assert faults == (
            "The value lacks 'reason'.",
            "The value at /answer, a string, is longer than 8 characters.",
            "The value at /other is not allowed; leave it out.",
        )

    def test_the_same_text_is_compiled_once(self) -> None:
        assert compile_schema(ANSWER) is compile_schema(ANSWER)

    @pytest.mark.parametrize(
        ("schema", "value", "words"),
        [
            ('{"const":3}', 4, "is not 3"),
            ('{"enum":[1,2]}', 4, "1 or 2"),
            ('{"anyOf":[{"type":"integer"},{"type":"null"}]}', "x", 'is not of type "integer"; is not of type "null"'),
            ('{"oneOf":[{"type":"integer"},{"minimum":2}]}', 3, "fits 2 of the 2 alternatives"),
            ('{"not":{"type":"string"}}', "x", "'not' excludes"),
            ('{"if":{"type":"string"},"then":{"minLength":2}}', "x", "shorter than 2"),
            ('{"if":{"type":"string"},"else":{"minimum":2}}', 1, "less than the minimum of 2"),
            ('{"propertyNames":{"maxLength":2}}', {"abc": 1}, "the name 'abc'"),
            ('{"patternProperties":{"^a":{"type":"null"}}}', {"abc": 1}, "/abc"),
            ('{"prefixItems":[{"type":"null"}],"items":false}', [None, 1], "/1 is not allowed"),
            ('{"contains":{"type":"null"}}', [1], "does not fit"),
            ('{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}', {"b": 1}, "does not fit"),
            ('{"dependentSchemas":{"a":{"required":["b"]}}}', {"a": 1}, "lacks 'b'"),
            (
                '{"$defs":{"n":{"$anchor":"n","properties":{"next":{"$ref":"#n"}},"required":["v"]}},"$ref":"#n"}',
                {"v": 1, "next": {}},
                "/next lacks 'v'",
            ),
            ("false", 1, "not allowed"),
        ],
    )
    def test_every_keyword_is_explained(self, schema: str, value: object, words: str) -> None:
        (fault,) = compile_schema(schema).faults(value)
        assert words in fault

    def test_sentences_are_few_short_and_without_the_value(self) -> None:
        schema = json.dumps({"items": {"type": "integer"}, "maxItems": 1})
        faults = compile_schema(schema).faults(["secret" * 10] * 100_000)
        assert len(faults) == MAX_SENTENCES
        assert faults[-1] == "There is more that does not fit."
        assert all(len(fault) <= MAX_LENGTH and "secret" not in fault for fault in faults)

    def test_long_names_are_cut(self) -> None:
        (fault,) = compile_schema('{"additionalProperties":false}').faults({"x" * 100_000: 1})
        assert len(fault) <= MAX_LENGTH

    @pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(?=(a+)+$)b", r"^(a*)*\1b$"])
    def test_a_catastrophic_pattern_ends(self, pattern: str) -> None:
        """F53: catastrophic patterns."""
        began = time.perf_counter()
        assert compile_schema(json.dumps({"pattern": pattern})).faults("a" * 5_000 + "!")
        assert time.perf_counter() - began < 5

    @pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
    def test_alternatives_nested_in_the_value_end(self, keyword: str) -> None:
        """F53: 2 to the 40th ways to fail."""
        tree = {
            keyword: [
                {"type": "array", "items": {"$ref": "#/$defs/t"}},
                {"items": {"$ref": "#/$defs/t"}, "minItems": 1},
            ]
        }
        value: object = []
        for _ in range(40):
            value = [value]
        began = time.perf_counter()
        compile_schema(json.dumps({"$defs": {"t": tree}, "$ref": "#/$defs/t"})).faults(value)
        assert time.perf_counter() - began < 5

    def test_a_large_value_with_many_alternatives_is_refused(self) -> None:
        schema = json.dumps({"items": {"anyOf": [{"const": n} for n in range(900)]}})
        (fault,) = compile_schema(schema).faults([0] * 100_000)
        assert "too large" in fault

    @pytest.mark.parametrize("levels", [200, 100_000])
    def test_a_value_nested_too_deeply_is_refused(self, levels: int) -> None:
        """F25: native code would overflow its stack and take the process along."""
        value: object = 1
        for _ in range(levels):
            value = [value]
        (fault,) = compile_schema('{"items":{"$ref":"#"}}').faults(value)
        assert "nested" in fault

    def test_lone_surrogates_are_checked_in_their_visible_form(self) -> None:
        schema = json.dumps({"properties": {"\\ud800": {"type": "null"}}})
        (fault,) = compile_schema(schema).faults({"\ud800": 1})
        assert fault == 'The value at /\\ud800, a number, is not of type "null".'


def test_text_within_the_bounds_is_read_and_beyond_refused() -> None:
    assert read_json(nested(128))["a"]
    with pytest.raises(Unreadable):
        read_json(nested(129))
