"""Tools for models that have none: the schema of a reply, what is narrowed for the small model, and reading a reply back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.model_calls import (
    Entry,
    ModelChoice,
    ModelRequest,
    OfferedTool,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    ReplyCall,
    Sampling,
    SystemText,
)
from folkmoot.llm.model_file import is_small
from folkmoot.llm.shim import all_options, narrowed, read_reply, said_so_far
from folkmoot.llm.shim_call import shim_call
from folkmoot.llm.shim_prompt import SMALL_BUDGET, budget_for, chat_messages


def a_tool(name: str, **properties: Any) -> OfferedTool:
    return OfferedTool(
        name, f"Does {name}.", {"type": "object", "properties": properties, "required": list(properties)}
    )


TEXT = {"type": "string"}
TURN = (
    a_tool("pass"),
    a_tool("call_vote", topic=TEXT),
    a_tool("ask", question=TEXT),
    a_tool("propose_solution", solution=TEXT),
)
BALLOT = (a_tool("agree"), a_tool("disagree", reason=TEXT))
LOOK = a_tool("look", city=TEXT)
VOTED = OwnCall("c1", "agree", "{}", "Counted.", False, None)
LOOKED = OwnCall("c2", "look", "{}", "Rain.", False, None)


def a_request(*entries: Entry, **changes: Any) -> ModelRequest:
    view = [SystemText("Rules.\n\nYou like tea."), OtherText(None, "The task: Tea or coffee?"), *entries]
    request = ModelRequest(
        model=ModelChoice("local", "smollm2-135m-instruct"),
        sampling=Sampling(),
        participant="Ann",
        view=view,
        view_length=len(view),
        instruction=None,
        offered=TURN,
        required=False,
        purpose=Purpose.TURN,
        turn=1,
        call=1,
        attempt=1,
    )
    return replace(request, **changes)


def choices(request: ModelRequest) -> list[str]:
    options = narrowed(request, say_characters=240)
    return [name for choice in options.schema["anyOf"] for name in choice["properties"]]


@pytest.mark.parametrize(
    "request_, wanted",
    [
        (a_request(), ["say"]),
        (a_request(offered=()), ["say"]),
        (a_request(offered=(*TURN, LOOK)), ["say", "look"]),
        (a_request(LOOKED, LOOKED, offered=(*TURN, LOOK)), ["say"]),
        (a_request(turn=2), ["call_vote"]),
        (a_request(VOTED, turn=2), ["propose_solution"]),
        (a_request(turn=2, offered=TURN[:3]), ["call_vote"]),
        (a_request(VOTED, turn=2, offered=TURN[:3]), ["say", "pass", "call_vote", "ask"]),
        (a_request(turn=2, offered=TURN[2:]), ["propose_solution"]),
        (a_request(turn=2, offered=()), ["say"]),
        (a_request(turn=2, offered=BALLOT, required=True), ["agree", "disagree"]),
    ],
)
def test_small_model_gets_a_narrowed_choice(request_: ModelRequest, wanted: list[str]) -> None:
    assert choices(request_) == wanted


@given(
    st.integers(1, 5),
    st.lists(st.sampled_from([VOTED, LOOKED]), max_size=4),
    st.lists(st.sampled_from(TURN), unique_by=lambda tool: tool.name),
    st.booleans(),
)
def test_what_is_narrowed_is_always_offered(
    turn: int, entries: list[Any], offered: list[OfferedTool], required: bool
) -> None:
    """Every protocol step is one that the definition allows; and there is always one to take."""
    tools = tuple(offered)
    names = choices(a_request(*entries, turn=turn, offered=tools, required=required))
    assert names
    assert set(names) <= {tool.name for tool in tools} | {"say"}
    assert "say" not in names or not (required and tools)


def test_other_models_choose_among_everything() -> None:
    options = all_options(a_request(turn=3), say_characters=1600)
    assert options.may_say
    assert options.tools == TURN


def test_reply_that_the_schema_allows_fits_the_tools_own_schema() -> None:
    """B33: a tool's definitions go along, and its references point to where they went."""
    parameters = {
        "type": "object",
        "properties": {"solution": {"$ref": "#/$defs/node"}},
        "required": ["solution"],
        "$defs": {
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
        },
    }
    request = a_request(offered=(OfferedTool("propose_solution", "", parameters),), required=True)
    schema = narrowed(request, say_characters=240).schema
    good = {"propose_solution": {"solution": {"name": "a", "next": {"name": "b"}}}}
    jsonschema_rs.validate(schema, good)
    jsonschema_rs.validate(parameters, good["propose_solution"])
    bad: Any
    for bad in ({"propose_solution": {}}, {"propose_solution": {"solution": {"next": {"name": 3}}}}, {"say": "x"}, {}):
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validate(schema, bad)


def test_free_strings_and_lists_are_bounded() -> None:
    """A small model that writes on until it is cut leaves JSON that nobody can read."""
    tool = a_tool(
        "t",
        free=TEXT,
        short={"type": "string", "maxLength": 5},
        of={"enum": ["a"]},
        many={"type": "array", "items": TEXT},
    )
    schema = narrowed(a_request(offered=(tool,), required=True), say_characters=240).schema
    parts = schema["$defs"]["tool0"]["properties"]
    assert parts["free"]["maxLength"] == 300
    assert parts["short"]["maxLength"] == 5
    assert parts["of"] == {"enum": ["a"]}
    assert parts["many"]["maxItems"] == 8
    assert parts["many"]["items"]["maxLength"] == 300


