"""What models, tools and people may say to a run that lives by chance: strategies, and habits to bring one to its end."""

from __future__ import annotations

from engine_harness import call
from hypothesis import strategies as st
from run_model import TOOLS, Outcome

from folkmoot.domain.calls import CallResult
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.model_calls import FailureClass, ModelReply, Purpose, ReplyCall, Usage
from folkmoot.domain.pending import PERSON, PendingKind
from folkmoot.engine.step import RunCall, Step

NAMES = ("Ann", "Ben", "Cid")
WORDS = st.sampled_from(["", " ", "Yes.", "I agree", "TERMINATE", '{"name": "pass"}', "Größe \x00"])


CALLS = st.sampled_from(
    [
        call("pass"),
        call("call_vote", topic="A?"),
        call("call_vote"),
        call("propose_solution", solution={"choice": "A"}),
        call("propose_solution", solution="A"),
        call("propose_solution", solution=3),
        *(call("ask", participant=name, question="Why?") for name in (*NAMES, PERSON, "Nobody")),
        call("agree"),
        call("disagree", reason="no"),
        call("answer", text="Because."),
        call("nothing"),
        ReplyCall("write", "{"),
        *(call(tool.name) for tool in TOOLS),
        *(call(tool.name, of="x") for tool in TOOLS),
    ]
)
ANYTHING = st.tuples(WORDS, st.lists(CALLS, max_size=4).map(tuple))
FITTING = {
    Purpose.BALLOT: st.tuples(WORDS, st.sampled_from([(call("agree"),), (call("disagree", reason="no"),)])),
    Purpose.ANSWER: st.tuples(WORDS, st.just((call("answer", text="Because."),))),
    Purpose.TURN: st.one_of(
        st.tuples(WORDS, st.lists(CALLS, max_size=1).map(tuple)),
        st.tuples(WORDS, st.lists(st.sampled_from([call(tool.name) for tool in TOOLS]), max_size=3).map(tuple)),
        st.tuples(
            st.just(""), st.sampled_from([(call("ask", participant=n, question="Why?"),) for n in (*NAMES, PERSON)])
        ),
        st.tuples(
            st.just(""), st.sampled_from([(call("propose_solution", solution=v),) for v in ("A", {"choice": "A"})])
        ),
        st.tuples(
            st.just(""),
            st.sampled_from([(call("put"), call("write")), (call("pay"), call("look"), call("peek")), (call("pay"),)]),
        ),
    ),
}
CRASHES = st.sampled_from([None, None, None, None, 1, 2])  # after how many of the worker's writes
FAILURES = st.sampled_from([FailureClass.TIMEOUT, FailureClass.UNAVAILABLE, FailureClass.OVERLOADED])
HABITS: dict[str, tuple[str, tuple[ReplyCall, ...]]] = {
    "talks": ("Hm.", ()),
    "says nothing": ("", ()),
    "asks": ("", (call("ask", participant="Ann", question="Why?"),)),
    "asks several": ("", tuple(call("ask", participant=name, question="Why?") for name in (PERSON, *NAMES))),
    "calls what is not there": ("", (call("nothing"),)),
    "proposes what does not fit": ("", (call("propose_solution", solution=3),)),
    "proposes": ("", (call("propose_solution", solution={"choice": "A"}), call("propose_solution", solution="A"))),
    "calls for votes": ("Vote!", (call("call_vote", topic="A?"),)),
    "asks for approval": ("", (call("look"), call("pay"), call("write"))),
    "asks for approvals": ("", (call("put"), call("peek"), call("ask", participant=PERSON, question="Why?"))),
    "uses every tool": ("", (*(call(tool.name) for tool in TOOLS), call("call_vote"))),
}
# those most often of whom most is waited for
MODES = (*[ChatMode.EVERY_ROUND] * 3, *[ChatMode.ON_QUESTION] * 2, ChatMode.OBSERVING, ChatMode.EXCLUDED)
PEOPLE = [HumanSettings(mode, include_in_votes=True, include_in_solutions=n % 2 == 0) for n, mode in enumerate(MODES)]
SETTINGS = st.sampled_from([None, HumanSettings(ChatMode.EVERY_ROUND), *PEOPLE])
ANSWERS = {
    PendingKind.VOTE: ("agree", "disagree"),
    PendingKind.QUESTION: ("answer",),
    PendingKind.TURN: ("message", "pass"),
    PendingKind.APPROVAL: ("approve", "approve", "reject", "approve something else", "approve without the right"),
}


def outcome_of(step: Step, text: str, calls: tuple[ReplyCall, ...]) -> Outcome:
    """A reply, or a tool's result, of these words."""
    if isinstance(step, RunCall):
        return CallResult(text, is_error=text == "TERMINATE", unknown=text == "TERMINATE")
    return ModelReply(text, calls, Usage())
