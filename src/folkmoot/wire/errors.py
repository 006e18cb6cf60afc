"""Problems (RFC 9457, `application/problem+json`) and the faults that a refused body is told by.

Deliberately absent: HTTP statuses of error classes (the API chooses them), and the values that were refused: they may
be secret.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from folkmoot.kernel.errors import Fault
from folkmoot.wire.formats import ResponseShape, variant

_LONGEST_NAME = 80
_VARIANTS = (variant("RoundRobin"), variant("Managed"))


class ProblemError(ResponseShape):
    """One thing that is wrong. `pointer` is a JSON pointer into the body, empty for the whole of it."""

    pointer: str
    message: str


class Problem(ResponseShape):
    """What went wrong. `code` is stable, for programs; `detail` is a sentence for people."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[ProblemError, ...]
    code: str


def problem_errors(faults: Iterable[Fault]) -> tuple[ProblemError, ...]:
    """Faults as they stand on the wire; files and lines are for the command line only."""
    return tuple(ProblemError(pointer=_plain(fault.pointer), message=_plain(fault.message)) for fault in faults)


def faults_of(details: Iterable[Mapping[str, Any]], *, within: tuple[str | int, ...] = ()) -> tuple[Fault, ...]:
    """Say what a validation found, in the order found.

    `details` is what `errors()` of a Pydantic or a FastAPI validation error gives; `within` is the beginning of their
    locations that is not part of the body (`("body",)` for FastAPI's).
    """
    return tuple(_fault_of(detail, within) for detail in details)


def pointer_to(place: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901) to a place in a body."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


def _fault_of(detail: Mapping[str, Any], within: tuple[str | int, ...]) -> Fault:
    place: tuple[str | int, ...] = tuple(detail["loc"])
    place = place[len(within) :] if place[: len(within)] == within else place
    # The shape of several that the body was taken for is no part of it.
    place = place[1:] if place and place[0] in _VARIANTS else place
    # Pydantic marks a fault of a key, as against its value, by a part that the body does not have.
    place = place[:-1] if place and place[-1] == "[key]" and detail["type"] != "extra_forbidden" else place
    if detail["type"] == "json_invalid":
        where = f" at character {place[-1]}" if place else ""
        return Fault("", f"This is not JSON{where}; correct it and send it again.")
    return Fault(pointer_to(place), _sentence(str(detail["type"]), place, str(detail["msg"])))


def _sentence(kind: str, place: tuple[str | int, ...], message: str) -> str:
    name = _shortened(str(place[-1])) if place else ""
    if kind == "extra_forbidden":
        return f"There is no field '{name}' here; remove it, or correct its name."
    if kind == "missing":
        return f"The field '{name}' is required." if place else "A body is required."
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return "This should be a JSON object."
    if kind in ("tuple_type", "list_type"):
        return "This should be a JSON array."
    if kind == "string_unicode":
        return "This holds text that is not valid Unicode (a lone surrogate); remove it."
    return message if message.endswith(".") else f"{message}."


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + "…"


def _plain(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate in what is refused must not break the answer that refuses it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
