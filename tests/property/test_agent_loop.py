"""Any agent run, whatever its model replies and its owner decides, and wherever it is cut and read again (agent-runs.md 'The loop', 'Consent')."""

from __future__ import annotations

import json
from collections import Counter
from uuid import UUID

from engine_harness import EMPTY, Conversation, call, counted_ids, panel, raw_call, reply, seat, tool
from hypothesis import given, settings
from hypothesis import strategies as st

from folkmoot.agentloop import offers
from folkmoot.agentloop.consent import needs_consent
from folkmoot.domain import items
from folkmoot.domain.agent_runs import Phase, PinnedLoop, PinnedSpecialist
from folkmoot.domain.agent_settings import Comparison, ConsentRule
from folkmoot.domain.calls import CallResult, DelegateTarget
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.engine import decide
from folkmoot.engine.step import AskModel, RunCall, Step, Wait

OVER = ConsentRule("pay", Comparison.ABOVE, "amount", 100)
LOOK, ADD = tool("look", is_read_only=True), tool("add")
TELL, PAY = tool("tell", is_gated=True), tool("pay", consent_rules=(OVER,))
CLERK = PinnedSpecialist("clerk", UUID(int=901), 1)
ITERATIONS, TOOL_CALLS = 2, 4
MOST = 600  # outcomes; far more than a run of two iterations can ask for
NAMES = ("look", "add", "tell", "pay", "fly")

steps = st.one_of(
    st.sampled_from(NAMES[:4]).map(lambda name: {"what": f"Use {name}.", "tool": name}),
    st.sampled_from(
        [
            {"what": "Say it."},
            {"what": "Let it be done.", "specialist": "clerk"},
            {"what": "Both.", "tool": "add", "specialist": "clerk"},
            {"what": "Fly.", "tool": "fly"},
            {"tool": "add"},
        ]
    ),
)
plans = st.builds(
    lambda found, criteria: call("make_plan", steps=found, criteria=criteria),
    st.lists(steps, max_size=3), st.sampled_from([["Done."], ["One.", "Two."], []]),
)  # fmt: skip
good_plans = st.builds(
    lambda names: call(
        "make_plan",
        steps=[{"what": "Act.", "specialist": "clerk"} if n == "clerk" else {"what": "Act.", "tool": n} for n in names],
        criteria=["Done."],
    ),
    st.lists(st.sampled_from([*NAMES[:4], "clerk"]), min_size=1, max_size=3),
)
verdicts = st.builds(
    lambda is_met, numbers, words: call(
        "verdict", isMet=is_met, criteria=[{"number": n, "isMet": is_met, "evidence": "It says so."} for n in numbers], **words
    ),
    st.booleans(), st.sampled_from([[1], [1, 2], [2], []]),
    st.sampled_from([{}, {"answer": "It is done."}, {"missing": "All of it."}, {"answer": "Yes.", "missing": "No."}]),
)  # fmt: skip
good_verdicts = st.builds(
    lambda is_met: call(
        "verdict", isMet=is_met, criteria=[{"number": 1, "isMet": is_met, "evidence": "It says so."}], answer="It is done.", missing="All."
    ),
    st.booleans(),
)  # fmt: skip
tool_calls = st.one_of(
    st.sampled_from([call(name) for name in NAMES]),
    st.sampled_from([call("pay", amount=n) for n in (5, 500, "500", None, True)]),
    st.sampled_from([call("delegate", specialist=name, task="Do it.") for name in ("clerk", "boss")]),
    st.sampled_from([call("delegate"), call("replan", reason="It fails."), call("replan"), raw_call("add", "{")]),
)
anything = st.one_of(
    st.builds(lambda text, calls: reply(text, *calls), st.sampled_from(["", "So.", "verdict: true"]),
              st.lists(st.one_of(tool_calls, plans, verdicts), max_size=3)),
    st.just(EMPTY),
)  # fmt: skip
fitting = {
    Phase.GATHER: st.sampled_from([reply("Nothing."), reply("", call("look"))]),
    Phase.PLAN: good_plans.map(lambda made: reply("", made)),
    Phase.ACT: st.one_of(st.just(reply("It is done.")), tool_calls.map(lambda made: reply("", made))),
    Phase.VERIFY: st.one_of(good_verdicts, verdicts).map(lambda made: reply("", made)),
}


def run_of(*, has_budget: bool = False) -> Conversation:
    loop = PinnedLoop(
        UUID(int=7), (UUID(int=900),), (CLERK,), maximum_iterations=ITERATIONS, tool_calls=TOOL_CALLS if has_budget else None
    )  # fmt: skip
    return Conversation(panel(seat("boss", LOOK, ADD, TELL, PAY), loop=loop, max_tool_call_loops=3))


