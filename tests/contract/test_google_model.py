"""What the Gemini API's adapter does beside the conformance suite (test_models.py, test_remote_models.py): signatures of thoughts, its words for failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from fake_google_rules import signature_of
from fake_words import Answer
from lean_clients import VIEW, send_by_each
from model_requests import KEY, LOOK, a_request, stored
from models_at_hand import Subject, subject_of

from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    OtherText,
    OwnCall,
    OwnText,
    Sampling,
)
from folkmoot.llm.google import GOOGLE
from folkmoot.llm.google_client import ReadyContentClient
from folkmoot.llm.sending import Sender

ONE, TWO = UUID(int=1), UUID(int=2)


@pytest_asyncio.fixture
async def google() -> AsyncIterator[Subject]:
    with subject_of("google") as made:
        yield made
        await made.close()


@pytest.mark.parametrize("is_read", [True, False])
async def test_signature_of_a_thought_goes_back_with_the_call_that_it_led_to(google: Subject, is_read: bool) -> None:
    """B41: of several calls the first has it; a call that another model made goes with the stand-in that is accepted for it."""
    google.is_read = is_read
    calls = (("look", '{"city":"Oslo"}'), ("look", '{"city":"Rome"}'))
    google.seen.answer = lambda asked: Answer("Let me look.", calls, thinking="Hmm.", finish="calls")
    maker = google.play("gemini-3-pro")
    reply = await google.ask(a_request(maker, offered=(LOOK,)))
    replay = stored(maker, reply)
    view: list[Entry] = [OtherText(None, "Go."), OwnText(reply.text, ONE)]
    view += [OwnCall(f"c{n}", "look", arguments, "rain", False, ONE) for n, (_, arguments) in enumerate(calls)]
    view += [OtherText("Ben", "And?"), OwnCall("c9", "look", "{}", "sun", False, TWO)]
    await google.ask(a_request(maker, view=view, replays={ONE: replay}, offered=(LOOK,)))
    assert google.seen.refused == []
    parts = [part for content in google.seen.bodies[-1]["contents"] for part in content["parts"]]
    signed = [part.get("thoughtSignature") for part in parts if "functionCall" in part]
    assert signed[:2] == [signature_of("gemini-3-pro"), None]
    assert signed[2] not in (None, signature_of("gemini-3-pro"))


async def test_signature_of_a_text_goes_back_with_it(google: Subject) -> None:
    maker = google.play("thinking")
    reply = await google.ask(a_request(maker))
    replay = stored(maker, reply)
    await google.ask(a_request(maker, view=[OtherText(None, "Go."), OwnText(reply.text, ONE)], replays={ONE: replay}))
    parts = google.seen.bodies[-1]["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts if not part.get("thought")] == [signature_of("thinking")]


@pytest.mark.parametrize(
    "play, kind",
    [
        ("RateLimited-bare", FailureClass.RATE_LIMITED),
        ("Authentication-401", FailureClass.AUTHENTICATION),
        ("deadline", FailureClass.TIMEOUT),
        ("Overloaded-bare", FailureClass.OVERLOADED),
    ],
)
async def test_other_words_for_the_same_failure(google: Subject, play: str, kind: FailureClass) -> None:
    assert (await google.fail(a_request(google.play(play)))).failure is kind


async def test_call_that_the_provider_could_not_read_is_an_empty_reply(google: Subject) -> None:
    """B24, B43: nothing of it is called, and the engine asks again."""
    reply = await google.ask(a_request(google.play("broken"), offered=(LOOK,)))
    assert (reply.text, reply.calls) == ("", ())


async def test_lean_client_sends_what_the_sdk_would_send(google: Subject) -> None:
    """But for what is empty or a default of the SDK's."""
    choice = google.play("InvalidRequest")
    request = a_request(choice, view=VIEW, offered=(LOOK,), required=True, sampling=Sampling(0.1, 0.5, 3, 50))
    sent, url = Sender(GOOGLE).sending(request), choice.base_url or ""
    # loaded by the one test that needs them: every process of the suite reads this file
    from google.genai import Client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    async with httpx2.AsyncClient(timeout=9) as http:
        providers = (
            GoogleProvider(api_key=KEY, base_url=url, http_client=http),
            GoogleProvider(client=cast(Client, ReadyContentClient(url=url, key=KEY, http=http))),
        )
        await send_by_each(sent, *(GoogleModel("InvalidRequest", provider=provider) for provider in providers))
    plain, lean = google.seen.bodies
    for tool in plain["tools"]:
        for made in tool["functionDeclarations"]:
            # The SDK leaves this one name as Python has it; the server takes both.
            made["parametersJsonSchema"] = made.pop("parameters_json_schema")
    assert lean == plain
    assert google.seen.paths[0] == google.seen.paths[1]
    assert google.seen.headers[1]["x-goog-api-key"] == KEY


async def test_version_at_the_urls_end_is_not_doubled(google: Subject) -> None:
    url = google.play("text").base_url
    assert (await google.ask(a_request(google.play("text", base_url=f"{url}/v1beta/")))).text == "Tea is fine."
