"""What a model's call costs: tokens by kind, times prices by kind. Exact, in US dollars.

A kind without a price of its own is priced as providers do who name none for it: cached input and cache writes as input,
reasoning as output. Where a price that is needed is not known the cost is null, never 0. Deliberately absent: where prices come
from (a definition, or `llm.catalogue`), and the clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal

from folkmoot.domain.model_calls import TOKEN_KINDS, Usage

MILLION = 1_000_000
MOST_TOKENS = 2**53 - 1  # of a kind in one call; whatever a provider says beyond it is taken for this
KINDS = tuple(TOKEN_KINDS.values())
_INSTEAD = {"cached_input": "input", "cache_write": "input", "reasoning": "output"}


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens by kind; null: not known, or the kind has no price of its own."""

    input: Decimal | None = None
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None
    output: Decimal | None = None
    reasoning: Decimal | None = None

    def of(self, kind: str) -> Decimal | None:
        """What a token of the kind is charged at, that of another kind included."""
        own: Decimal | None = getattr(self, kind)
        if own is None and kind in _INSTEAD:
            own = getattr(self, _INSTEAD[kind])
        return own

    def over(self, other: Prices) -> Prices:
        """These, and another's for the kinds that have none here."""
        return Prices(*(_first(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))


UNKNOWN = Prices()


def own_prices(prices: Mapping[str, float] | None) -> Prices:
    """A definition's prices, by the wire's names of the kinds."""
    if not prices:
        return UNKNOWN
    return Prices(**{TOKEN_KINDS[name]: Decimal(str(price)) for name, price in prices.items() if name in TOKEN_KINDS})


def cost_of(usage: Usage, prices: Prices) -> Decimal | None:
    """What a call cost; null where a kind that it used has no known price, or nothing has one."""
    total = Decimal(0)
    if prices == UNKNOWN:
        return None
    for kind in KINDS:
        count = counted(getattr(usage, kind))
        if not count:
            continue
        price = prices.of(kind)
        if price is None:
            return None
        total += price * count
    return total / MILLION


def most_it_can_cost(prompt_tokens: int, reply_tokens: int, prices: Prices) -> Decimal | None:
    """The upper bound of a call's cost, whichever kinds its tokens turn out to be of; null where a price is not known."""
    dearest = [
        max((price for kind in kinds if (price := prices.of(kind)) is not None), default=None)
        for kinds in (("input", "cached_input", "cache_write"), ("output", "reasoning"))
    ]
    if None in (prices.input, prices.output) or None in dearest:
        return None
    prompt, reply = dearest
    assert prompt is not None and reply is not None
    return (prompt * counted(prompt_tokens) + reply * counted(reply_tokens)) / MILLION


def counted(tokens: int) -> int:
    """A provider's count as one that can be stored and summed."""
    return min(max(tokens, 0), MOST_TOKENS)


def total_tokens(usage: Usage) -> int:
    return sum(counted(getattr(usage, kind)) for kind in KINDS)


def _first(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return one if one is not None else other
