"""What OpenAI's adapter does beside the conformance suite (test_models.py, test_remote_models.py): what goes over the wire, and models without tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import httpx2
import pytest_asyncio
from lean_clients import VIEW, send_by_each
from model_requests import BALLOT, KEY, LOOK, a_request, stored
from models_at_hand import Subject, subject_of

from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    OtherText,
    OwnCall,
    OwnText,
    ReplyCall,
    Sampling,
    SystemText,
)
from folkmoot.llm.openai import OPENAI
from folkmoot.llm.openai_client import ReadyBodyClient
from folkmoot.llm.sending import Sender


@pytest_asyncio.fixture
async def openai() -> AsyncIterator[Subject]:
    with subject_of("openai-compatible") as made:
        yield made
        await made.close()


async def test_order_on_the_wire_is_one_that_every_server_takes(openai: Subject) -> None:
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
    await openai.ask(a_request(openai.play("text"), view=view))
    messages = openai.seen.bodies[0]["messages"]
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


async def test_tools_are_sent_loose_and_required_where_they_must_be_used(openai: Subject) -> None:
    await openai.ask(a_request(openai.play("calls"), offered=BALLOT, required=True))
    await openai.ask(a_request(openai.play("calls"), offered=(LOOK,)))
    required, free = openai.seen.bodies
    assert required["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in required["tools"]] == ["agree", "disagree"]
    assert not any(tool["function"].get("strict") for tool in required["tools"])
    assert free.get("tool_choice", "auto") == "auto"
    assert free["tools"][0]["function"]["parameters"] == LOOK.parameters


async def test_only_the_agents_own_settings_are_sent(openai: Subject) -> None:
    sampling = Sampling(temperature=0.3, top_p=0.9, seed=7, max_tokens=50)
    await openai.ask(a_request(openai.play("text"), sampling=sampling))
    await openai.ask(a_request(openai.play("text")))
    full, bare = openai.seen.bodies
    assert {key: full[key] for key in ("temperature", "top_p", "seed", "max_tokens")} == {
        "temperature": 0.3,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 50,
    }
    assert bare.keys() == {"model", "messages", "stream", "stream_options"}


async def test_lean_client_sends_what_the_sdk_would_send(openai: Subject) -> None:
    """The body that skips the SDK's transform is the same, byte for byte in its values."""
    choice = openai.play("InvalidRequest")
    request = a_request(choice, view=VIEW, offered=(LOOK,), sampling=Sampling(temperature=0.1, seed=3))
    sent, url = Sender(OPENAI).sending(request), choice.base_url or ""
    # loaded by the one test that needs them: every process of the suite reads this file
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with httpx2.AsyncClient() as http:
        clients = (
            AsyncOpenAI(base_url=url, api_key=KEY, http_client=http, max_retries=0),
            ReadyBodyClient(url=url, key=KEY, http=http),
        )
        providers = [OpenAIProvider(openai_client=client) for client in clients]
        await send_by_each(sent, *(OpenAIChatModel("InvalidRequest", provider=provider) for provider in providers))
    plain, lean = openai.seen.bodies
    plain.setdefault("stream", False)
    assert lean == plain
    assert openai.seen.headers[1]["authorization"] == f"Bearer {KEY}"


async def test_reasoning_is_replayed_to_its_maker_alone(openai: Subject) -> None:
    """B41, B24: reasoning is no text, and goes back only to the provider and model that made it."""
    maker = openai.play("thinking")
    reply = await openai.ask(a_request(maker))
    assert reply.text == "Tea is fine."
    replay = stored(maker, reply)
    view = [OtherText(None, "Go."), OwnText(reply.text, UUID(int=1)), OtherText("Ben", "Sure?")]
    replays = {UUID(int=1): replay}
    await openai.ask(a_request(maker, view=view, replays=replays))
    await openai.ask(a_request(openai.play("text"), view=view, replays=replays))
    again, other = (body["messages"][1] for body in openai.seen.bodies[1:])
    assert again["reasoning_content"] == "Hmm."
    assert other == {"role": "assistant", "content": "Tea is fine."}


async def test_service_tier_is_told_where_the_provider_tells_it(openai: Subject) -> None:
    assert (await openai.ask(a_request(openai.play("tier")))).service_tier == "flex"
    assert (await openai.ask(a_request(openai.play("text")))).service_tier is None


async def test_call_without_arguments_stays_empty(openai: Subject) -> None:
    reply = await openai.ask(a_request(openai.play("no-arguments"), offered=(LOOK,)))
    assert reply.calls == (ReplyCall("pass", ""),)


async def test_model_without_tools_gets_them_through_a_schema(openai: Subject) -> None:
    """B33: a reply in a code fence is read."""
    pieces: list[str] = []
    said = await openai.ask(a_request(openai.play("say", tools=False), offered=(LOOK,)), pieces)
    vote = await openai.ask(a_request(openai.play("fenced-call", tools=False), offered=BALLOT, required=True))
    assert (said.text, said.calls, "".join(pieces)) == ("Tea is fine.", (), "Tea is fine.")
    assert (vote.text, vote.calls) == ("", (ReplyCall("agree", "{}"),))
    free, ballot = (body["response_format"]["json_schema"]["schema"] for body in openai.seen.bodies)
    assert [list(option["properties"]) for option in free["anyOf"]] == [["say"], ["look"]]
    assert [list(option["properties"]) for option in ballot["anyOf"]] == [["agree"], ["disagree"]]
    assert not {"tools", "tool_choice", "repeat_penalty"} & openai.seen.bodies[0].keys()


async def test_servers_of_others_tell_an_overflow_in_their_own_words(openai: Subject) -> None:
    failure = await openai.fail(a_request(openai.play("ContextTooLong-llama")))
    assert failure.failure is FailureClass.CONTEXT_TOO_LONG
    assert "longer than the context" in failure.message
