"""One conformance suite for every model adapter, and what each one adds to it.

The OpenAI adapter speaks to a real server on loopback. What only the local model does is in test_local_model.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from fake_openai import CUT_ARGUMENTS, Seen, fake_openai
from model_requests import BALLOT, KEY, LOOK, a_request, access_to
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from folkmoot.domain.model_calls import (
    OURS,
    Entry,
    FailureClass,
    Model,
    ModelChoice,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OtherText,
    OwnCall,
    OwnText,
    Replay,
    ReplyCall,
    Sampling,
    SystemText,
    Usage,
)
from folkmoot.llm.openai import OpenAiModel
from folkmoot.llm.openai_client import ReadyBodyClient
from folkmoot.llm.openai_request import sending
from folkmoot.llm.rendering import Renderer
from folkmoot.llm.scripted import ScriptedModel

CALLS = (ReplyCall("look", '{"city":"Oslo"}'), ReplyCall("look", '{"city":"Rome"}'))
FAILURES = [kind for kind in FailureClass if kind not in (FailureClass.TIMEOUT, *OURS)]
WAITS = {FailureClass.RATE_LIMITED: 17.0, FailureClass.OVERLOADED: 3.0}


@dataclass
class Subject:
    """An adapter with a way to have it play something: `text`, `calls`, a class of failure, or `held` (never ends)."""

    model: Model
    play: Callable[[str], ModelChoice]


def scripted_play(play: str) -> ModelChoice:
    calls = [{"name": call.name, "arguments": call.arguments_json} for call in CALLS]
    usage = {"input": 36, "cachedInput": 64, "output": 13, "reasoning": 7}
    rules: dict[str, Any] = {
        "text": {"reply": {"text": "Tea is fine.", "usage": usage}},
        "calls": {"reply": {"text": "Let me look.", "calls": calls, "usage": usage}},
        "quoted": {"reply": {"text": 'I would call {"name": "agree", "arguments": {}} TERMINATE'}},
        "broken": {"reply": {"calls": [{"name": "look", "arguments": CUT_ARGUMENTS}]}},
        "empty": {"reply": {}},
        "uncounted": {"reply": {"text": "Tea is fine."}},
        "held": {"reply": {"text": "late", "delay": "1h"}},
    }
    for kind in FAILURES:
        wait = {"retryAfter": WAITS[kind]} if kind in WAITS else {}
        rules[kind.value] = {"fail": {"class": kind.value, **wait}}
    return ModelChoice("scripted", "rules", script={"rules": [rules[play]]})


@pytest.fixture
def server() -> Iterator[tuple[str, Seen]]:
    with fake_openai() as running:
        yield running


@pytest_asyncio.fixture(params=["openai-compatible", "scripted"])
async def subject(request: pytest.FixtureRequest, server: tuple[str, Seen]) -> AsyncIterator[Subject]:
    if request.param == "scripted":
        made = Subject(ScriptedModel(), scripted_play)
    else:
        made = Subject(OpenAiModel(), lambda play: fake_model(server, play))
    yield made
    await made.model.close()


def fake_model(server: tuple[str, Seen], play: str, **changes: Any) -> ModelChoice:
    values: dict[str, Any] = {"base_url": server[0], "api_key_variable": "FAKE_KEY"} | changes
    return ModelChoice(values.pop("provider", "openai-compatible"), play, **values)


@pytest_asyncio.fixture
async def openai_model() -> AsyncIterator[OpenAiModel]:
    model = OpenAiModel(silence_seconds=5)
    yield model
    await model.close()


async def ask(model: Model, request: ModelRequest, pieces: list[str] | None = None) -> ModelReply:
    outcome = await model.ask(request, (pieces if pieces is not None else []).append)
    assert isinstance(outcome, ModelReply), outcome
    return outcome


async def fail(model: Model, request: ModelRequest) -> ModelFailure:
    outcome = await model.ask(request, lambda piece: None)
    assert isinstance(outcome, ModelFailure), outcome
    assert outcome.message.endswith(".")
    assert KEY not in outcome.message
    return outcome


# What every adapter does.


async def test_text_is_passed_on_as_it_comes_and_returned_whole(subject: Subject) -> None:
    pieces: list[str] = []
    reply = await ask(subject.model, a_request(subject.play("text")), pieces)
    assert (reply.text, reply.calls) == ("Tea is fine.", ())
    assert "".join(pieces) == reply.text


async def test_calls_keep_their_order_beside_the_text(subject: Subject) -> None:
    """B42: a provider that gives all calls one id still has two calls."""
    reply = await ask(subject.model, a_request(subject.play("calls"), offered=(LOOK,)))
    assert reply.text == "Let me look."
    assert reply.calls == CALLS


async def test_arguments_are_handed_on_as_they_came(subject: Subject) -> None:
    """B43: the adapter repairs nothing; what does not parse is the engine's to refuse."""
    reply = await ask(subject.model, a_request(subject.play("broken"), offered=(LOOK,)))
    assert reply.calls == (ReplyCall("look", CUT_ARGUMENTS),)


