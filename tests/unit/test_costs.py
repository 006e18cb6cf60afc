"""Costs: exact, by kind, and null where a price is not known."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.costs import KINDS, UNKNOWN, Prices, cost_of, most_it_can_cost, own_prices
from folkmoot.domain.model_calls import Usage

D = Decimal
DEAR = Prices(D("3"), D("0.3"), D("3.75"), D("15"), D("20"))


@pytest.mark.parametrize(
    ("usage", "prices", "cost"),
    [
        (Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000), DEAR, D("42.05")),
        (Usage(input=1), DEAR, D("0.000003")),
        (Usage(input=7, output=3), own_prices({"input": 0.1, "output": 0.2}), D("0.0000013")),  # no binary fractions
        # a kind without a price of its own
        (Usage(cached_input=10, cache_write=10), Prices(input=D(1)), D("0.00002")),
        (Usage(reasoning=10), Prices(output=D(2)), D("0.00002")),
        # what is not known is null, never 0
        (Usage(input=10), UNKNOWN, None),
        (Usage(), UNKNOWN, None),
        (Usage(input=10, output=1), Prices(input=D(1)), None),
        (Usage(cached_input=10), Prices(output=D(1)), None),
        # a kind that was not used needs no price, and a price of 0 is one
        (Usage(input=10), Prices(input=D(1)), D("0.00001")),
        (Usage(input=10, output=10), own_prices({"input": 0, "output": 0}), D(0)),
        # what no provider can mean
        (Usage(input=-5, output=10**40), Prices(D(1), output=D(1)), D("9007199254.740991")),
    ],
)
def test_cost_is_exact_and_null_where_a_price_is_not_known(usage: Usage, prices: Prices, cost: Decimal | None) -> None:
    """Platform.md: cost is null where no price is known, never 0; B45: kinds are kept apart."""
    assert cost_of(usage, prices) == cost


def test_prices_of_a_definition_win_kind_by_kind() -> None:
    own = own_prices({"input": 1.25, "reasoning": 0.0})
    assert own.over(DEAR) == Prices(D("1.25"), D("0.3"), D("3.75"), D("15"), D("0.0"))


counts = st.integers(0, 10**7)
prices_of_kind = st.decimals(0, 1000, places=4)


@given(st.tuples(*[counts] * 5), st.tuples(*[prices_of_kind] * 5))
def test_no_call_costs_more_than_its_bound(tokens: tuple[int, ...], prices: tuple[Decimal, ...]) -> None:
    usage, known = Usage(*tokens), Prices(*prices)
    cost = cost_of(usage, known)
    bound = most_it_can_cost(
        usage.input + usage.cached_input + usage.cache_write, usage.output + usage.reasoning, known
    )
    assert cost is not None and bound is not None and cost <= bound
    assert cost == sum((cost_of(Usage(**{kind: getattr(usage, kind)}), known) or 0) for kind in KINDS)


def test_bound_is_null_where_a_price_is_not_known() -> None:
    assert most_it_can_cost(10, 10, Prices(input=D(1))) is None
    assert most_it_can_cost(10, 10, Prices(output=D(1), cached_input=D(1))) is None