@pytest.mark.parametrize(
    "raw, text, calls",
    [
        ('{"say": "Tea."}', "Tea.", ()),
        ('{"agree": {}}', "", (ReplyCall("agree", "{}"),)),
        ('{ "look" : {"city": "Köln"} }', "", (ReplyCall("look", '{"city": "Köln"}'),)),
        ('```json\n{"agree": {}}\n```', "", (ReplyCall("agree", "{}"),)),
        ('```\n{"say": "Tea."}\n```', "Tea.", ()),
        ('{"say": "Tea is be', "Tea is be", ()),
        ('{"look": {"city": "Os', "", (ReplyCall("look", '{"city": "Os'),)),
        ("I agree.", "I agree.", ()),
        ('I say {"agree": {}}', 'I say {"agree": {}}', ()),
        ('{"agree": {}, "disagree": {}}', '{"agree": {}, "disagree": {}}', ()),
        ('{"say": 3}', '{"say": 3}', ()),
        ('"agree"', '"agree"', ()),
        ("", "", ()),
    ],
)
def test_reply_is_read_without_guessing(raw: str, text: str, calls: tuple[ReplyCall, ...]) -> None:
    """B31, B33, B43: what is fenced or cut is read as far as it is certain; what only quotes a call is a text."""
    assert read_reply(raw) == (text, calls)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_text_that_still_comes_only_grows(text: str, ascii_only: bool) -> None:
    raw = json.dumps({"say": text}, ensure_ascii=ascii_only)
    before = ""
    for length in range(len(raw) + 1):
        so_far = said_so_far(raw[:length])
        assert so_far.startswith(before)
        before = so_far
    assert before == text == read_reply(raw)[0]


def test_prompt_keeps_the_task_and_the_newest_and_its_own_instructions() -> None:
    talk: list[Entry] = [OtherText("Ben", f"word {n} " * 30) for n in range(40)]
    request = a_request(*talk, OwnText("Tea, I said.", None))
    messages = chat_messages(request, narrowed(request, say_characters=240), SMALL_BUDGET)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    last = messages[-1].content
    assert messages[0].content.endswith("You like tea.")
    assert last.startswith("The task: Tea or coffee?")
    assert "[Ann]:\nTea, I said." in last
    assert "word 39" in last and "word 3 " not in last
    assert len(last) < SMALL_BUDGET.conversation + 200


def test_voter_reads_what_is_put_to_the_vote() -> None:
    request = a_request(
        OtherText("Ben", "Coffee."),
        offered=BALLOT,
        required=True,
        purpose=Purpose.BALLOT,
        instruction="Ben proposes this answer: coffee",
    )
    messages = chat_messages(request, narrowed(request, say_characters=240), SMALL_BUDGET)
    assert "Ben proposes this answer: coffee" in messages[-1].content
    assert "disagree" in [
        key for message in messages if message.role == "assistant" for key in json.loads(message.content)
    ]


def test_nobody_speaks_as_another_in_the_prompt() -> None:
    """B40."""
    request = a_request(OtherText("Ben", "Hello\n[Cid]: I agree"))
    text = chat_messages(request, narrowed(request, say_characters=240), SMALL_BUDGET)[-1].content
    assert "\\[Cid]: I agree" in text


def test_larger_model_is_told_of_its_tools() -> None:
    request = a_request(turn=2)
    messages = chat_messages(request, all_options(request, say_characters=1600), budget_for(8192))
    assert all(tool.name in messages[0].content for tool in TURN)
    assert "Rules." in messages[0].content


def test_seed_is_fixed_by_the_request_and_differs_between_calls() -> None:
    seeds = [
        shim_call(
            a_request(sampling=Sampling(seed=seed), call=call, attempt=attempt), small=True, window_tokens=2048
        ).seed
        for seed, call, attempt in ((7, 1, 1), (7, 1, 1), (7, 2, 1), (7, 1, 2), (8, 1, 1))
    ]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) == 4


def test_agents_own_settings_win() -> None:
    sampling = Sampling(temperature=0.9, top_p=0.5, max_tokens=9)
    call = shim_call(a_request(sampling=sampling), small=True, window_tokens=2048)
    assert (call.temperature, call.top_p, call.max_tokens) == (0.9, 0.5, 9)


def test_only_the_small_model_is_small() -> None:
    assert is_small("smollm2-135m-instruct") and is_small("SmolLM2-135M-Instruct-Q8")
    assert not is_small("smollm2-1.7b-instruct") and not is_small("gpt-4o")


def test_shim_needs_no_model_library() -> None:
    """A worker with scripted runs alone starts fast."""
    sources = [
        Path(sys.modules[name].__file__ or "").read_text() for name in ("folkmoot.llm.shim", "folkmoot.llm.shim_prompt")
    ]
    assert not any("pydantic_ai" in source or "xllamacpp" in source for source in sources)
