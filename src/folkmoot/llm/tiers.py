"""The service tier of a call, where a provider tells it in a place that the library does not hand on.

Deliberately absent: what a tier costs.
"""

from __future__ import annotations

from contextvars import ContextVar

# What was heard of the call that runs in this context; the last word counts.
heard_tiers: ContextVar[list[str] | None] = ContextVar("heard_tiers", default=None)


def hear_tier(tier: object) -> None:
    heard = heard_tiers.get()
    if heard is not None and isinstance(tier, str):
        heard.append(tier)
