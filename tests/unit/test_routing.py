"""Routers: before each turn of a participant with one it is decided which agent takes it (conversation.md 'Routers'; B32)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from engine_harness import NOW, Conversation, call, panel, propose, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.contexts import ContextMode, ContextSettings
from folkmoot.domain.definitions import Participant, SystemPromptMode
from folkmoot.domain.model_calls import (
    FailureClass,
    ModelChoice,
    ModelFailure,
    ModelReply,
    OwnCall,
    Purpose,
    SystemText,
)
from folkmoot.domain.routers import CandidateKind, PinnedCandidate, PinnedRouter, RouterRule
from folkmoot.engine.step import AskModel

CHOOSER = ModelChoice("scripted", "chooser")
CODER, WRITER = UUID(int=501), UUID(int=502)
FIRST, SECOND = UUID(int=601), UUID(int=602)
AGENTS = {
    "coder": PinnedCandidate("coder", CandidateKind.AGENT, CODER, 3, "Knows programs."),
    "writer": PinnedCandidate("writer", CandidateKind.AGENT, WRITER, 1, "Knows words."),
}


def router(*rules: RouterRule, model: ModelChoice | None = CHOOSER, **more: Any) -> PinnedRouter:
    return PinnedRouter(FIRST, "dispatcher", 2, tuple(AGENTS.values()), "writer", rules, model, "Be just.", **more)


def routed(*routers: PinnedRouter, name: str = "Expert") -> Participant:
    """A seat with two agents; the writer has it before the first choice."""
    base = seat(name)
    of_agents = [
        replace(base, agent_id=CODER, agent_name="coder", prompts=("You code.",), tools=(tool("compile"),),
                model=ModelChoice("scripted", "code-model")),
        replace(base, agent_id=WRITER, agent_name="writer", prompts=("You write.",)),
    ]  # fmt: skip
    return replace(of_agents[1], routers=routers, candidates=tuple(of_agents))


def choose(candidate: str, reason: str = "It fits.") -> ModelReply:
    return reply("", call("choose", candidate=candidate, reason=reason))


def asked(talk: Conversation) -> AskModel:
    (step,) = talk.steps
    assert isinstance(step, AskModel)
    return step


def test_a_rule_decides_without_a_model_and_the_decision_stands_on_the_floor() -> None:
    talk = Conversation(panel(routed(router(RouterRule("coder", turn_number=1)))))
    step = asked(talk)
    assert (step.participant, step.agent, step.purpose) == ("Expert", CODER, Purpose.TURN)
    (floor,) = talk.details(items.Floor)
    assert floor.agent == CODER
    assert floor.router == (
        items.Routing(FIRST, "dispatcher", 2, CODER, 3, "coder", "Rule 1: turn 1.", is_fallback=False, depth=1),
    )


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        (RouterRule("coder"), True),
        (RouterRule("coder", participant="Expert"), True),
        (RouterRule("coder", participant="Ann"), False),
        (RouterRule("coder", input="topic", input_value="code"), True),
        (RouterRule("coder", input="topic", input_value="words"), False),
        (RouterRule("coder", input="other", input_value="code"), False),
        (RouterRule("coder", thread="main"), True),
        (RouterRule("coder", thread="side"), False),
        (RouterRule("coder", turn_number=2), False),
        (RouterRule("coder", last_author="Ann"), True),
        (RouterRule("coder", last_author="Human"), False),
        (RouterRule("coder", last_author="Ann", turn_number=1, input="topic", input_value="code"), True),
        (RouterRule("coder", last_author="Ann", turn_number=2), False),
    ],
)
def test_a_rule_matches_where_all_that_it_sets_does(rule: RouterRule, *, matches: bool) -> None:
    talk = Conversation(panel("Ann", routed(router(rule, model=None)), inputs=(("topic", "code"),)))
    talk.say("Ann", "Let us begin.")
    assert asked(talk).agent == (CODER if matches else WRITER)
    assert talk.details(items.Floor)[-1].router[0].is_fallback is not matches


def test_a_persons_word_is_the_last_authors() -> None:
    talk = Conversation(panel("Ann", routed(router(RouterRule("coder", last_author="Human"), model=None))))
    talk.hear("I say something.")
    talk.say("Ann", reply("", call("pass")))
    assert asked(talk).agent == CODER


def test_the_model_chooses_where_no_rule_does_and_is_shown_who_can_be_chosen() -> None:
    talk = Conversation(panel("Ann", routed(router())))
    talk.say("Ann", "There is a bug in the parser.")
    step = asked(talk)
    assert (step.purpose, step.required, step.subject) == (Purpose.ROUTE, True, FIRST)
    assert talk.seating.model_of(step) is CHOOSER
    assert step.instruction is not None and "- coder: Knows programs." in step.instruction
    system, *said = talk.request(step)
    assert isinstance(system, SystemText) and "Be just." in system.text
    assert any(
        "bug in the parser" in entry.text
        for entry in said
        if not isinstance(entry, SystemText) and hasattr(entry, "text")
    )
    talk.take(step, choose("coder"))
    assert asked(talk).agent == CODER
    (floor,) = [f for f in talk.details(items.Floor) if f.participant == "Expert"]
    assert (floor.router[0].reason, floor.router[0].is_fallback, floor.router[0].depth) == ("It fits.", False, 1)
    assert talk.protocol == talk.refolded()


@pytest.mark.parametrize(
    "bad",
    [
        reply("I would take the coder."),
        reply("", call("choose", candidate="nobody", reason="x")),
        reply("", call("choose", candidate="coder", reason="x"), call("choose", candidate="writer", reason="y")),
        reply("", call("choose", reason="x")),
        reply("", call("delegate", candidate="coder")),
        reply(),
    ],
)
def test_a_choice_of_nobody_is_asked_again_a_bounded_number_of_times_and_then_the_fallback_is_taken(
    bad: ModelReply,
) -> None:
    """B32."""
    talk = Conversation(panel(routed(router())))
    keys: list[str] = []
    while (step := asked(talk)).purpose is Purpose.ROUTE:
        keys.append(step.key)
        talk.take(step, bad)
    assert len(set(keys)) == len(keys) == 3
    assert step.agent == WRITER
    (floor,) = talk.details(items.Floor)
    assert floor.router[0].is_fallback and "chose nobody in 3 tries" in (floor.router[0].reason or "")
    assert talk.protocol == talk.refolded()


def test_a_model_that_cannot_be_asked_leaves_the_fallback_and_the_run_goes_on() -> None:
    talk = Conversation(panel(routed(router())))
    talk.take(asked(talk), ModelFailure(FailureClass.INVALID_REQUEST, "no"))
    assert asked(talk).agent == WRITER
    (floor,) = talk.details(items.Floor)
    assert floor.router[0].is_fallback and "could not be asked (InvalidRequest)" in (floor.router[0].reason or "")


def chain() -> Participant:
    first = replace(
        router(RouterRule("inner")),
        candidates=(PinnedCandidate("inner", CandidateKind.ROUTER, SECOND, 1), AGENTS["writer"]),
    )
    second = replace(router(), router_id=SECOND, name="inner", version=1)
    return routed(first, second)


def test_a_router_may_choose_a_router_and_depth_counts_up() -> None:
    talk = Conversation(panel(chain()))
    step = asked(talk)
    assert (step.purpose, step.subject) == (Purpose.ROUTE, SECOND)
    talk.take(step, choose("coder"))
    (floor,) = talk.details(items.Floor)
    assert [(r.router_name, r.chosen_name, r.depth) for r in floor.router] == [
        ("dispatcher", "inner", 1),
        ("inner", "coder", 2),
    ]
    assert asked(talk).agent == CODER


def test_whoever_was_chosen_speaks_under_the_participants_name_with_its_own_model_tools_and_prompt() -> None:
    talk = Conversation(panel("Ann", routed(router(RouterRule("coder", turn_number=1), model=None))))
    talk.say("Ann", "Well.")
    step = asked(talk)
    assert "compile" in [t.name for t in step.offered]
    assert talk.seating.model_of(step).model_name == "code-model"
    assert "You code." in talk.view("Expert")[0].text  # type: ignore[union-attr]
    (said,) = talk.say("Expert", "It compiles.")
    assert (said.author.name, said.author.id) == ("Expert", CODER)
    assert talk.lines("Ann")[-2:][0] == "Expert: It compiles."
    talk.say("Ann", "Now the words.")
    step = asked(talk)  # no rule matches in the second round
    assert step.agent == WRITER and "compile" not in [t.name for t in step.offered]
    assert "You write." in talk.view("Expert")[0].text  # type: ignore[union-attr]
    assert any(line == "me: It compiles." for line in talk.lines("Expert"))


def test_a_vote_is_cast_by_whoever_has_the_seat() -> None:
    talk = Conversation(panel("Ann", routed(router(RouterRule("coder"), model=None))))
    talk.say("Ann", propose("A"))
    assert talk.step_of("Expert").agent is None  # nobody was chosen yet: the fallback's agent has it
    assert talk.seating.participants[talk.step_of("Expert").seat].agent_id == WRITER
    talk.say("Expert", reply("", call("disagree", reason="No.")))
    talk.say("Expert", "I say.")
    talk.say("Ann", propose("B"))
    assert talk.step_of("Expert").agent == CODER


def test_a_direct_question_is_routed_too_and_its_tries_are_its_own() -> None:
    talk = Conversation(panel("Ann", routed(router())))
    talk.say("Ann", reply("", call("ask", participant="Expert", question="Which?")))
    step = asked(talk)
    assert step.purpose is Purpose.ROUTE
    talk.take(step, choose("coder"))
    answer = asked(talk)
    assert (answer.purpose, answer.agent) == (Purpose.ANSWER, CODER)
    talk.say("Expert", reply("", call("answer", text="B")))
    talk.say("Ann", "Thank you.")
    again = asked(talk)
    assert again.purpose is Purpose.ROUTE and again.key != step.key
    assert talk.protocol == talk.refolded()


def test_a_routers_words_are_in_nobodys_view() -> None:
    talk = Conversation(panel("Ann", routed(router())))
    talk.say("Ann", "Well.")
    talk.take(asked(talk), reply("Nobody."))
    talk.take(asked(talk), choose("coder"))
    assert not any("chose" in line for name in ("Ann", "Expert") for line in talk.lines(name))


def test_dispatched_work_is_routed_in_its_thread_and_several_side_by_side() -> None:
    talk = Conversation(
        panel("Lead", routed(router()), manager="Lead", is_no_action_allowed=False, is_voting_allowed=False,
              is_direct_questioning_allowed=False, is_solution_proposal_allowed=False)
    )  # fmt: skip
    sent = [call("dispatch", agent="Expert", message=f"Part {n}.", mode="OneTime") for n in (1, 2)]
    talk.say("Lead", reply("", *sent))
    first, second = (step for step in talk.steps if isinstance(step, AskModel))
    assert first.purpose is second.purpose is Purpose.ROUTE and first.key != second.key
    assert "Part 1." in (first.instruction or "")
    talk.take(second, choose("coder"))
    talk.take(next(s for s in talk.steps if isinstance(s, AskModel) and s.key == first.key), choose("writer"))
    agents = {step.thread_id: step.agent for step in talk.steps if isinstance(step, AskModel)}
    assert agents == {first.thread_id: WRITER, second.thread_id: CODER}
    assert "You code." in talk.view(second.thread_id)[0].text  # type: ignore[union-attr]
    assert talk.protocol == talk.refolded()


def test_what_a_router_is_shown_fits_its_own_window() -> None:
    small = replace(CHOOSER, context_window=400)
    talk = Conversation(panel("Ann", routed(router(model=small))))
    talk.say("Ann", "Long words. " * 2000)
    entries = talk.request(asked(talk))
    assert len(entries) == 2 and sum(len(e.text) for e in entries if not hasattr(e, "call_id")) < 2000  # type: ignore[union-attr]


def test_a_choice_that_comes_after_a_rule_has_decided_counts_for_nothing() -> None:
    """A person's word makes a rule match while the model is asked: the floor is given, and the late reply is of no floor."""
    talk = Conversation(panel("Ann", routed(router(RouterRule("coder", last_author="Human")))))
    talk.say("Ann", "Let us begin.")
    late = asked(talk)
    talk.hear("Let the coder speak.")
    assert asked(talk).agent == CODER
    talk.take(late, choose("writer"))
    talk.say("Expert", "I code.")
    talk.say("Ann", "Go on.")
    step = asked(talk)
    assert step.purpose is Purpose.ROUTE, "its next floor is decided anew"
    assert talk.protocol == talk.refolded()
    nobody = Conversation(panel("Ann", routed(router(RouterRule("coder", last_author="Human")))))
    nobody.say("Ann", "Let us begin.")
    late = asked(nobody)
    nobody.hear("Let the coder speak.")
    nobody.take(late, reply("Hm."))
    nobody.say("Expert", "I code.")
    nobody.say("Ann", "Go on.")
    assert asked(nobody).call == 1, "nor does it take a try from the next one"