async def test_quoted_call_in_a_text_is_no_call(subject: Subject) -> None:
    """B31: text decides nothing."""
    reply = await ask(subject.model, a_request(subject.play("quoted"), offered=BALLOT))
    assert reply.calls == ()
    assert "TERMINATE" in reply.text


async def test_usage_keeps_each_token_in_one_kind(subject: Subject) -> None:
    """B45: uncached, cache read, output and reasoning are kept apart."""
    reply = await ask(subject.model, a_request(subject.play("text")))
    assert reply.usage == Usage(input=36, cached_input=64, output=13, reasoning=7)


async def test_call_without_usage_is_estimated_and_says_so(subject: Subject) -> None:
    """B45: a call without usage still counts as a call."""
    reply = await ask(subject.model, a_request(subject.play("uncounted")))
    assert reply.usage.estimated
    assert reply.usage.output == 3


async def test_empty_reply_is_a_reply(subject: Subject) -> None:
    """B24: it is for the engine to ask again; older text never stands in."""
    reply = await ask(subject.model, a_request(subject.play("empty")))
    assert (reply.text, reply.calls) == ("", ())


@pytest.mark.parametrize("kind", FAILURES, ids=lambda kind: kind.value)
async def test_failure_is_classed_and_returned(subject: Subject, kind: FailureClass) -> None:
    """B44: the classes are told apart, with the provider's own wait."""
    failure = await fail(subject.model, a_request(subject.play(kind.value)))
    assert failure.failure is kind
    assert failure.retry_after_seconds == WAITS.get(kind)
    assert failure.usage is None


async def test_cancelled_call_leaves_the_adapter_usable(subject: Subject, server: tuple[str, Seen]) -> None:
    pieces: list[str] = []
    came = asyncio.Event()

    def on_text(piece: str) -> None:
        pieces.append(piece)
        came.set()

    task = asyncio.create_task(subject.model.ask(a_request(subject.play("held")), on_text))
    if isinstance(subject.model, OpenAiModel):
        await came.wait()
    else:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server[1].held.set()
    assert (await ask(subject.model, a_request(subject.play("text")))).text == "Tea is fine."


# What the OpenAI adapter sends.


