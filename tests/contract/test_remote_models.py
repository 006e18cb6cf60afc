"""The conformance suite of the adapters that ask over HTTP: what each sends in any case, and what it makes of what comes back.

Their servers check what they are sent as the providers do. What all adapters do alike is in test_models.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from fake_words import Answer, Asked
from model_requests import BALLOT, KEY, LOOK, a_request, access_to, stored
from models_at_hand import HTTP_PROVIDERS, Subject, subject_of

from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelReply,
    OfferedTool,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    Replay,
    Sampling,
    SystemText,
    Usage,
)

ONE, TWO = UUID(int=1), UUID(int=2)


@pytest_asyncio.fixture(params=("openai", "anthropic", "google"))
async def remote(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    with subject_of(request.param) as made:
        yield made
        await made.close()


# What every provider's adapter sends.

LONG_VIEW: list[Entry] = [
    SystemText("You are Ann."),
    SystemText("Be brief."),
    OtherText(None, "The task."),
    OtherText("Ben", "Coffee.\n[Cid]: me too"),
    OwnText("Let me look.", ONE),
    OwnCall("c1", "look", '{"city": "Oslo"}', "rain", False, ONE),
    OwnCall("c2", "look", "{oops", "no city", True, ONE),
    OwnCall("c3", "my.tool/ö", "", "", False, TWO),
    OwnText("Tea.", TWO),
]


@pytest.mark.parametrize("is_read", [True, False])
async def test_every_conversation_is_sent_in_an_order_that_the_provider_takes(remote: Subject, is_read: bool) -> None:
    """B20, B40: with functions, with others than were called, with none; for a turn, a ballot, a compaction."""
    remote.is_read = is_read
    asked = 0
    for offered, required in (((), False), ((LOOK,), False), (BALLOT, True)):
        for instruction in (None, "Vote."):
            for view in (LONG_VIEW, LONG_VIEW[:3], LONG_VIEW[:2], []):
                request = a_request(
                    remote.play("text"), view=view, offered=offered, required=required, instruction=instruction, purpose=Purpose.COMPACTION
                )  # fmt: skip
                await remote.ask(request)
                asked += 1
    assert remote.seen.refused == [] and remote.seen.accepted == asked


async def test_conversations_at_random_are_accepted(remote: Subject) -> None:
    """B40: whatever is said, called and answered, with whatever is put back of older replies."""
    chance = random.Random(7)
    model = remote.play("thinking-calls")
    made = await remote.ask(a_request(model, offered=(LOOK,)))
    replays = {
        UUID(int=n): Replay(model.provider, model.model_name, json.loads(json.dumps(made.replay))) for n in range(3)
    }
    for _ in range(40):
        view: list[Entry] = []
        for n in range(chance.randrange(30)):
            maker = chance.choice([None, *replays])
            view.append(
                chance.choice(
                    [
                        OtherText(chance.choice([None, "Ben"]), chance.choice(["x", "", "水は冷たい"])),
                        OwnText(chance.choice(["y", " ", ""]), maker),
                        OwnCall(f"c{n}", chance.choice(["look", "a.b", "1"]), chance.choice(["", "{}", "[1]"]), chance.choice(["", "z"]), chance.random() < 0.3, maker),
                    ]
                )
            )  # fmt: skip
        offered = chance.choice([(), (LOOK,), BALLOT])
        await remote.ask(
            a_request(model, view=view, offered=offered, replays=replays, instruction=chance.choice([None, "Vote."]))
        )
    assert remote.seen.refused == []


async def test_two_names_that_look_alike_when_made_safe_stay_apart(remote: Subject) -> None:
    """B40: and calls come back under their own names."""
    offered = tuple(
        OfferedTool(name, name, LOOK.parameters) for name in ("a.b", "a/b", "a_b", "1st", "x" * 80, "x" * 81)
    )

    def answer(asked: Asked) -> Answer:
        return Answer(calls=tuple((name, "{}") for name in asked.tools), finish="calls")

    remote.seen.answer = answer
    reply = await remote.ask(a_request(remote.play("any"), offered=offered))
    assert [call.name for call in reply.calls] == [tool.name for tool in offered]
    assert remote.seen.refused == []


async def test_requirement_to_call_reaches_the_provider(remote: Subject) -> None:
    """B40: where there is nothing to call, no tool settings are sent."""
    musts: list[bool] = []

    def answer(asked: Asked) -> Answer:
        musts.append(asked.must_call)
        return Answer("Fine.")

    remote.seen.answer = answer
    for offered, required in ((BALLOT, True), (BALLOT, False), ((), True)):
        await remote.ask(a_request(remote.play("any"), offered=offered, required=required))
    assert musts == [True, False, False]
    assert not any("tool" in name.lower() for name in remote.seen.bodies[-1])


async def test_functions_with_any_schema_are_taken(remote: Subject) -> None:
    """Branches on top, references, words that one provider does not know."""
    person = {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": "^a+$"}},
        "patternProperties": {"x": {}},
    }
    schemas: list[dict[str, Any]] = [
        {},
        {"anyOf": [LOOK.parameters, {"$ref": "#/$defs/p"}], "$defs": {"p": person}},
        {"$ref": "#/$defs/p", "$defs": {"p": person}},
        {"allOf": [LOOK.parameters, person], "unevaluatedProperties": False},
        {
            "type": "object",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {
                "kind": {"const": "a"}, "who": {"$ref": "#/$defs/p", "title": "Who"}, "free": True, "no": {"not": {"type": "null"}},
                "all": {"allOf": [{"type": "string"}, {"minLength": 2}]}, "n": {"type": ["integer", "null"], "exclusiveMinimum": 0},
            },
            "$defs": {"p": person},
            "additionalProperties": False,
        },
    ]  # fmt: skip
    offered = tuple(OfferedTool(f"f{n}", "A function.", schema) for n, schema in enumerate(schemas))
    before = json.dumps(schemas)
    for _ in range(2):
        await remote.ask(a_request(remote.play("text"), offered=offered))
    assert remote.seen.refused == [] and json.dumps(schemas) == before
    for body in remote.seen.bodies:
        assert all(f'"f{n}"' in json.dumps(body) for n in range(len(schemas))), "a function was left out"


async def test_sampling_is_sent_as_far_as_the_provider_takes_it(remote: Subject) -> None:
    for sampling in (Sampling(1.5, 0.9, 7, 50), Sampling(top_p=0.5), Sampling()):
        await remote.ask(a_request(remote.play("text"), sampling=sampling))
    assert remote.seen.refused == []
    sent = json.dumps(remote.seen.bodies[0])
    assert "50" in sent and "temperature" in sent
    # Anthropic has no seed, and takes either of temperature and top_p
    if remote.provider != "anthropic":
        assert "0.9" in sent and '"seed": 7' in sent
    assert "0.5" in json.dumps(remote.seen.bodies[1])
    assert "temperature" not in json.dumps(remote.seen.bodies[2])


async def test_key_of_each_call_is_the_one_that_is_sent(remote: Subject) -> None:
    """A rotated key counts at once; nothing of it is kept for the next call of another."""
    model = remote.play("text")
    remote.seen.answer = lambda asked: Answer(asked.key)
    keys = []
    for key in (KEY, "sk-new", KEY):
        access = replace(access_to(model, key) or pytest.fail(), model_name="by-another-name")
        keys.append((await remote.ask(a_request(model, access=access))).text)
    assert keys == [KEY, "sk-new", KEY]


async def test_nothing_of_the_environment_goes_out(remote: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """B52: another provider's key or organisation is not sent to whoever speaks the same protocol."""
    for name in (
        *("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "ANTHROPIC_PROFILE"),
    ):  # fmt: skip
        monkeypatch.setenv(name, "not-for-you")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "x-mine: not-for-you")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    await remote.ask(a_request(remote.play("text", api_key_variable=None)))
    headers = remote.seen.headers[0]
    assert not {"authorization", "x-api-key", "x-goog-api-key"} & headers.keys()
    assert "not-for-you" not in json.dumps([headers, remote.seen.paths, remote.seen.bodies])


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("provider, name", [("openai", "gpt-5"), ("anthropic", "claude-opus-4-7")])
async def test_models_that_take_no_sampling_are_sent_none(provider: str, name: str) -> None:
    with subject_of(provider) as made:
        made.seen.answer = lambda asked: Answer("Fine.")
        await made.ask(a_request(made.play(name), sampling=Sampling(0.5, 0.5, None, 100)))
        await made.close()
    assert not {"temperature", "top_p"} & made.seen.bodies[0].keys()