def test_when_time_is_almost_up_the_fallback_is_taken_and_the_last_turn_given() -> None:
    """B72: a model that is slow to choose does not eat the time for the answer."""
    limits = {"duration_auto_termination": timedelta(minutes=10), "duration_warning_to_ai": timedelta(minutes=6)}
    talk = Conversation(panel("Ann", routed(router()), **limits))
    talk.deadline = NOW + timedelta(minutes=10)
    talk.say("Ann", "Hello.")
    talk.under_way = {asked(talk).key: UUID(int=99_999)}
    talk.now = NOW + timedelta(minutes=9, seconds=10)
    talk.settle()
    assert asked(talk).agent == WRITER and talk.protocol.had_last_turn
    assert "time was almost up" in (talk.details(items.Floor)[-1].router[0].reason or "")


def test_of_the_newest_words_a_router_always_sees_something() -> None:
    talk = Conversation(panel("Ann", routed(router(model=replace(CHOOSER, context_window=400)))))
    talk.say("Ann", f"Begin {'long words ' * 2000} end.")
    _, shown = talk.request(asked(talk))
    assert not isinstance(shown, OwnCall) and "Begin" in shown.text and "end." in shown.text


def test_what_one_candidates_model_refused_says_nothing_of_anothers() -> None:
    """B22: windows are the models', and a seat may have several."""
    base = routed(router(RouterRule("coder", turn_number=2), model=None))
    small, large = (ModelChoice("scripted", name, context_window=size) for name, size in (("s", 2000), ("l", 200_000)))
    agents = (replace(base.candidates[0], model=small), replace(base.candidates[1], model=large))
    made = replace(base, model=large, candidates=agents)
    talk = Conversation(panel("Ann", made, context=ContextSettings(mode=ContextMode.COMPACT)))
    talk.say("Ann", "Well " * 900)
    talk.say("Expert", "I see.")
    talk.say("Ann", "Go on.")
    assert asked(talk).agent == CODER
    talk.take(asked(talk), ModelFailure(FailureClass.CONTEXT_TOO_LONG, "too long"))
    while asked(talk).purpose is Purpose.COMPACTION:
        talk.take(asked(talk), reply("In short: well."))
    talk.say("Expert", "Fine.")
    talk.say("Ann", "Words " * 1500)
    assert (asked(talk).purpose, asked(talk).agent) == (Purpose.TURN, WRITER)


