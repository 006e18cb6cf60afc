"""Names that a model sees, made from names that others chose: plain ASCII, short, each one once.

Deliberately absent: names of bound tools, which a definition gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

MAX_ARGUMENT = 64
MAX_OPERATION = 128

_OPERATION = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
# No dot: a binding's target parts its steps by dots.
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


def argument_name(wire_name: str, place: str, *, shared: bool, taken: Iterable[str]) -> str:
    """The model's name of an argument. `shared`: another place has an argument of that name, so that the place is added."""
    base = _UNFIT.sub("_", wire_name)[: MAX_ARGUMENT - 12] or "_"
    return _once(f"{base}__{place}" if shared else base, set(taken))


def operation_names(wanted: Sequence[tuple[str | None, str, str]]) -> list[str]:
    """Names of operations by operationId, method and path, in their order.

    One without an operationId, or whose operationId is shared, too long or of other characters, is named by method and path.
    """
    uses = Counter(operation_id for operation_id, _, _ in wanted if operation_id is not None)
    own = {operation_id for operation_id, count in uses.items() if count == 1 and _OPERATION.fullmatch(operation_id)}
    taken = set(own)
    names = []
    for operation_id, method, path in wanted:
        if operation_id in own:
            names.append(operation_id)
            continue
        made = f"{method.lower()}_{_UNFIT.sub('_', path).strip('_')}".strip("_")[: MAX_OPERATION - 6]
        name = _once(made, taken)
        taken.add(name)
        names.append(name)
    return names


def _once(base: str, taken: set[str]) -> str:
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    return name
