"""The worked example A of traces.md, item by item. Deliberately absent: B and C, which wait for people (`test_traces_people`)."""

from __future__ import annotations

import json

import pytest
from engine_harness import AGREE, PASS, Conversation, call, disagree, panel, propose, reply

from folkmoot.domain import items
from folkmoot.domain.items import Outcome
from folkmoot.domain.model_calls import OwnCall
from folkmoot.domain.run_status import RunStatus

SCHEMA = json.dumps({"type": "object", "properties": {"choice": {"type": "string"}}, "required": ["choice"]})


def a_panel(**settings: object) -> Conversation:
    return Conversation(panel("Ann", "Ben", "Cid", solution_schema=SCHEMA, **settings))


def up_to_the_ballot() -> Conversation:
    """Trace A, items 1 to 9."""
    talk = a_panel()
    talk.say("Ann", "We could take A or B.")
    talk.say("Ben", reply("Let us see.", call("call_vote", topic="B over A?")))
    return talk


def up_to_the_solution() -> Conversation:
    """Trace A, items 1 to 13."""
    talk = up_to_the_ballot()
    talk.vote(Ann=AGREE, Cid=disagree("A is cheaper"))
    return talk


def test_a_panel_agrees_item_by_item() -> None:
    """traces.md A: kinds, authors and details of items 1 to 17."""
    talk = up_to_the_solution()
    talk.say("Cid", propose({"choice": "B"}))
    talk.vote(Ben=AGREE, Ann=AGREE)

    kinds = [item.body.kind for item in talk.items]
    assert kinds == [
        "systemPrompt", "systemPrompt", "systemPrompt", "orchestratorMessage", "orchestratorMessage", "agentMessage",
        "orchestratorMessage", "agentMessage", "voteProposal", "agree", "disagree", "orchestratorMessage", "orchestratorMessage",
        "solutionProposal", "agree", "agree", "orchestratorMessage",
    ]  # fmt: skip
    authors = [item.author.name for item in talk.items]
    assert authors == [*["Orchestrator"] * 5, "Ann", "Orchestrator", "Ben", "Ben", "Ann", "Cid", *["Orchestrator"] * 2, "Cid", "Ben", "Ann", "Orchestrator"]  # fmt: skip
    assert {item.thread_id for item in talk.items} == {"main"}

    at = dict(enumerate(talk.items, 1))
    assert [at[n].detail for n in (1, 2, 3)] == [items.Prompted(name) for name in ("Ann", "Ben", "Cid")]
    assert at[4].detail == items.Task()
    assert [at[n].detail for n in (5, 7, 13)] == [items.Floor(name, 1) for name in ("Ann", "Ben", "Cid")]
    assert [at[n].detail for n in (6, 8, 9, 14)] == [items.TurnEnd(), None, items.TurnEnd(), items.TurnEnd()]
    t1, t2, t3 = (at[n].turn_id for n in (5, 7, 13))
    assert len({t1, t2, t3}) == 3
    assert [at[n].turn_id for n in (6, 8, 9, 14)] == [t1, t2, t2, t3]

    vote, solution = at[9].body, at[14].body
    assert isinstance(vote, items.VoteProposal)
    assert isinstance(solution, items.SolutionProposal)
    v1, s1 = vote.vote_id, solution.solution_id
    assert (at[10].body, at[11].body) == (items.Agree(v1), items.Disagree(v1, "A is cheaper"))
    assert [at[n].detail for n in (10, 11)] == [items.Balloted(v1, 1)] * 2
    assert at[12].detail == items.Tally(v1, ("Ben", "Ann"), ("Cid",), (), Outcome.CARRIED)
    assert [at[n].body for n in (15, 16)] == [items.Agree(s1)] * 2
    assert at[17].detail == items.Tally(s1, ("Cid", "Ben", "Ann"), (), (), Outcome.ACCEPTED)


def test_an_accepted_solution_completes_the_run_with_exactly_that_output() -> None:
    """traces.md A, 17; Round-robin 6."""
    talk = up_to_the_solution()
    talk.say("Cid", propose({"choice": "B"}))
    talk.vote(Ben=AGREE, Ann=AGREE)
    assert talk.end is not None
    assert (talk.end.status, talk.end.output, talk.end.failure) == (RunStatus.COMPLETED, '{"choice":"B"}', None)
    assert talk.steps == ()


@pytest.mark.parametrize("order", [("Ann", "Cid"), ("Cid", "Ann")])
def test_votes_come_in_whatever_order_the_replies_do(order: tuple[str, str]) -> None:
    """traces.md A: '10 and 11 come in whatever order the replies do'."""
    talk = up_to_the_ballot()
    assert {step.key.rsplit(":", 2)[1] for step in talk.steps} == {"Ann", "Cid"}
    given = {"Ann": AGREE, "Cid": disagree("A is cheaper")}
    for name in order:
        talk.say(name, given[name])
    (tally,) = talk.details(items.Tally)
    assert (tally.in_favour, tally.against, tally.outcome) == (("Ben", "Ann"), ("Cid",), Outcome.CARRIED)


