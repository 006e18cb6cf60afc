"""Any conversation of a manager, agents and routers, whatever they reply and in whatever order it comes (conversation.md 'Managed', 'Routers')."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import UUID

from engine_harness import EMPTY, Conversation, call, line, panel, reply, seat, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.items import AuthorKind, DispatchMode
from folkmoot.domain.model_calls import FailureClass, ModelChoice, ModelFailure, ModelReply, OwnCall, Purpose
from folkmoot.domain.routers import CandidateKind, PinnedCandidate, PinnedRouter, RouterRule
from folkmoot.domain.run_status import FINAL
from folkmoot.engine.step import AskModel, RunCall, Step, Wait

CODER, WRITER, INNER = UUID(int=801), UUID(int=802), UUID(int=803)
LOOK, WRITE, PAY = tool("look", is_read_only=True), tool("write"), tool("pay", is_gated=True)
SUBMIT = tool("submit", is_terminal=True)
AGENTS = ("Ann", "Ben", "Expert")


def expert() -> Any:
    """A seat with a chain of two routers."""
    base = seat("Expert", LOOK)
    agents = tuple(replace(base, agent_id=id_, agent_name=str(id_.int)) for id_ in (CODER, WRITER))
    candidates = tuple(PinnedCandidate(a.agent_name, CandidateKind.AGENT, a.agent_id, 1) for a in agents)
    inner = PinnedRouter(INNER, "inner", 1, candidates, "802", model=ModelChoice("scripted", "chooser"))
    outer = PinnedRouter(
        UUID(int=804), "outer", 1, (PinnedCandidate("inner", CandidateKind.ROUTER, INNER, 1), *candidates), "801",
        (RouterRule("802", turn_number=2), RouterRule("801", last_author="Human")), ModelChoice("scripted", "chooser"),
    )  # fmt: skip
    return replace(agents[1], routers=(outer, inner), candidates=agents)


# what rounds have, and a manager does not
NOT_IN_TEAMS = dict.fromkeys(
    ("is_no_action_allowed", "is_voting_allowed", "is_direct_questioning_allowed", "is_solution_proposal_allowed"),
    False,
)
dispatch = st.builds(
    lambda agent, mode, label: call(
        "dispatch", agent=agent, message="Go.", mode=mode, **({"thread": label} if label and mode == "Continue" else {})
    ),
    st.sampled_from((*AGENTS, "Nobody")), st.sampled_from([mode.value for mode in DispatchMode]), st.sampled_from(["", "b"]),
)  # fmt: skip
of_manager = st.one_of(
    st.builds(lambda text, calls: reply(text, *calls), st.sampled_from(["", "So."]), st.lists(dispatch, min_size=1, max_size=4)),
    st.just(reply("", call("ask", participant="Human", question="Which?"))),
    st.just(reply("", call("look"), call("pay"), call("dispatch", agent="Ann", message="x", mode="OneTime"))),
    st.just(reply("", call("finish", answer="B"))),
    st.sampled_from([reply("Words."), EMPTY, reply("", call("pass"))]),
)  # fmt: skip
of_agent = st.sampled_from(
    [
        reply("Done."), reply("", call("look")), reply("I pay.", call("pay"), call("write")), reply("", call("dispatch")), EMPTY,
        reply("", call("look"), call("look"), call("nothing")), reply("", call("submit"), call("look")),
    ]
)  # fmt: skip
of_router = st.sampled_from(
    [
        reply("", call("choose", candidate="801", reason="r")), reply("", call("choose", candidate="802")), reply("Hm."),
        reply("", call("choose", candidate="inner")), ModelFailure(FailureClass.INVALID_REQUEST, "no"),
    ]
)  # fmt: skip


def outcome_of(data: st.DataObject, step: Step) -> ModelReply | ModelFailure | CallResult:
    if isinstance(step, RunCall):
        return data.draw(st.sampled_from([CallResult("ok", is_error=False), CallResult("no", is_error=True)]))
    assert isinstance(step, AskModel)
    if step.purpose is Purpose.ROUTE:
        return data.draw(of_router)
    return data.draw(of_manager if step.participant == "Lead" else of_agent)


def go_on(data: st.DataObject, talk: Conversation, choices: dict[str, AskModel]) -> None:
    """One more thing happens: an outcome, in any order, a person's word, or now and then a stop. `choices`: of routers, asked for."""
    choices |= {s.key: s for s in talk.steps if isinstance(s, AskModel) and s.purpose is Purpose.ROUTE}
    late = [step for key, step in choices.items() if key not in {s.key for s in talk.steps}]
    step = data.draw(st.sampled_from((*talk.steps, *late)))
    choices.pop(step.key, None)
    if data.draw(st.integers(0, 40)) == 0:
        talk.stop()
    elif isinstance(step, Wait):
        assert step.pending is not None
        if step.pending.binding_hash is not None:
            talk.decide(approve=data.draw(st.booleans()))
        else:
            talk.answer(items.DirectQuestionAnswer(step.pending.pending_id, "The red one."))
    elif data.draw(st.integers(0, 10)) == 0:
        talk.hear("A word.")
    else:
        talk.take(step, outcome_of(data, step))


