"""The local model: run where its file is (`folkmoot model pull`), visibly skipped elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import pytest_asyncio
from model_requests import BALLOT, DATA_DIR, LOOK, a_request, access_to

from folkmoot.domain.model_calls import (
    FailureClass,
    Model,
    ModelChoice,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OfferedTool,
    OtherText,
    OwnCall,
    Purpose,
    Sampling,
    SystemText,
)
from folkmoot.llm.local import LocalModel, spare_cores, start_engine
from folkmoot.llm.model_file import MODEL_NAME, model_path
from folkmoot.llm.openai import adapter as openai_adapter
from folkmoot.llm.pool import Pool

needs_file = pytest.mark.skipif(
    DATA_DIR is None, reason="the local model's file is not there: run `folkmoot model pull`"
)
in_one_loop = pytest.mark.asyncio(loop_scope="module")
MODEL = ModelChoice("local", MODEL_NAME)
SOLUTION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["answer", "reason"],
    "properties": {"answer": {"type": "string", "maxLength": 40}, "reason": {"type": "string", "maxLength": 60}},
}
PROPOSE = OfferedTool(
    "propose_solution",
    "Propose the final answer.",
    {"type": "object", "additionalProperties": False, "required": ["solution"], "properties": {"solution": SOLUTION}},
)


# what takes time is words, and few are needed to see whether they are the right ones
SHORT = 24
A_VOTE = (
    BALLOT[0],
    OfferedTool("disagree", "Vote against it.", {"type": "object", "properties": {"reason": {"type": "string", "maxLength": 40}}}),
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local() -> AsyncIterator[LocalModel]:
    """Loaded once: no call leaves anything behind for the next."""
    model = LocalModel(data_dir=DATA_DIR or Path("nowhere"))
    yield model
    await model.close()


async def ask(model: Model, request: ModelRequest, pieces: list[str] | None = None) -> ModelReply:
    outcome = await model.ask(request, (pieces if pieces is not None else []).append)
    assert isinstance(outcome, ModelReply), outcome
    return outcome


@needs_file
@in_one_loop
async def test_text_is_passed_on_as_it_comes_and_counted(local: LocalModel) -> None:
    """B45."""
    pieces: list[str] = []
    reply = await ask(local, a_request(MODEL, sampling=Sampling(max_tokens=SHORT)), pieces)
    assert reply.text and not reply.calls
    assert "".join(pieces) == reply.text and len(pieces) > 1
    assert reply.usage.input > 0 and reply.usage.output > 0 and not reply.usage.estimated


@needs_file
@in_one_loop
async def test_same_request_gives_the_same_reply_whatever_was_asked_before(local: LocalModel) -> None:
    """A worker that takes over, or a restart, changes nothing: no prompt is cached, and the seed is the request's."""
    request = a_request(MODEL, sampling=Sampling(seed=7, max_tokens=SHORT))
    first = await ask(local, request)
    await ask(local, a_request(MODEL, offered=A_VOTE, required=True, purpose=Purpose.BALLOT))
    assert await ask(local, request) == first


@needs_file
@in_one_loop
@pytest.mark.chaos
async def test_seed_is_honoured(local: LocalModel) -> None:
    texts = {
        (await ask(local, a_request(MODEL, sampling=Sampling(seed=seed, temperature=1.5, max_tokens=SHORT)))).text
        for seed in (1, 2)
    }
    assert len(texts) > 1


@needs_file
@in_one_loop
async def test_ballot_is_always_a_vote(local: LocalModel) -> None:
    """B31, B33: the schema leaves nothing but the two calls."""
    instruction = "Ben proposes this answer: tea\nVote now: call agree, or call disagree with your reason."
    for seed in range(2):
        request = a_request(
            MODEL,
            offered=A_VOTE,
            required=True,
            instruction=instruction,
            purpose=Purpose.BALLOT,
            sampling=Sampling(seed=seed),
        )
        reply = await ask(local, request)
        assert reply.text == ""
        assert [call.name in ("agree", "disagree") for call in reply.calls] == [True]


@needs_file
@in_one_loop
async def test_proposal_fits_the_schema_of_the_solution(local: LocalModel) -> None:
    """B33."""
    view = [
        SystemText("You are Ann."),
        OtherText(None, "The task: Tea or coffee?"),
        OwnCall("c1", "agree", "{}", "Counted.", False, None),
    ]
    reply = await ask(local, a_request(MODEL, view=view, offered=(PROPOSE,), turn=2, call=3))
    (call,) = reply.calls
    assert call.name == "propose_solution"
    jsonschema_rs.validate(PROPOSE.parameters, json.loads(call.arguments_json))


