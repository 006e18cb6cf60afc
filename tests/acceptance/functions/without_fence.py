"""A control: a worker whose appends match no claim, and which does not learn that it is taken for dead."""

from __future__ import annotations

from folkmoot.runtime.lease import Lease
from folkmoot.store import appends

_FENCE = "and p.claim_number = r.number and p.claim_id = r.claim_id\n        and p.status = 'Running'"

for _statement in ("_WHOLE", "_LEAN"):
    _text = getattr(appends, _statement)
    assert _FENCE in _text
    setattr(appends, _statement, _text.replace(_FENCE, ""))


async def _never(lease: Lease) -> None:
    lease._stop.wait()


Lease._ping_on = _never  # type: ignore[method-assign]