def is_sound(talk: Conversation) -> None:
    """What holds at every moment."""
    assert talk.protocol == talk.refolded()
    results = Counter(result.tool_call_id for result in talk.bodies(items.ToolResult))
    assert not results or max(results.values()) == 1
    at_work = [turn for turn in talk.protocol.open_turns if turn.thread_id != items.MAIN_THREAD]
    assert len(at_work) <= talk.seating.definition.maximum_concurrent_dispatches
    waits = [step for step in talk.steps if isinstance(step, Wait)]
    assert not waits or len(talk.steps) == 1
    keys = [step.key for step in talk.steps]
    assert len(keys) == len(set(keys))
    for step in talk.steps:
        if isinstance(step, AskModel) and step.purpose is Purpose.TURN:
            open_calls = next(t for t in talk.protocol.open_turns if t.turn_id == step.turn_id).open_calls
            assert not open_calls, "a model is asked while a call of its own has no result (B20)"


def is_sound_at_the_end(talk: Conversation) -> None:
    assert talk.end is not None and talk.end.status in FINAL
    calls = {call_.tool_call_id for call_ in talk.bodies(items.ToolCall)}
    assert calls == {result.tool_call_id for result in talk.bodies(items.ToolResult)}
    order = {
        sent: n
        for n, sent in enumerate(c.tool_call_id for c in talk.bodies(items.ToolCall) if c.function_name == "dispatch")
    }
    made = [order[r.tool_call_id] for r in talk.bodies(items.ToolResult) if r.tool_call_id in order]
    taken = {
        item.body.tool_call_id for item in talk.items
        if isinstance(item.body, items.ToolCall) and isinstance(item.detail, items.Dispatched)
    }  # fmt: skip
    in_order = [n for n in made if list(order)[n] in taken]
    assert in_order == sorted(in_order)
    for item in talk.items:
        if item.thread_id != items.MAIN_THREAD and item.author.kind is AuthorKind.AGENT:
            assert item.author.name in AGENTS


@settings(max_examples=60, deadline=None)
@given(data=st.data(), at_once=st.integers(1, 3))
def test_a_team_keeps_its_order_and_ends_whatever_comes(data: st.DataObject, at_once: int) -> None:
    people = HumanSettings(ChatMode.ON_QUESTION)
    talk = Conversation(
        panel(seat("Lead", LOOK, PAY), seat("Ann", LOOK, WRITE, PAY), seat("Ben", PAY, WRITE, SUBMIT, LOOK), expert(), manager="Lead",
              maximum_concurrent_dispatches=at_once, human_settings=people, max_tool_call_loops=6, **NOT_IN_TEAMS)
    )  # fmt: skip
    choices: dict[str, AskModel] = {}
    for _ in range(60):
        is_sound(talk)
        if not talk.steps:
            break
        go_on(data, talk, choices)
    else:
        talk.stop()
    is_sound_at_the_end(talk)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_what_an_agent_is_shown_is_of_its_own_thread(data: st.DataObject) -> None:
    """Nothing of another thread, and of the manager only what it sent."""
    talk = Conversation(panel("Lead", seat("Ann", LOOK), seat("Ben", LOOK), manager="Lead", **NOT_IN_TEAMS))
    for n in range(12):
        if not talk.steps:
            return
        step = data.draw(st.sampled_from(talk.steps))
        if isinstance(step, RunCall):
            talk.take(step, CallResult(f"result {n} {step.thread_id}", is_error=False))
        elif isinstance(step, AskModel) and step.participant == "Lead":
            sent = [
                call("dispatch", agent=agent, message=f"to {agent} {n}", mode="Continue")
                for agent in data.draw(st.lists(st.sampled_from(["Ann", "Ben"]), min_size=1, max_size=2, unique=True))
            ]
            talk.take(step, reply("secret plans", *sent))
        elif isinstance(step, AskModel):
            for entry in talk.request(step)[1:]:
                told = line(entry)
                mine = (
                    f"to {step.participant}" in told or step.thread_id in told or told == f"me: by {step.participant}"
                )
                assert mine, told
                if isinstance(entry, OwnCall):
                    assert step.thread_id in entry.result
            wants = data.draw(st.booleans()) and step.call % 3
            talk.take(step, reply("", call("look")) if wants else reply(f"by {step.participant}"))