def test_while_one_vote_is_in_the_other_voter_sees_no_sign_of_it() -> None:
    """traces.md A: 'While 10 is there and 11 is not, Cid's view has neither 10 nor any sign of it'."""
    talk = up_to_the_ballot()
    before, step_before = list(talk.view("Cid")), talk.step_of("Cid")
    talk.say("Ann", reply("B is better by far.", call("agree")))
    assert talk.view("Cid") == before
    assert talk.step_of("Cid") == step_before


def test_later_a_vote_is_the_voters_own_call_with_its_result() -> None:
    """traces.md A: 'In Ann's later view 10 is her own call of agree and its result'."""
    talk = up_to_the_solution()
    own = [e for e in talk.view("Ann") if isinstance(e, OwnCall)]
    vote = next(item for item in talk.items if isinstance(item.body, items.Agree))
    assert own == [OwnCall(str(vote.item_id), "agree", "{}", "Your vote was counted.", False, vote.model_call_id)]


def test_an_invalid_solution_goes_back_to_its_author_in_the_same_turn() -> None:
    """traces.md A, first bullet: a toolCall and an error toolResult with the validator's message."""
    talk = up_to_the_solution()
    asked = talk.step_of("Cid")
    made = talk.say("Cid", propose({"choice": 3}))
    assert [item.body.kind for item in made] == ["toolCall", "toolResult"]
    result = made[1].body
    assert isinstance(result, items.ToolResult)
    assert result.is_error
    assert "choice" in result.result and "string" in result.result
    again = talk.step_of("Cid")
    assert again.turn_id == asked.turn_id
    assert again.key != asked.key
    assert talk.lines("Cid")[-1].startswith(
        'me propose_solution({"solution": {"choice": 3}}) -> The solution does not fit'
    )


def test_after_the_third_invalid_solution_in_a_row_the_turn_is_given_up() -> None:
    """traces.md A, first bullet: an orchestratorMessage {turn t3, given up}, and the floor goes on."""
    talk = up_to_the_solution()
    turn_id = talk.step_of("Cid").turn_id
    for _ in range(3):
        talk.say("Cid", propose({"choice": 3}))
    given_up = next(item for item in talk.items if isinstance(item.detail, items.GivenUp))
    assert given_up.turn_id == turn_id
    assert given_up.author == items.ORCHESTRATOR
    assert talk.floors() == ["Ann1", "Ben1", "Cid1", "Ann2"]


def test_text_i_agree_is_no_vote_and_after_two_tries_an_abstention() -> None:
    """traces.md A, second bullet; B31."""
    talk = up_to_the_ballot()
    v1 = talk.bodies(items.VoteProposal)[0].vote_id
    talk.say("Ann", "I agree")
    assert talk.details(items.NoVote) == [items.NoVote(v1, "Ann", 1, "I agree")]
    assert not talk.bodies(items.Agree)
    assert talk.step_of("Ann").key == f"ballot:{v1}:Ann:2"
    talk.say("Ann", "I said I agree")
    assert talk.details(items.Abstained) == [items.Abstained(v1, "Ann", "I said I agree")]
    talk.say("Cid", AGREE)
    assert talk.details(items.Tally)[0] == items.Tally(v1, ("Ben", "Cid"), (), ("Ann",), Outcome.CARRIED)


def test_a_rejected_solution_leaves_its_reasons_and_the_floor_goes_to_the_next() -> None:
    """traces.md A, third bullet: 17 says so, the reasons are in the disagree items, Ann has the floor of round 2."""
    talk = up_to_the_solution()
    talk.say("Cid", propose({"choice": "B"}))
    talk.vote(Ben=disagree("too dear"), Ann=disagree("too late"))
    assert talk.details(items.Tally)[1].outcome is Outcome.REJECTED
    assert [body.reason for body in talk.bodies(items.Disagree)][1:] == ["too dear", "too late"]
    assert talk.floors()[-1] == "Ann2"
    assert "Ben: I disagree: too dear" in talk.lines("Cid")
    assert talk.end is None


def passing(**settings: object) -> Conversation:
    talk = Conversation(panel("Ann", "Ben", "Cid", maximum_no_action_loops=1, **settings))
    for name in ("Ann", "Ben", "Cid"):
        talk.say(name, PASS)
    return talk


def test_when_all_pass_the_run_is_completed_without_output() -> None:
    """traces.md A, fourth bullet: three noAction, then {end, no action}, Completed with output null."""
    talk = passing()
    assert [i.author.name for i in talk.items if isinstance(i.body, items.NoAction)] == ["Ann", "Ben", "Cid"]
    assert talk.items[-1].detail == items.Ended(items.EndReason.NO_ACTION)
    assert talk.end is not None
    assert (talk.end.status, talk.end.output, talk.end.failure) == (RunStatus.COMPLETED, None, None)


def test_when_all_pass_where_a_schema_asks_for_an_answer_the_run_has_failed() -> None:
    """traces.md A, fourth bullet: 'with the schema, Failed'."""
    talk = passing(solution_schema=SCHEMA)
    assert talk.items[-1].detail == items.Ended(items.EndReason.NO_ACTION)
    assert talk.end is not None
    assert (talk.end.status, talk.end.output) == (RunStatus.FAILED, None)
    assert talk.end.failure is not None and "Allow more rounds" in talk.end.failure
