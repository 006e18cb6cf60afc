"""What a drive is given together: starts of sub-runs that stand together, and nudges; all else alone, in order."""

from __future__ import annotations

from uuid import uuid4

from folkmoot.domain.calls import AskedCall, CallResult, SwarmAction, SwarmTarget, Tool
from folkmoot.engine.step import RunCall
from folkmoot.runtime.arrivals import Arrivals
from folkmoot.runtime.perform import Called


def called(action: SwarmAction) -> Called:
    tool = Tool(action, "", {}, target=SwarmTarget(action))
    call = AskedCall(str(uuid4()), tool.name, "{}", "Ann")
    return Called(RunCall(f"call:{call.call_id}", call, tool, uuid4(), uuid4()), CallResult("{}", is_error=False))


async def test_starts_that_stand_together_and_nudges_are_given_together_and_the_order_stays() -> None:
    one, two, three = (called(SwarmAction.START) for _ in range(3))
    stop, fault = called(SwarmAction.STOP), ValueError()
    arrivals = Arrivals()
    for each in (one, two, None, None, three, stop, stop, None, fault, one):
        arrivals.put(each)
    given = [await arrivals.next() for _ in range(8)]
    assert given == [[one, two], None, [three], [stop], [stop], None, fault, [one]]