# What they make of an answer.


async def test_reasoning_is_replayed_to_its_maker_alone(remote: Subject) -> None:
    """B41, B24: reasoning is no text, and goes back only to the provider, place and model that made it."""
    maker = remote.play("thinking-calls")
    reply = await remote.ask(a_request(maker, offered=(LOOK,)))
    assert reply.text == "Let me look."
    replay = stored(maker, reply)
    view = [OtherText(None, "Go."), OwnText(reply.text, ONE)]
    view += [OwnCall(f"c{n}", "look", call.arguments_json, "rain", False, ONE) for n, call in enumerate(reply.calls)]
    replays = {ONE: replay}
    renamed = replace(access_to(maker) or pytest.fail(), model_name="text")
    for model, access in ((maker, access_to(maker)), (remote.play("text"), None), (maker, renamed)):
        access = access or access_to(model)
        await remote.ask(a_request(model, view=view, replays=replays, offered=(LOOK,), access=access))
    again, other, renamed_sent = (json.dumps(body) for body in remote.seen.bodies[1:])
    assert "Hmm." in again
    assert "Hmm." not in other and "Hmm." not in renamed_sent
    assert remote.seen.refused == []


async def test_reply_of_reasoning_alone_is_empty(remote: Subject) -> None:
    """B24."""
    reply = await remote.ask(a_request(remote.play("only-thinking")))
    assert (reply.text, reply.calls) == ("", ())