def test_prompts_are_measured_with_whoever_was_chosen() -> None:
    base = routed(router(RouterRule("coder", turn_number=1), model=None))
    agents = (replace(base.candidates[0], prompts=("You code. " * 2000,)), base.candidates[1])
    talk = Conversation(panel("Ann", replace(base, candidates=agents)))
    assert talk.sizes.look_ahead
    talk.say("Ann", "Well.")
    assert talk.sizes.of(asked(talk)).guessed > 4000


def test_a_view_that_looked_ahead_to_another_agent_is_as_before() -> None:
    talk = Conversation(panel("Ann", routed(router(RouterRule("coder", turn_number=1), model=None))))
    before, tokens = list(talk.view("Expert")), talk.views.of["Expert"].tokens
    floor = items.Floor("Expert", 1, agent=CODER)
    with talk.views.looking_ahead():
        talk.views.add(items.Item(UUID(int=1), items.ORCHESTRATOR, items.OrchestratorMessage("Go."), floor))
        assert "You code." in talk.view("Expert")[0].text  # type: ignore[union-attr]
    view = talk.views.of["Expert"]
    assert (view.entries, view.tokens, sum(view.sizes)) == (before, tokens, tokens)


def test_a_rule_may_name_a_managers_thread_and_the_next_agent_has_its_own_prompt_there() -> None:
    seats = routed(router(RouterRule("coder", thread="code"), RouterRule("coder", turn_number=2), model=None))
    talk = Conversation(panel("Lead", seats, manager="Lead"))
    for label, n in (("words", 1), ("words", 2), ("code", 3)):
        sent = call("dispatch", agent="Expert", message=f"Part {n}.", mode="Continue", thread=label)
        talk.say("Lead", reply("", sent))
        step = asked(talk)
        assert step.agent == (WRITER if n == 1 else CODER)
        assert ("You code." if n > 1 else "You write.") in talk.view(step.thread_id)[0].text  # type: ignore[union-attr]
        talk.say("Expert", "Done.")


def test_whoever_shares_a_seat_is_told_something_where_defaults_are_replaced() -> None:
    base = routed(router(RouterRule("coder", turn_number=1), model=None))
    agents = tuple(replace(agent, prompts=()) for agent in base.candidates)
    mode = SystemPromptMode.REPLACE
    talk = Conversation(panel("Ann", replace(base, prompts=(), candidates=agents), system_prompt_mode=mode))
    assert [entry.text for entry in talk.view("Expert") if isinstance(entry, SystemText)] == ["You are Expert."]
