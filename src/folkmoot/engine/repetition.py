"""Notices participants that go round in circles (F57): the same call and result, the same failing call, two calls in turn.

A value: noting a call gives a new one. Kept bounded: only the newest calls count. Deliberately absent: repeated words,
which a conversation may well hold, and calls that were refused, since nothing was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from folkmoot.domain.calls import AskedCall
from folkmoot.domain.items import ToolResult
from folkmoot.domain.schemas import canonical, parse_arguments

SAME_CALL_AND_RESULT = 4
SAME_FAILING_CALL = 3
PING_PONG = 6
_KEPT = 32
_KEPT_OF_THREAD = 8
_THREADS = 64

_Call = tuple[str, str, str, str]  # whose view it is in, participant, function, arguments in canonical form
_Entry = tuple[_Call, int, bool]  # the call, a hash of its result, whether it failed


@dataclass(frozen=True, slots=True)
class Circle:
    """What goes round in circles, in words, and in whose views the calls are made, each with its participant."""

    reason: str
    views: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`newest`: the last calls of the main conversation, of all; `threads`: of each thread of dispatched work, the last used last.

    `circle`: what the newest call closes, if it does. `warned`: in which views it was told already.
    """

    newest: tuple[_Entry, ...] = ()
    circle: Circle | None = None
    warned: frozenset[str] = frozenset()
    since_warning: int = 0
    threads: Mapping[str, tuple[_Entry, ...]] = field(default_factory=dict)

    def noting(self, call: AskedCall, result: ToolResult, *, who: str) -> Repetition:
        """`who`: the view that the call is in. Threads go on side by side, and do not repeat each other."""
        arguments = parse_arguments(call.arguments_json)
        text = canonical(arguments) if isinstance(arguments, dict) else call.arguments_json
        said = result.result
        if result.tool_result_id is not None:  # kept under a new id each time, though it may say the same
            said = said.replace(str(result.tool_result_id), "")
        entry = ((who, call.participant, call.name, text), hash(said), result.is_error)
        if who == call.participant:
            newest = (*self.newest[1 - _KEPT :], entry)
            return replace(self, newest=newest, circle=_circle(newest), since_warning=self.since_warning + 1)
        own = (*self.threads.get(who, ())[1 - _KEPT_OF_THREAD :], entry)
        others = [(thread, entries) for thread, entries in self.threads.items() if thread != who]
        threads = dict((*others[1 - _THREADS :], (who, own)))
        return replace(self, circle=_circle(own), since_warning=self.since_warning + 1, threads=threads)

    def warning(self, view: str) -> Repetition:
        return replace(self, warned=self.warned | {view}, since_warning=0)

    @property
    def to_warn(self) -> tuple[tuple[str, str], ...]:
        """The views, each with its participant, that go round in circles and were not told yet."""
        return (
            tuple(pair for pair in self.circle.views if pair[0] not in self.warned) if self.circle is not None else ()
        )

    @property
    def is_stuck(self) -> bool:
        """All who go round in circles were warned, and are at it again."""
        return self.circle is not None and self.since_warning > 0 and not self.to_warn


NOTHING_NOTED = Repetition()


def _circle(newest: Sequence[_Entry]) -> Circle | None:
    (who, participant, name, _), _, is_error = newest[-1]
    own, place = [entry for entry in newest if entry[0][0] == who], (who, participant)
    if is_error and _is_same(own[-SAME_FAILING_CALL:], SAME_FAILING_CALL, with_result=False):
        return Circle(
            f"{participant} made the same failing call of {name} {SAME_FAILING_CALL} times in a row", (place,)
        )
    if _is_same(own[-SAME_CALL_AND_RESULT:], SAME_CALL_AND_RESULT, with_result=True):
        words = f"{participant} made the same call of {name} with the same result {SAME_CALL_AND_RESULT} times in a row"
        return Circle(words, (place,))
    for entries in (newest, own):
        calls = [entry[0] for entry in entries[-PING_PONG:]]
        if _alternates(calls):
            (_, first, its_call, _), (_, second, other_call, _) = calls[0], calls[1]
            words = f"the same two calls alternate ({first}: {its_call}, {second}: {other_call}), {PING_PONG} in a row"
            return Circle(words, tuple(dict.fromkeys(call[:2] for call in calls[:2])))
    return None


def _is_same(entries: Sequence[_Entry], count: int, *, with_result: bool) -> bool:
    """Whether these are `count` times the same call, failing or with the same result."""
    last = entries[-1]
    return len(entries) == count and all(
        e[0] == last[0] and (e[1:] == last[1:] if with_result else e[2]) for e in entries
    )


def _alternates(calls: Sequence[_Call]) -> bool:
    return (
        len(calls) == PING_PONG and calls[0] != calls[1] and all(calls[n] == calls[n - 2] for n in range(2, PING_PONG))
    )