def go_on(data: st.DataObject, talk: Conversation) -> None:
    """One more thing happens: a reply, a result, a lost worker, an owner's word, the end of a delegated run; now and then a stop."""
    step = data.draw(st.sampled_from(talk.steps))
    if data.draw(st.integers(0, 200)) == 137:
        return talk.stop()
    if isinstance(step, Wait) and step.pending is not None:
        return talk.decide(approve=data.draw(st.booleans()), void=data.draw(st.integers(0, 9)) == 7)
    if isinstance(step, Wait):
        (awaited,) = step.awaits
        talk.sub_runs[awaited.run_ids[0]] = data.draw(st.sampled_from([RunStatus.COMPLETED, RunStatus.FAILED]))
        talk.settle()
    elif isinstance(step, RunCall):
        _perform(data, talk, step)
    else:
        assert isinstance(step, AskModel)
        phase = talk.protocol.turn.phase if talk.protocol.turn is not None else None
        assert phase is not None
        is_fitting = data.draw(st.integers(0, 3)) > 0
        talk.take(step, data.draw(fitting[phase] if is_fitting else anything))


def _perform(data: st.DataObject, talk: Conversation, step: RunCall) -> None:
    run_id = UUID(step.call.call_id)
    if isinstance(step.tool.target, DelegateTarget) and run_id not in talk.sub_runs:
        talk.sub_runs[run_id] = RunStatus.RUNNING
        talk.settle()
    elif not (step.tool.is_idempotent or step.tool.is_read_only) and data.draw(st.integers(0, 9)) == 7:
        talk.begin(step.call.name, lost=True)  # its worker is gone, and another one decides
        talk.settle()
    else:
        is_error = data.draw(st.booleans())
        below = 2 if isinstance(step.tool.target, DelegateTarget) else None
        talk.take(step, CallResult("no" if is_error else "ok", is_error=is_error, delegated_calls=below))


def is_sound(talk: Conversation) -> None:
    """What holds at every moment. A run that is cut here and read again goes on with the same steps."""
    again = talk.refolded()
    assert talk.protocol == again
    if talk.steps:
        assert decide.next_steps(talk.seating, again, talk.facts, counted_ids(10**9)) == talk.steps
    results = Counter(result.tool_call_id for result in talk.bodies(items.ToolResult))
    assert not results or max(results.values()) == 1
    assert talk.protocol.loop.iteration <= ITERATIONS + 1
    for step in talk.steps:
        _is_allowed(talk, step)


def _is_allowed(talk: Conversation, step: Step) -> None:
    loop, turn = talk.protocol.loop, talk.protocol.turn
    assert turn is not None
    if isinstance(step, AskModel):
        assert not turn.open_calls, "a model is asked while a call of its own has no result (B20)"
        assert turn.phase is loop.phase
        if step.offered:
            assert {each.name for each in step.offered} == offers.names_for(
                loop.phase, loop, talk.seating.tools["boss"].values(), reads_on=False
            )
    if not isinstance(step, RunCall):
        return
    if turn.phase is Phase.GATHER:
        assert step.call.name == "look", "gathering only reads"
    else:
        planned = loop.current_step
        assert turn.phase is Phase.ACT and planned is not None
        assert step.call.name == ("delegate" if planned.specialist else planned.tool), (
            "F54: what the step names, and nothing else"
        )
    if needs_consent(step.tool, step.call):
        decision = talk.decisions[step.call.call_id]
        assert decision.is_approved and not decision.is_void, "a gated call waits for its approval"


def is_sound_at_the_end(talk: Conversation) -> None:
    assert talk.end is not None and talk.end.status in FINAL
    calls = [made.tool_call_id for made in talk.bodies(items.ToolCall)]
    assert sorted(calls) == sorted(result.tool_call_id for result in talk.bodies(items.ToolResult)), "B20"
    assert len(talk.details(items.Ended)) == 1 and isinstance(talk.items[-1].detail, items.Ended)
    met = [said for said in talk.details(items.Verified) if said.is_met]
    if talk.end.status is RunStatus.COMPLETED:
        assert [said.answer for said in met] == [talk.end.output] and talk.end.output
    else:
        assert not met
    if talk.end.status is RunStatus.FAILED:
        assert (talk.end.failure or "").strip(), "it says why"


@settings(max_examples=150, deadline=None)
@given(data=st.data(), has_budget=st.booleans())
def test_an_agent_run_keeps_its_order_and_ends_whatever_comes(data: st.DataObject, has_budget: bool) -> None:
    talk = run_of(has_budget=has_budget)
    for _ in range(MOST):
        is_sound(talk)
        if not talk.steps:
            break
        go_on(data, talk)
    is_sound_at_the_end(talk)
    if has_budget:
        assert talk.protocol.loop.tool_calls <= TOOL_CALLS + 2, (
            "at most what a delegated run made beyond what it was left; what asked for more was closed, and not made"
        )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_a_declined_call_would_have_done_is_never_done(data: st.DataObject) -> None:
    """Consent 3: with an owner who declines everything, nothing gated is ever begun, whatever the model tries."""
    talk = run_of()
    for _ in range(MOST):
        if not talk.steps:
            break
        for step in talk.steps:
            assert not (isinstance(step, RunCall) and needs_consent(step.tool, step.call))
        if isinstance(talk.steps[0], Wait) and talk.steps[0].pending is not None:
            asked = json.loads(talk.steps[0].pending.card["argumentsJson"])
            assert talk.steps[0].pending.card["functionName"] == "tell" or asked.get("amount") not in (5,)
            talk.decide(approve=False)
        else:
            go_on(data, talk)
    is_sound_at_the_end(talk)
