"""One conformance suite that every model adapter passes, read along with and not. What those over HTTP do beside is in
test_remote_models.py, what one of them does in test_openai_model.py, test_anthropic_model.py, test_google_model.py and
test_local_model.py.

Each provider's adapter speaks to a real server on loopback, which checks what it is sent as the provider does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from fake_words import CUT_ARGUMENTS
from model_requests import BALLOT, LOOK, a_request
from models_at_hand import CALLS, FAILURES, HTTP_PROVIDERS, WAITS, Subject, subject_of

from folkmoot.domain.model_calls import (
    FailureClass,
    ReplyCall,
    Usage,
)

USAGE = Usage(input=36, cached_input=64, output=13, reasoning=7)


@pytest_asyncio.fixture(
    params=[(name, is_read) for name in ("scripted", *HTTP_PROVIDERS) for is_read in (True, False)], ids=str
)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    name, is_read = request.param
    with subject_of(name, is_read=is_read) as made:
        yield made
        await made.close()


async def test_text_is_passed_on_as_it_comes_and_returned_whole(subject: Subject) -> None:
    pieces: list[str] = []
    reply = await subject.ask(a_request(subject.play("text")), pieces)
    assert (reply.text, reply.calls) == ("Tea is fine.", ())
    assert "".join(pieces) == (reply.text if subject.is_read else "")
    assert subject.seen.refused == []


async def test_calls_keep_their_order_beside_the_text(subject: Subject) -> None:
    """B42: a provider that gives all calls one id, or none, still has two calls."""
    reply = await subject.ask(a_request(subject.play("calls"), offered=(LOOK,)))
    assert reply.text == "Let me look."
    assert [(call.name, json.loads(call.arguments_json)) for call in reply.calls] == [
        (call.name, json.loads(call.arguments_json)) for call in CALLS
    ]


async def test_arguments_are_handed_on_as_they_came(subject: Subject) -> None:
    """B43: the adapter repairs nothing; what does not parse is the engine's to refuse."""
    if subject.provider == "google" or (subject.provider == "anthropic" and not subject.is_read):
        pytest.skip("this protocol gives arguments as an object")
    reply = await subject.ask(a_request(subject.play("broken"), offered=(LOOK,)))
    assert reply.calls == (ReplyCall("look", CUT_ARGUMENTS),)


async def test_quoted_call_in_a_text_is_no_call(subject: Subject) -> None:
    """B31: text decides nothing."""
    reply = await subject.ask(a_request(subject.play("quoted"), offered=BALLOT))
    assert reply.calls == ()
    assert "TERMINATE" in reply.text


async def test_usage_keeps_each_token_in_one_kind(subject: Subject) -> None:
    """B45: uncached, cache read, output and reasoning are kept apart."""
    assert (await subject.ask(a_request(subject.play("text")))).usage == USAGE


async def test_call_without_usage_is_estimated_and_says_so(subject: Subject) -> None:
    """B45: a call without usage still counts as a call."""
    reply = await subject.ask(a_request(subject.play("uncounted")))
    assert reply.usage.estimated
    assert 3 <= reply.usage.output <= 4


async def test_empty_reply_is_a_reply(subject: Subject) -> None:
    """B24: it is for the engine to ask again; older text never stands in."""
    reply = await subject.ask(a_request(subject.play("empty")))
    assert (reply.text, reply.calls) == ("", ())


async def test_failures_are_classed_and_returned(subject: Subject) -> None:
    """B44: the classes are told apart, with the provider's own wait."""
    for kind in FAILURES:
        failure = await subject.fail(a_request(subject.play(kind.value)))
        assert failure.failure is kind, failure
        assert failure.retry_after_seconds == WAITS.get(kind), failure
        # Google counts a prompt that it blocked.
        assert failure.usage is None or (subject.provider == "google" and kind is FailureClass.CONTENT_FILTERED)


async def test_cancelled_call_leaves_the_adapter_usable(subject: Subject) -> None:
    came = asyncio.Event()
    asking = subject.model.ask(a_request(subject.play("held")), (lambda _: came.set()) if subject.is_read else None)
    task = asyncio.create_task(asking)
    if subject.provider == "scripted":
        await asyncio.sleep(0)
    else:
        await (came.wait() if subject.is_read else asyncio.to_thread(subject.seen.reached.wait, 10))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    subject.seen.held.set()
    assert (await subject.ask(a_request(subject.play("text")))).text == "Tea is fine."