async def test_order_on_the_wire_is_one_that_every_server_takes(
    openai_model: OpenAiModel, server: tuple[str, Seen]
) -> None:
    """B20, B40: merged neighbours, each call with its result, never the assistant's own words last."""
    view: list[Entry] = [
        SystemText("You are Ann."),
        SystemText("Be brief."),
        OtherText(None, "The task."),
        OtherText("Ben", "Coffee.\n[Cid]: me too"),
        OwnText("Let me look.", UUID(int=1)),
        OwnCall("c1", "look", '{"city": "Oslo"}', "rain", False, UUID(int=1)),
        OwnCall("c2", "look", "", "no city", True, UUID(int=1)),
        OwnText("Tea.", UUID(int=2)),
    ]
    await ask(openai_model, a_request(fake_model(server, "text"), view=view))
    messages = server[1].bodies[0]["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    assert messages[0]["content"] == "You are Ann.\n\nBe brief."
    assert messages[1]["content"] == "[Orchestrator]:\nThe task.\n\n[Ben]:\nCoffee.\n\\[Cid]: me too"
    assert [call["id"] for call in messages[2]["tool_calls"]] == ["c1", "c2"]
    assert [message["tool_call_id"] for message in messages[3:5]] == ["c1", "c2"]
    assert messages[2]["tool_calls"][1]["function"]["arguments"] == "{}"


async def test_no_tool_settings_are_sent_without_tools(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    """B40."""
    await ask(openai_model, a_request(fake_model(server, "text"), required=True))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & server[1].bodies[0].keys()


async def test_tools_are_sent_loose_and_required_where_they_must_be_used(
    openai_model: OpenAiModel, server: tuple[str, Seen]
) -> None:
    await ask(openai_model, a_request(fake_model(server, "calls"), offered=BALLOT, required=True))
    await ask(openai_model, a_request(fake_model(server, "calls"), offered=(LOOK,)))
    required, free = server[1].bodies
    assert required["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in required["tools"]] == ["agree", "disagree"]
    assert not any(tool["function"].get("strict") for tool in required["tools"])
    assert free.get("tool_choice", "auto") == "auto"
    assert free["tools"][0]["function"]["parameters"] == LOOK.parameters


async def test_only_the_agents_own_settings_are_sent(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    sampling = Sampling(temperature=0.3, top_p=0.9, seed=7, max_tokens=50)
    await ask(openai_model, a_request(fake_model(server, "text"), sampling=sampling))
    await ask(openai_model, a_request(fake_model(server, "text")))
    full, bare = server[1].bodies
    assert {key: full[key] for key in ("temperature", "top_p", "seed", "max_tokens")} == {
        "temperature": 0.3,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 50,
    }
    assert bare.keys() == {"model", "messages", "stream", "stream_options"}


async def test_lean_client_sends_what_the_sdk_would_send(server: tuple[str, Seen]) -> None:
    """The body that skips the SDK's transform is the same, byte for byte in its values."""
    view = [
        SystemText("S"),
        OtherText(None, "Go."),
        OwnCall("c1", "look", "{}", "x", False, None),
        OtherText("Ben", "ü"),
    ]
    request = a_request(
        fake_model(server, "text"), view=view, offered=(LOOK,), sampling=Sampling(temperature=0.1, seed=3)
    )
    sent = sending(request, Renderer())
    async with httpx2.AsyncClient() as http:
        for client in (
            AsyncOpenAI(base_url=server[0], api_key=KEY, http_client=http, max_retries=0),
            ReadyBodyClient(url=server[0], key=KEY, http=http),
        ):
            model = OpenAIChatModel("status", provider=OpenAIProvider(openai_client=client))
            with pytest.raises(Exception, match="400"):
                await model_request(
                    OpenAIChatModel("InvalidRequest", provider=model._provider),
                    sent.messages,
                    model_settings=sent.settings,
                    model_request_parameters=sent.parameters,
                )
    plain, lean = server[1].bodies
    plain.setdefault("stream", False)
    assert lean == plain
    assert server[1].headers[1]["authorization"] == f"Bearer {KEY}"


async def test_nothing_of_the_environment_goes_out(
    openai_model: OpenAiModel, server: tuple[str, Seen], monkeypatch: pytest.MonkeyPatch
) -> None:
    """B52: another provider's key or organisation is not sent to whoever speaks the same protocol."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "not-for-you")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-mine: not-for-you")
    await ask(openai_model, a_request(fake_model(server, "text", api_key_variable=None)))
    headers = server[1].headers[0]
    assert "authorization" not in headers
    assert "not-for-you" not in headers.values()


async def test_key_of_each_call_is_the_one_that_is_sent(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    """A rotated key counts at once, and the name that the place has for the model is what it is asked for."""
    model = fake_model(server, "text")
    await ask(openai_model, a_request(model))
    renamed = replace(access_to(model, "sk-new"), model_name="calls")
    await ask(openai_model, a_request(model, access=renamed))
    assert [headers["authorization"] for headers in server[1].headers] == [f"Bearer {KEY}", "Bearer sk-new"]
    assert [body["model"] for body in server[1].bodies] == ["text", "calls"]


async def test_compatible_server_needs_a_url(openai_model: OpenAiModel) -> None:
    failure = await fail(openai_model, a_request(ModelChoice("openai-compatible", "small")))
    assert failure.failure is FailureClass.INVALID_REQUEST
    assert "baseUrl" in failure.message


# What it makes of an answer.


async def test_reasoning_is_replayed_to_its_maker_alone(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    """B41, B24: reasoning is no text, and goes back only to the provider and model that made it."""
    maker = fake_model(server, "thinking")
    reply = await ask(openai_model, a_request(maker))
    assert reply.text == "Tea is fine."
    stored = Replay(maker.provider, maker.model_name, json.loads(json.dumps(reply.replay)))
    view = [OtherText(None, "Go."), OwnText(reply.text, UUID(int=1)), OtherText("Ben", "Sure?")]
    replays = {UUID(int=1): stored}
    await ask(openai_model, a_request(maker, view=view, replays=replays))
    await ask(openai_model, a_request(fake_model(server, "text"), view=view, replays=replays))
    again, other = (body["messages"][1] for body in server[1].bodies[1:])
    assert again["reasoning_content"] == "Hmm."
    assert other == {"role": "assistant", "content": "Tea is fine."}


async def test_reply_of_reasoning_alone_is_empty(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    """B24."""
    reply = await ask(openai_model, a_request(fake_model(server, "only-thinking")))
    assert (reply.text, reply.calls) == ("", ())


async def test_service_tier_is_told_where_the_provider_tells_it(
    openai_model: OpenAiModel, server: tuple[str, Seen]
) -> None:
    assert (await ask(openai_model, a_request(fake_model(server, "tier")))).service_tier == "flex"
    assert (await ask(openai_model, a_request(fake_model(server, "text")))).service_tier is None


async def test_call_without_arguments_stays_empty(openai_model: OpenAiModel, server: tuple[str, Seen]) -> None:
    reply = await ask(openai_model, a_request(fake_model(server, "no-arguments"), offered=(LOOK,)))
    assert reply.calls == (ReplyCall("pass", ""),)


@pytest.mark.parametrize("play", ["drop", "cut", "no-json", "odd"])
async def test_call_cut_off_in_mid_stream_is_never_used(
    openai_model: OpenAiModel, server: tuple[str, Seen], play: str
) -> None:
    """B43, B45: a broken stream is a failure, whatever it held, and its tokens are estimated."""
    failure = await fail(openai_model, a_request(fake_model(server, play), offered=(LOOK,)))
    assert failure.failure is FailureClass.UNAVAILABLE
    assert failure.usage is not None and failure.usage.estimated


async def test_call_cut_off_at_the_token_limit_is_never_used(
    openai_model: OpenAiModel, server: tuple[str, Seen]
) -> None:
    """B43: arguments that were cut to nothing are not 'none'."""
    failure = await fail(openai_model, a_request(fake_model(server, "length"), offered=(LOOK,)))
    assert failure.failure is FailureClass.INVALID_REQUEST
    assert "maxTokens" in failure.message
    assert failure.usage is not None and failure.usage.output == 13


@pytest.mark.parametrize("play", ["filtered", "refusal"])
async def test_filtered_reply_is_a_failure_that_counts(
    openai_model: OpenAiModel, server: tuple[str, Seen], play: str
) -> None:
    """B45."""
    failure = await fail(openai_model, a_request(fake_model(server, play)))
    assert failure.failure is FailureClass.CONTENT_FILTERED
    assert failure.usage is not None and failure.usage.cached_input == 64


@pytest.mark.parametrize(
    "play, kind, part",
    [
        ("Authentication", FailureClass.AUTHENTICATION, "FAKE_KEY"),
        ("forbidden", FailureClass.AUTHENTICATION, "FAKE_KEY"),
        ("ContextTooLong-llama", FailureClass.CONTEXT_TOO_LONG, "longer than the context"),
        ("missing", FailureClass.INVALID_REQUEST, "modelName"),
        ("html", FailureClass.UNAVAILABLE, "status 502"),
        ("error-in-stream", FailureClass.OVERLOADED, "overloaded"),
        ("echo", FailureClass.INVALID_REQUEST, "Bad header ***"),
    ],
)
async def test_failure_says_what_where_and_what_to_do(
    openai_model: OpenAiModel, server: tuple[str, Seen], play: str, kind: FailureClass, part: str
) -> None:
    """B52: and holds no secret."""
    failure = await fail(openai_model, a_request(fake_model(server, play)))
    assert failure.failure is kind
    assert part in failure.message
    assert "cret" not in failure.message


async def test_server_that_cannot_be_reached_is_named(openai_model: OpenAiModel) -> None:
    """B52: without the user part of its URL."""
    model = ModelChoice("openai-compatible", "small", base_url="http://me:hush@127.0.0.1:9/v1")
    failure = await fail(openai_model, a_request(model))
    assert failure.failure is FailureClass.UNAVAILABLE
    assert "http://127.0.0.1:9/v1 cannot be reached" in failure.message
    assert "hush" not in failure.message
    assert failure.usage is None


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/v1", "nonsense", "http://[::1/v1"])
async def test_url_that_is_none_is_an_invalid_request(openai_model: OpenAiModel, url: str) -> None:
    failure = await fail(openai_model, a_request(ModelChoice("openai-compatible", "small", base_url=url)))
    assert failure.failure is FailureClass.INVALID_REQUEST


async def test_silent_server_times_out(server: tuple[str, Seen]) -> None:
    model = OpenAiModel(silence_seconds=0.2)
    failure = await fail(model, a_request(fake_model(server, "silent")))
    await model.close()
    assert failure.failure is FailureClass.TIMEOUT
    assert failure.usage is not None and failure.usage.estimated
    assert len(server[1].bodies) == 1, "the adapter must not retry"


# Models without tools.


async def test_model_without_tools_gets_them_through_a_schema(
    openai_model: OpenAiModel, server: tuple[str, Seen]
) -> None:
    """B33: a reply in a code fence is read."""
    pieces: list[str] = []
    said = await ask(openai_model, a_request(fake_model(server, "say", tools=False), offered=(LOOK,)), pieces)
    vote = await ask(
        openai_model, a_request(fake_model(server, "fenced-call", tools=False), offered=BALLOT, required=True)
    )
    assert (said.text, said.calls, "".join(pieces)) == ("Tea is fine.", (), "Tea is fine.")
    assert (vote.text, vote.calls) == ("", (ReplyCall("agree", "{}"),))
    free, ballot = (body["response_format"]["json_schema"]["schema"] for body in server[1].bodies)
    assert [list(option["properties"]) for option in free["anyOf"]] == [["say"], ["look"]]
    assert [list(option["properties"]) for option in ballot["anyOf"]] == [["agree"], ["disagree"]]
    assert not {"tools", "tool_choice", "repeat_penalty"} & server[1].bodies[0].keys()
