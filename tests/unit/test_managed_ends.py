"""Where managed turns begin and end, and what becomes of work that goes on beside others (conversation.md 'Managed'; B20, B36, B72, F57)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from engine_harness import EMPTY, NOW, Conversation, call, reply, seat, tool
from test_managed import LOOK, SCHEMA, finish, send, team, thread_of

from folkmoot.domain import items
from folkmoot.domain.contexts import ContextMode, ContextSettings, TrimmingMode
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.model_calls import OwnCall
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import AskModel, RunCall

ASKED = HumanSettings(ChatMode.ON_QUESTION)
VOTING = HumanSettings(ChatMode.ON_QUESTION, include_in_solutions=True)
TIMED: dict[str, Any] = {
    "duration_auto_termination": timedelta(minutes=10), "duration_warning_to_ai": timedelta(minutes=6)
}  # fmt: skip


def asking(talk: Conversation) -> list[AskModel]:
    return [step for step in talk.steps if isinstance(step, AskModel)]


def step_by_step(talk: Conversation, results: list[str]) -> None:
    """Each agent at work calls `look` once, and the results come in."""
    for step in asking(talk):
        talk.take(step, reply("", call("look")))
    for result in results:
        talk.give(result)


def test_two_agents_that_read_on_side_by_side_are_no_ping_pong() -> None:
    """F57: calls alternate since threads do, and bring something new each time."""
    talk = team(seat("Ann", LOOK), seat("Ben", LOOK))
    talk.say("Lead", reply("", send("Ann", "Read."), send("Ben", "Read.")))
    for n in range(8):
        step_by_step(talk, [f"a{n}", f"b{n}"])
    assert not talk.details(items.StuckWarning) and talk.end is None


def test_each_of_many_threads_is_warned_of_its_own_circle() -> None:
    """F57: however many go on beside it."""
    talk = team(seat("Ann", LOOK), maximum_concurrent_dispatches=12)
    talk.say("Lead", reply("", *(send("Ann", f"Part {n}.") for n in range(12))))
    for _ in range(4):
        step_by_step(talk, ["the same"] * 12)
    threads = {sent.thread_id for sent in talk.details(items.Dispatched)}
    assert {item.thread_id for item in talk.items if isinstance(item.detail, items.StuckWarning)} == threads


def test_the_same_work_may_be_sent_to_many() -> None:
    talk = team("Writer", maximum_concurrent_dispatches=5)
    talk.say("Lead", reply("", *(send("Writer", "What is 6 times 7?") for _ in range(5))))
    while asking(talk)[0].participant == "Writer":
        talk.take(asking(talk)[0], reply("42"))
    assert talk.end is None and not talk.details(items.StuckWarning)


def test_work_that_is_done_is_not_lost_at_a_cut() -> None:
    """Ben waits for Ann, whose call came first; what he brought stands when Ann is cut."""
    talk = team(seat("Ann", LOOK), "Ben", **TIMED)
    talk.deadline = NOW + timedelta(minutes=10)
    talk.say("Lead", reply("", send("Ann", "Go."), send("Ben", "Go.")))
    talk.say("Ben", "Ben's part.")
    talk.now = NOW + timedelta(minutes=9, seconds=30)
    talk.settle()
    results = talk.bodies(items.ToolResult)
    assert [(result.result == "Ben's part.", result.is_error) for result in results] == [(False, True), (True, False)]


def test_a_managers_terminal_tool_ends_nothing() -> None:
    talk = Conversation(_with_manager_tool(team("Writer"), tool("note", is_terminal=True)))
    talk.say("Lead", reply("", call("note")))
    talk.give("noted")
    assert talk.step_of("Lead").turn == 1 and talk.end is None
    talk.say("Lead", finish("B"))
    assert talk.end is not None and talk.end.output == "B"


def _with_manager_tool(talk: Conversation, given: Any) -> Any:
    definition = talk.seating.definition
    lead, *others = definition.participants
    return replace(definition, participants=(replace(lead, tools=(given,)), *others))


def test_the_terminal_tools_result_is_the_work_though_another_result_comes_last() -> None:
    talk = team(seat("Writer", tool("submit", is_terminal=True), LOOK))
    talk.say("Lead", reply("", send("Writer", "Send it.")))
    talk.say("Writer", reply("", call("submit"), call("look")))
    talk.give("submitted 17", of="submit")
    talk.give("nothing there", of="look", is_error=True)
    assert talk.bodies(items.ToolResult)[-1].result == "submitted 17"
    assert talk.protocol == talk.refolded()


def test_a_managers_answer_stands_in_its_view_as_it_gave_it() -> None:
    talk = team("Writer", human_settings=VOTING)
    talk.say("Lead", finish("B"))
    assert talk.wait.pending is not None
    talk.answer(items.Disagree(talk.wait.pending.pending_id, "No."))
    own = [entry for entry in talk.view("Lead") if isinstance(entry, OwnCall)]
    assert [(entry.name, entry.arguments_json) for entry in own] == [("finish", '{"answer": "B"}')]


def test_words_after_a_call_are_reminded_anew() -> None:
    """'Reminded once' is for words in a row: thinking aloud later is no answer."""
    talk = team("Writer", human_settings=ASKED)
    talk.say("Lead", "Let me think.")
    talk.say("Lead", reply("", call("ask", participant="Human", question="Which?")))
    assert talk.wait.pending is not None
    talk.answer(items.DirectQuestionAnswer(talk.wait.pending.pending_id, "B"))
    talk.say("Lead", "Let me think about B.")
    assert talk.end is None and len(talk.details(items.ManagerReminder)) == 2
    talk.say("Lead", reply("", call("nothing")))
    talk.say("Lead", "I will try otherwise.")
    assert talk.end is None


def test_manager_and_agents_are_told_that_time_runs_out() -> None:
    """B72: whoever is at work is told, each in its own place and words."""
    talk = team("Ann", **TIMED)
    talk.deadline = NOW + timedelta(minutes=10)
    talk.say("Lead", reply("", send("Ann", "Go.", "Continue")))
    talk.say("Ann", EMPTY)
    talk.now = NOW + timedelta(minutes=6, seconds=30)
    talk.settle()
    warned = {item.thread_id for item in talk.items if isinstance(item.detail, items.TimeWarning)}
    assert warned == {"main", thread_of(talk, "Ann")}
    assert "Time is running out" in talk.lines(thread_of(talk, "Ann"))[-1]
    talk.say("Ann", "Done.")
    assert any("give the answer with finish" in line for line in talk.lines("Lead"))


def test_a_large_result_of_work_is_shown_in_part_and_can_be_read_on_in() -> None:
    """Tools and approval: what is over 32 KiB is carried by head and tail; the item has it whole."""
    talk = team("Ann")
    talk.say("Lead", reply("", send("Ann", "Go.")))
    assert "read_tool_result" not in [t.name for t in talk.seating.offered("Lead", reads_on=False)]
    talk.say("Ann", "word " * 20_000)
    (result,) = talk.bodies(items.ToolResult)
    (shown,) = [entry for entry in talk.view("Lead") if isinstance(entry, OwnCall)]
    assert len(result.result) == 100_000 and len(shown.result) < 10_000
    assert f"id {result.tool_call_id}" in shown.result
    assert "read_tool_result" in [t.name for t in talk.step_of("Lead").offered]


def test_an_old_result_of_work_is_trimmed_as_others_are() -> None:
    trims = ContextSettings(mode=ContextMode.TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0)
    talk = team("Ann", context=trims)
    talk.say("Lead", reply("", send("Ann", "Go.")))
    talk.say("Ann", "A long report. " * 100)
    talk.say("Lead", reply("", send("Ann", "Again.")))
    talk.say("Ann", "Short.")
    entries = talk.request(talk.step_of("Lead"))
    results = [entry.result for entry in entries if isinstance(entry, OwnCall)]
    assert "left out here" in results[0] and results[1] == "Short."


def test_words_are_read_as_whatever_the_schema_asks_for() -> None:
    """B33."""
    talk = team("Writer", solution_schema='{"type": "array", "items": {"type": "integer"}}')
    talk.say("Lead", "[1, 2]")
    talk.say("Lead", "[1, 2]")
    assert talk.end is not None and talk.end.output == "[1,2]"


def test_an_empty_reply_is_asked_once_more_in_its_own_thread() -> None:
    talk = team("Ann", is_no_action_allowed=True)
    talk.say("Lead", reply("", send("Ann", "Go.")))
    talk.say("Ann", EMPTY)
    assert "Your reply was empty" in talk.lines(thread_of(talk, "Ann"))[-1]
    talk.say("Ann", EMPTY)  # nobody passes in dispatched work
    assert talk.bodies(items.ToolResult)[0].is_error and not talk.bodies(items.NoAction)
    talk.say("Lead", EMPTY)
    talk.say("Lead", EMPTY)
    assert talk.end is not None and talk.end.status is RunStatus.FAILED


def test_without_calls_left_the_manager_is_told_to_finish_now() -> None:
    talk = team("Writer", max_tool_call_loops=1, solution_schema=SCHEMA)
    talk.say("Lead", reply("", send("Writer", "Write.")))
    talk.say("Writer", "W")
    assert "Give your answer now with finish" in (talk.step_of("Lead").instruction or "")
    talk.say("Lead", finish({"choice": 1}))  # it may be put right
    talk.say("Lead", finish({"choice": "B"}))
    assert talk.end is not None and talk.end.status is RunStatus.COMPLETED


def test_what_agents_say_in_threads_is_nobodys_last_word() -> None:
    talk = team("Writer")
    talk.say("Lead", reply("To work.", send("Writer", "Write.")))
    talk.say("Writer", "W")
    assert talk.protocol.last_author == "Lead"


def test_calls_of_threads_are_made_beside_each_other() -> None:
    talk = team(seat("Ann", LOOK), seat("Ben", LOOK))
    talk.say("Lead", reply("", send("Ann", "Go."), send("Ben", "Go.")))
    for step in asking(talk):
        talk.take(step, reply("", call("look")))
    assert len([step for step in talk.steps if isinstance(step, RunCall)]) == 2
