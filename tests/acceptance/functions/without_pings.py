"""A control: a worker that never pings, as if its pings were on a blocked event loop."""

from __future__ import annotations

from folkmoot.runtime.lease import Lease


async def _never(lease: Lease) -> None:
    lease._stop.wait()


Lease._ping_on = _never  # type: ignore[method-assign]