@pytest.mark.parametrize("is_read", [True, False])
async def test_reply_that_breaks_off_is_never_used(remote: Subject, is_read: bool) -> None:
    """B43, B45: a broken stream is a failure, whatever it held, and its tokens are estimated."""
    remote.is_read = is_read
    for play in ("drop", "no-json", "odd", *(("cut",) if is_read else ())):
        failure = await remote.fail(a_request(remote.play(play), offered=(LOOK,)))
        assert failure.failure is FailureClass.UNAVAILABLE, (play, failure)
        assert failure.usage is not None and failure.usage.estimated, play


async def test_failure_in_a_stream_is_classed_like_one_before_it(remote: Subject) -> None:
    failure = await remote.fail(a_request(remote.play("error-in-stream")))
    assert failure.failure is FailureClass.OVERLOADED
    assert failure.usage is not None and failure.usage.estimated


@pytest.mark.parametrize("is_read", [True, False])
async def test_call_cut_off_at_the_token_limit_is_never_used(remote: Subject, is_read: bool) -> None:
    """B43: arguments that were cut to nothing are not 'none'."""
    remote.is_read = is_read
    failure = await remote.fail(a_request(remote.play("length"), offered=(LOOK,)))
    assert failure.failure is FailureClass.INVALID_REQUEST
    assert "maxTokens" in failure.message
    assert failure.usage is not None and failure.usage.output == 13


@pytest.mark.parametrize("is_read", [True, False])
async def test_filtered_reply_is_a_failure_that_counts(remote: Subject, is_read: bool) -> None:
    """B45."""
    remote.is_read = is_read
    for play in ("filtered", "refusal"):
        failure = await remote.fail(a_request(remote.play(play)))
        assert failure.failure is FailureClass.CONTENT_FILTERED
        assert failure.usage is not None and failure.usage.cached_input == 64


async def test_prompt_longer_than_the_window_is_told_as_such(remote: Subject) -> None:
    """Each provider has its own words for it."""
    remote.seen.window_tokens = 50
    remote.seen.answer = lambda asked: Answer("Fine.")
    view: list[Entry] = [OtherText("Ben", "Coffee. " * 50)]
    failure = await remote.fail(a_request(remote.play("any"), view=view))
    assert failure.failure is FailureClass.CONTEXT_TOO_LONG and failure.usage is None
    assert (await remote.ask(a_request(remote.play("any"), view=[OtherText("Ben", "Coffee.")]))).text == "Fine."
    assert remote.seen.too_long == 1


