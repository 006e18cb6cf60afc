"""Which key a call takes, as keys and rests are at this moment: a pure choice, made anew for each call.

Deliberately absent: reading any of it, and opening a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from folkmoot.domain.credentials import WhenUsedUp
from folkmoot.domain.model_calls import FailureClass


@dataclass(frozen=True, slots=True)
class KeyNow:
    """A key that a call could take. `rests_as`: what its rest is kept under. `version`: changes with its value, and a rest of another
    version is none. `shown`: what sentences call it. `problem`: why it can be used by nobody, such as a secret that was deleted.
    """

    rests_as: str
    shown: str
    model_name: str
    base_url: str | None
    credential_id: str | None = None
    is_own_license: bool = False
    version: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """`model` '': for all of them. `until`: Unix seconds by the database's clock."""

    model: str
    version: str
    reason: FailureClass
    detail: str
    until: float


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Keys in the order in which they are tried, and what to do when none can be used now."""

    keys: tuple[KeyNow, ...]
    when_used_up: WhenUsedUp = WhenUsedUp.NEXT


@dataclass(frozen=True, slots=True)
class Resting:
    """No key can be used before `until`; it may then be worth to look again."""

    until: float
    became: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsedUp:
    """No key is left. `became`: a part of a sentence for each key, with what became of it."""

    became: tuple[str, ...]


Rests = Mapping[str, Sequence[Rest]]


def choose(groups: Sequence[KeyGroup], rests: Rests, *, now: float) -> KeyNow | Resting | UsedUp:
    """The first key of the first group that can be used now.

    A group that is used up says what comes then. At the end a rate limit is waited for, for it passes by itself; what else keeps
    keys from being used is final.
    """
    became: list[str] = []
    passing: list[float] = []
    for group in groups:
        chosen = _first(group.keys, rests, now)
        if chosen is not None:
            return chosen
        found = [(key, rest_of(key, rests, now=now)) for key in group.keys]
        became += [_became(key, rest, now) for key, rest in found]
        resting = [rest for _, rest in found if rest is not None]
        if group.when_used_up is WhenUsedUp.WAIT and resting:
            return Resting(min(rest.until for rest in resting), tuple(became))
        if group.when_used_up is WhenUsedUp.FAIL:
            return UsedUp(tuple(became))
        passing += [rest.until for rest in resting if rest.reason is FailureClass.RATE_LIMITED]
    return Resting(min(passing), tuple(became)) if passing else UsedUp(tuple(became))


def rest_of(key: KeyNow, rests: Rests, *, now: float) -> Rest | None:
    """The rest that the key is in for its model, the longest; null where it is awake, or cannot be used at all."""
    if key.problem is not None:
        return None
    found = [
        rest
        for rest in rests.get(key.rests_as, ())
        if rest.until > now and rest.version == key.version and rest.model in ("", key.model_name)
    ]
    return max(found, key=lambda rest: (rest.reason is not FailureClass.OVERLOADED, rest.until), default=None)


def _first(keys: Sequence[KeyNow], rests: Rests, now: float) -> KeyNow | None:
    """Overload is a place's, not a key's: keys at another place go before, and another key at the same place does not help."""
    usable: list[KeyNow] = []
    overloaded: set[str | None] = set()
    for key in keys:
        rest = rest_of(key, rests, now=now)
        if rest is not None and rest.reason is FailureClass.OVERLOADED:
            overloaded.add(key.base_url)
        elif rest is not None or key.problem is not None:
            continue
        usable.append(key)
    elsewhere: Iterator[KeyNow] = (key for key in usable if key.base_url not in overloaded)
    return next(elsewhere, usable[0] if usable else None)


def _became(key: KeyNow, rest: Rest | None, now: float) -> str:
    if key.problem is not None:
        return f"{key.shown} {key.problem}"
    assert rest is not None
    return f"{key.shown} rests for {max(1, round(rest.until - now))} s more ({rest.reason}: {rest.detail.rstrip('.')})"
