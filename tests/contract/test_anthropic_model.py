"""What Anthropic's adapter does beside the conformance suite (test_models.py, test_remote_models.py): marks for the cache, functions for old calls, thinking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from fake_words import Answer
from lean_clients import VIEW, send_by_each
from model_requests import BALLOT, KEY, LOOK, a_request, stored
from models_at_hand import Subject, subject_of

from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    OtherText,
    OwnCall,
    OwnText,
    Sampling,
    SystemText,
)
from folkmoot.llm.anthropic import ANTHROPIC
from folkmoot.llm.anthropic_client import ReadyMessagesClient
from folkmoot.llm.sending import Sender

ONE = UUID(int=1)


@pytest_asyncio.fixture
async def anthropic() -> AsyncIterator[Subject]:
    with subject_of("anthropic") as made:
        yield made
        await made.close()


def marked(value: Any) -> list[str]:
    """The texts and names at which a mark stands."""
    if isinstance(value, list):
        return [text for part in value for text in marked(part)]
    if not isinstance(value, dict):
        return []
    here = [str(value.get("text") or value.get("name") or value["type"])] if "cache_control" in value else []
    return here + [text for part in value.values() for text in marked(part)]


async def test_marks_stand_where_the_next_prompt_still_is_the_same(anthropic: Subject) -> None:
    """After the functions, the system text, and what all have said; never after a word for this call alone."""
    view: list[Entry] = [SystemText("You are Ann."), OtherText("Ben", "Tea?"), OwnText("Yes.", None)]
    call = OwnCall("c1", "look", "{}", "rain", False, ONE)
    for shown, instruction in (
        (view[:2], "Vote."), (view[:2], None), (view, None), ([*view, OtherText("Ben", "Why?"), call], "Vote."),
    ):  # fmt: skip
        await anthropic.ask(a_request(anthropic.play("text"), view=shown, offered=BALLOT, instruction=instruction))
    system = ["disagree", "You are Ann."]
    assert [sorted(marked(body)) for body in anthropic.seen.bodies] == [
        sorted([*system, "[Ben]:\nTea?"]),
        sorted([*system, "[Ben]:\nTea?"]),
        sorted([*system, "Yes."]),
        sorted([*system, "tool_result"]),
    ]
    assert anthropic.seen.refused == []


async def test_long_conversation_reads_its_past_from_the_cache(anthropic: Subject) -> None:
    """Also when each call ends with an instruction of its own."""
    anthropic.seen.answer = lambda asked: Answer("Tea " * 50)
    view: list[Entry] = [SystemText("You are Ann."), OtherText(None, "The task.")]
    for n in range(8):
        await anthropic.ask(a_request(anthropic.play("any"), view=view, instruction=f"Word {n}."))
        view += [OwnText("Tea " * 50, UUID(int=n)), OtherText("Ben", f"Coffee {n} " * 50)]
    last = anthropic.seen.books[-1].counts
    assert last.cached_input > 5 * (last.input + last.cache_write)
    assert last.input < 20


async def test_old_calls_keep_their_functions_and_none_may_be_called(anthropic: Subject) -> None:
    """B40: the provider refuses a history of calls without functions."""
    view = [OtherText(None, "Go."), OwnCall("c1", "look.up", "{}", "x", False, ONE)]
    await anthropic.ask(a_request(anthropic.play("text"), view=view))
    await anthropic.ask(a_request(anthropic.play("text"), view=view[:1]))
    withheld, bare = anthropic.seen.bodies
    assert withheld["tool_choice"] == {"type": "none"}
    assert [tool["name"] for tool in withheld["tools"]] == [withheld["messages"][1]["content"][0]["name"]]
    assert not {"tools", "tool_choice"} & bare.keys()
    assert anthropic.seen.refused == []


async def test_thinking_and_what_is_redacted_go_back_as_they_came(anthropic: Subject) -> None:
    """B41: with their signatures, before the words that they led to."""
    maker = anthropic.play("thinking-calls")
    reply = await anthropic.ask(a_request(maker, offered=(LOOK,)))
    replay = stored(maker, reply)
    view = [OtherText(None, "Go."), OwnText(reply.text, ONE), OwnCall("c1", "look", "{}", "rain", False, ONE)]
    await anthropic.ask(a_request(maker, view=view, replays={ONE: replay}, offered=(LOOK,)))
    blocks = anthropic.seen.bodies[-1]["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["thinking", "redacted_thinking", "text", "tool_use"]
    assert anthropic.seen.refused == []


async def test_largest_response_is_the_agents_else_the_models_else_the_default(anthropic: Subject) -> None:
    for sampling, largest in ((Sampling(max_tokens=9), 700), (Sampling(), 700), (Sampling(), None)):
        await anthropic.ask(a_request(anthropic.play("text", largest_response=largest), sampling=sampling))
    assert [body["max_tokens"] for body in anthropic.seen.bodies] == [9, 700, 4096]


async def test_long_reply_is_streamed_though_nobody_reads_along(anthropic: Subject) -> None:
    anthropic.is_read = False
    await anthropic.ask(a_request(anthropic.play("text", largest_response=64_000)))
    await anthropic.ask(a_request(anthropic.play("text", largest_response=8_000)))
    assert [body.get("stream", False) for body in anthropic.seen.bodies] == [True, False]


@pytest.mark.parametrize(
    "play, kind",
    [
        ("QuotaExhausted-billing", FailureClass.QUOTA_EXHAUSTED),
        ("QuotaExhausted-limit", FailureClass.QUOTA_EXHAUSTED),
        ("ContextTooLong-sum", FailureClass.CONTEXT_TOO_LONG),
        ("ContextTooLong-size", FailureClass.CONTEXT_TOO_LONG),
    ],
)
async def test_other_words_for_the_same_failure(anthropic: Subject, play: str, kind: FailureClass) -> None:
    assert (await anthropic.fail(a_request(anthropic.play(play)))).failure is kind


async def test_reply_that_filled_the_window_asks_for_a_compaction(anthropic: Subject) -> None:
    anthropic.seen.answer = lambda asked: Answer("Tea is", finish="window")
    failure = await anthropic.fail(a_request(anthropic.play("any")))
    assert failure.failure is FailureClass.CONTEXT_TOO_LONG
    assert failure.usage is not None and not failure.usage.estimated


async def test_service_tier_is_told(anthropic: Subject) -> None:
    assert (await anthropic.ask(a_request(anthropic.play("tier")))).service_tier == "flex"
    anthropic.is_read = False
    assert (await anthropic.ask(a_request(anthropic.play("text")))).service_tier == "standard"


async def test_lean_client_sends_what_the_sdk_would_send(anthropic: Subject) -> None:
    choice = anthropic.play("InvalidRequest")
    sent, url = Sender(ANTHROPIC).sending(a_request(choice, view=VIEW, offered=(LOOK,))), choice.base_url or ""
    # loaded by the one test that needs them: every process of the suite reads this file
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    async with httpx2.AsyncClient() as http:
        clients = (
            AsyncAnthropic(base_url=url, api_key=KEY, http_client=http, max_retries=0),
            ReadyMessagesClient(url=url, key=KEY, http=http),
        )
        providers = [AnthropicProvider(anthropic_client=client) for client in clients]
        await send_by_each(sent, *(AnthropicModel("InvalidRequest", provider=provider) for provider in providers))
    plain, lean = anthropic.seen.bodies
    plain.pop("stream", None)
    assert lean == plain
    assert anthropic.seen.headers[1]["x-api-key"] == KEY


async def test_version_at_the_urls_end_is_not_doubled(anthropic: Subject) -> None:
    url = anthropic.play("text").base_url
    assert (await anthropic.ask(a_request(anthropic.play("text", base_url=f"{url}/v1/")))).text == "Tea is fine."