@needs_file
@in_one_loop
async def test_cancelled_call_makes_way_for_the_next(local: LocalModel) -> None:
    came = asyncio.Event()
    task = asyncio.create_task(local.ask(a_request(MODEL), lambda piece: came.set()))
    await came.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(local, a_request(MODEL, offered=A_VOTE, required=True))).calls


@needs_file
@in_one_loop
async def test_long_conversation_is_cut_to_what_the_model_can_read(local: LocalModel) -> None:
    view: list[Any] = [SystemText("You are Ann."), OtherText(None, "The task: Tea or coffee?")]
    view += [OtherText("Ben", f"{n} " + "Coffee is the better drink. " * 20) for n in range(200)]
    reply = await ask(local, a_request(MODEL, view=view, sampling=Sampling(max_tokens=SHORT)))
    assert reply.usage.input < 700


@needs_file
@in_one_loop
async def test_schema_that_cannot_be_forced_is_a_failure(local: LocalModel) -> None:
    odd = OfferedTool("odd", "Odd.", {"type": "object", "properties": {"x": {"type": "strange"}}})
    outcome = await local.ask(a_request(MODEL, offered=(odd,), required=True), lambda piece: None)
    assert isinstance(outcome, ModelFailure)
    assert outcome.failure is FailureClass.INVALID_REQUEST
    assert "strange" in outcome.message


async def test_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    model = LocalModel(data_dir=tmp_path)
    outcome = await model.ask(a_request(MODEL), lambda piece: None)
    await model.close()
    assert isinstance(outcome, ModelFailure)
    assert outcome.failure is FailureClass.UNAVAILABLE
    assert "folkmoot model pull" in outcome.message


async def test_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "odd.gguf"
    file.write_bytes(b"GGUF" + b"\0" * 100)
    model = LocalModel(data_dir=tmp_path)
    outcome = await model.ask(a_request(ModelChoice("local", "odd", path=str(file))), lambda piece: None)
    await model.close()
    assert isinstance(outcome, ModelFailure)
    assert outcome.failure is FailureClass.INVALID_REQUEST
    assert "odd" in outcome.message


# The same model behind its own HTTP server.


@pytest.fixture
def served() -> Iterator[str]:
    engine = start_engine(
        model_path(None, DATA_DIR or Path("nowhere")),
        window_tokens=2048,
        threads=spare_cores(),
        port=0,
        api_key="sk-served",
    )
    yield f"{engine.listening_address}/v1"


@needs_file
@in_one_loop
@pytest.mark.chaos
async def test_openai_adapter_speaks_to_the_local_models_own_server(served: str) -> None:
    """B31, B33, B45: through the schema, since this model makes no calls of its own."""
    choice = ModelChoice("openai-compatible", MODEL_NAME, base_url=served, api_key_variable="SERVED", tools=False)
    pool = Pool()
    model, access = openai_adapter(pool), access_to(choice, "sk-served")
    pieces: list[str] = []
    said = await ask(model, a_request(choice, sampling=Sampling(max_tokens=SHORT), access=access), pieces)
    vote = await ask(model, a_request(choice, offered=A_VOTE, required=True, purpose=Purpose.BALLOT, access=access))
    tool = await ask(model, a_request(choice, offered=(LOOK,), required=True, access=access))
    await pool.close()
    assert said.text == "".join(pieces) != ""
    assert vote.calls[0].name in ("agree", "disagree")
    jsonschema_rs.validate(LOOK.parameters, json.loads(tool.calls[0].arguments_json))
    assert not said.usage.estimated and said.usage.input > 0


@needs_file
@in_one_loop
async def test_served_model_refuses_a_wrong_key(served: str) -> None:
    choice = ModelChoice("openai-compatible", MODEL_NAME, base_url=served, api_key_variable="SERVED")
    pool = Pool()
    model = openai_adapter(pool)
    outcome = await model.ask(a_request(choice, access=access_to(choice, "sk-other")), lambda piece: None)
    await pool.close()
    assert isinstance(outcome, ModelFailure)
    assert outcome.failure is FailureClass.AUTHENTICATION
    assert "SERVED" in outcome.message
