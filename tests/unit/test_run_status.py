"""The transition table of runs (kernel.md, States): every move from every status, against a table written out by hand."""

from __future__ import annotations

from itertools import product

import pytest

from folkmoot.domain.run_status import FINAL, TRANSITIONS, WAITING, IllegalMove, Move, RunStatus, after

S = RunStatus
ALIVE = {S.NEW, S.RUNNING, S.PENDING_HUMAN, S.PENDING_APPROVAL, S.PENDING_SUB_INTERACTIONS}
LEGAL = {
    **{(Move.CLAIM, status): S.RUNNING for status in ALIVE},
    (Move.HAND_BACK, S.RUNNING): S.RUNNING,
    (Move.PAUSE_HUMAN, S.RUNNING): S.PENDING_HUMAN,
    (Move.PAUSE_APPROVAL, S.RUNNING): S.PENDING_APPROVAL,
    (Move.PAUSE_SUB_INTERACTIONS, S.RUNNING): S.PENDING_SUB_INTERACTIONS,
    (Move.COMPLETE, S.RUNNING): S.COMPLETED,
    (Move.FAIL, S.RUNNING): S.FAILED,
    **{(Move.STOP, status): S.STOPPED for status in ALIVE},
    (Move.EXPIRE, S.RUNNING): S.TIMED_OUT,
}


@pytest.mark.parametrize(("move", "status"), list(product(Move, RunStatus)), ids=str)
def test_each_move_goes_where_the_table_says_or_nowhere(move: Move, status: RunStatus) -> None:
    """kernel.md, States."""
    if (move, status) in LEGAL:
        assert after(move, status) is LEGAL[move, status]
    else:
        with pytest.raises(IllegalMove, match=f"{status} admits no {move}"):
            after(move, status)


def test_nothing_leaves_a_final_status() -> None:
    """B30."""
    assert not any(sources & FINAL for sources, _ in TRANSITIONS.values())


def test_every_status_is_final_or_has_a_way_to_an_end() -> None:
    """kernel.md: a run that waits can be claimed again and stopped; one whose time ran out is woken, and ends in its worker."""
    assert set(RunStatus) == ALIVE | FINAL
    assert not ALIVE & FINAL
    for status in ALIVE:
        assert any(status in sources and target in FINAL for sources, target in TRANSITIONS.values())


def test_a_pause_only_leads_into_waiting_and_only_a_claim_out_of_it_to_work() -> None:
    """state.md, Waking: 'only a claim sets `Running`'."""
    into = {move for move, (_, target) in TRANSITIONS.items() if target in WAITING}
    assert into == {Move.PAUSE_HUMAN, Move.PAUSE_APPROVAL, Move.PAUSE_SUB_INTERACTIONS}
    out = {move for move, (sources, target) in TRANSITIONS.items() if sources & WAITING and target not in FINAL}
    assert out == {Move.CLAIM}
