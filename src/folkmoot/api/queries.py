"""The names in a request's query: those that the route has, each once. A misspelt filter would else answer as if nobody had filtered.

Deliberately absent: the values, which the routes' own signatures check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from fastapi import Request
from fastapi.dependencies.models import Dependant

from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.wire.errors import pointer_to

_LONGEST_NAME = 80
_MOST_FAULTS = 100


def names_of(taken: Dependant) -> tuple[str, ...]:
    """The query parameters of a route and of what it depends on, in their order."""
    own = (field.alias for field in taken.query_params)
    return (*own, *(name for below in taken.dependencies for name in names_of(below)))


def check_names(request: Request, known: Iterable[str]) -> None:
    """Raises BadInput with a fault for each name that the route does not have, or that is there twice."""
    given = Counter(name for name, _ in request.query_params.multi_items())
    faults = tuple(islice(_faults(given, tuple(known)), _MOST_FAULTS))
    if faults:
        raise BadInput(f"A parameter does not validate: {faults[0].message}", faults)


def _faults(given: Counter[str], known: tuple[str, ...]) -> Iterator[Fault]:
    for name, count in given.items():
        pointer, shown = pointer_to(("query", name)), name[:_LONGEST_NAME]
        if name not in known:
            there = f"this path takes {', '.join(known)}" if known else "this path takes none"
            yield Fault(pointer, f"There is no parameter '{shown}' here, {there}; remove it, or correct its name.")
        elif count > 1:
            yield Fault(pointer, f"The parameter '{shown}' is there {count} times; leave one.")