@pytest.mark.parametrize("is_read", [True, False])
async def test_usage_equals_the_providers_own_books(remote: Subject, is_read: bool) -> None:
    """B45: to the token, kind by kind, over a conversation that grows."""
    remote.is_read = is_read
    remote.seen.answer = lambda asked: Answer("Tea " * 40, thinking="Hmm." if asked.number % 2 else "")
    view: list[Entry] = [SystemText("You are Ann. " * 200), OtherText(None, "The task.")]
    told: list[Usage] = []
    for n in range(6):
        reply = await remote.ask(a_request(remote.play("any"), view=view, offered=(LOOK,)))
        assert isinstance(reply, ModelReply)
        told.append(reply.usage)
        view += [OwnText(reply.text, UUID(int=n)), OtherText("Ben", "Coffee " * 60)]
    booked = [entry.counts for entry in remote.seen.books]
    assert [(u.input, u.cached_input, u.cache_write, u.output, u.reasoning) for u in told] == [
        (c.input, c.cached_input, c.cache_write, c.output, c.reasoning) for c in booked
    ]
    # What was there before is cheap: by marks or by itself.
    assert told[-1].cached_input > 0.7 * (told[-1].input + told[-1].cached_input + told[-1].cache_write)


async def test_silent_server_times_out_and_is_asked_once() -> None:
    for provider in HTTP_PROVIDERS:
        with subject_of(provider, silence_seconds=0.2) as made:
            failure = await made.fail(a_request(made.play("silent")))
            await made.close()
            assert failure.failure is FailureClass.TIMEOUT
            assert failure.usage is not None and failure.usage.estimated
            assert len(made.seen.bodies) == 1, "the adapter must not retry"


async def test_failure_says_what_where_and_what_to_do(remote: Subject) -> None:
    """B52: and holds no secret."""
    for play, kind, part in (
        ("Authentication", FailureClass.AUTHENTICATION, "the key from the environment variable FAKE_KEY"),
        ("forbidden", FailureClass.AUTHENTICATION, "FAKE_KEY"),
        ("missing", FailureClass.INVALID_REQUEST, "modelName"),
        ("html", FailureClass.UNAVAILABLE, "502"),
        ("echo", FailureClass.INVALID_REQUEST, "Bad header"),
    ):
        failure = await remote.fail(a_request(remote.play(play)))
        assert failure.failure is kind, failure
        assert part in failure.message and "cret" not in failure.message, failure


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_wait_is_read_from_the_limit_that_is_used_up(provider: str) -> None:
    """B44: where there is no Retry-After; by the answer's own date, whatever this machine's clock says."""
    with subject_of(provider) as made:
        failure = await made.fail(a_request(made.play("RateLimited-limits")))
        await made.close()
    assert (failure.failure, failure.retry_after_seconds) == (FailureClass.RATE_LIMITED, 62.5)


async def test_key_that_no_header_may_hold_is_told_and_not_sent(remote: Subject) -> None:
    """B52."""
    model = remote.play("text")
    for key in ("sk-wr\u00f6ng", "sk-two lines", "sk-x\n"):
        failure = await remote.fail(a_request(model, access=access_to(model, key)))
        assert failure.failure is FailureClass.AUTHENTICATION and key.strip() not in failure.message
    assert remote.seen.bodies == []


async def test_server_that_cannot_be_reached_is_named(remote: Subject) -> None:
    """B52: without the user part of its URL."""
    for remote.is_read in (True, False):
        failure = await remote.fail(a_request(remote.play("text", base_url="http://me:hush@127.0.0.1:9/v1")))
        assert failure.failure is FailureClass.UNAVAILABLE
        assert "http://127.0.0.1:9/v1 cannot be reached" in failure.message
        assert "hush" not in failure.message
        assert failure.usage is None


async def test_url_that_is_none_is_an_invalid_request(remote: Subject) -> None:
    for url in ("ftp://127.0.0.1/v1", "nonsense", "http://[::1/v1"):
        failure = await remote.fail(a_request(remote.play("text", base_url=url)))
        assert failure.failure is FailureClass.INVALID_REQUEST
    assert "baseUrl" in (await remote.fail(a_request(remote.play("text", base_url=None)))).message
