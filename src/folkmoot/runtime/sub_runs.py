"""Makes the calls of sub-runs' tools: starts, reads what came of awaited runs, lists, asks to stop; and words what the model reads.

Starts of one run that are called side by side are made together, in one transaction, in the order in which they were called. Expected refusals are results: they say what is wrong and what to do. Deliberately absent: waiting, which is no call under way but a
pause of the run (`engine.awaits`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, assert_never
from uuid import UUID

from folkmoot.domain.calls import CallResult, SwarmAction
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Claim
from folkmoot.domain.time_checks import is_usable
from folkmoot.kernel.errors import BadInput, Fault, FolkmootError, LeaseLost, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.services import sub_run_starts, sub_runs
from folkmoot.services.closure import Workbench
from folkmoot.services.sub_run_starts import Outcome, Wanted
from folkmoot.store.codecs import SPAN
from folkmoot.store.database import Database
from folkmoot.store.swarms import SubRunResult

Json = Any
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Caller:
    """The call: whose it is, and of which claimed run. A sub-run that it starts has its id."""

    call_id: UUID
    claim: Claim
    participant: str


@dataclass(slots=True)
class _Asked:
    """A start that waits for those called with it."""

    wanted: Wanted
    done: asyncio.Future[Outcome] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(frozen=True, slots=True)
class SubRuns:
    """`bench`: what this machine adds to a start. `tell`: notifies all processes. `asked`: starts that are gathered now, by claim."""

    database: Database
    bench: Workbench
    new_id: NewId
    tell: Tell
    asked: dict[Claim, list[_Asked]] = field(default_factory=dict)

    async def call(self, action: SwarmAction, arguments: dict[str, Json], caller: Caller) -> CallResult:
        """The call's result. Raises Unreachable: whether a start was committed is then told by the call made again; and LeaseLost where
        the claim is no more: then nothing was started or stopped."""
        try:
            found = await self._made(action, arguments, caller)
        except (Unreachable, LeaseLost):
            raise
        except BadInput as error:
            return CallResult(_faults(error), is_error=True)
        except FolkmootError as error:
            return CallResult(str(error), is_error=True)
        return CallResult(json.dumps(found, ensure_ascii=False), is_error=False)

    async def _made(self, action: SwarmAction, arguments: dict[str, Json], caller: Caller) -> Json:
        tenant_id, parent_id = caller.claim.tenant_id, caller.claim.run_id
        match action:
            case SwarmAction.START:
                return await self._start(arguments, caller)
            case SwarmAction.AWAIT:
                ids = [_id_of(text) for text in arguments["ids"]] if "ids" in arguments else None
                found = await sub_runs.results(self.database, tenant_id, parent_id=parent_id, run_ids=ids)
                return [_result(each) for each in found]
            case SwarmAction.LIST:
                children = await sub_runs.listed(self.database, tenant_id, parent_id=parent_id)
                return [
                    {"id": str(c.run_id), "name": c.name, "status": c.status, "startedBy": c.started_by}
                    for c in children
                ]
            case SwarmAction.STOP:
                run_id = _id_of(arguments["id"])
                status = await sub_runs.stop(
                    self.database, caller.claim, run_id=run_id, participant=caller.participant, tell=self.tell
                )
                return {"id": str(run_id), "status": status}
            case _:
                assert_never(action)

    async def _start(self, arguments: dict[str, Json], caller: Caller) -> Json:
        name = arguments["name"]
        wanted = Wanted(
            caller.call_id,
            caller.participant,
            name,
            tuple((key, _text(value)) for key, value in arguments.get("inputs", {}).items() if value is not None),
            _duration(arguments.get("durationAutoTermination")),
        )
        limit = await self._gathered(wanted, caller)
        if isinstance(limit, FolkmootError):
            raise limit
        started = {"id": str(caller.call_id), "name": name, "status": RunStatus.NEW}
        if limit is not None:
            started["durationAutoTermination"] = json.loads(SPAN.write(limit))
        return started

    async def _gathered(self, wanted: Wanted, caller: Caller) -> Outcome:
        """The first to come starts all that are called in the same pass of the loop, as those of a reply are."""
        asked = _Asked(wanted)
        claim = caller.claim
        if claim in self.asked:
            self.asked[claim].append(asked)
            return await asked.done
        batch = self.asked[claim] = [asked]
        try:
            try:
                await asyncio.sleep(0)
            finally:
                del self.asked[claim]
            outcomes = await sub_run_starts.start(
                self.database, claim, wanted=[each.wanted for each in batch], bench=self.bench, new_id=self.new_id, tell=self.tell,
            )  # fmt: skip
        except asyncio.CancelledError:  # whoever cancels this one lets the run go
            for each in batch:
                each.done.cancel()
            raise
        except Exception as error:
            for each in batch[1:]:
                if not each.done.done():
                    each.done.set_exception(error)
            raise
        for each, outcome in zip(batch, outcomes, strict=True):
            if not each.done.done():
                each.done.set_result(outcome)
        return await asked.done


def _result(found: SubRunResult) -> dict[str, Json]:
    told: dict[str, Json] = {"id": str(found.run_id), "name": found.name, "status": found.status}
    if found.output is not None:
        told["output"] = found.output
    if found.failure_details is not None:
        told["failure"] = found.failure_details
    return told


def _text(value: Json) -> str:
    """An input as text; what is none is its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _id_of(text: Json) -> UUID:
    try:
        return UUID(str(text).strip())
    except ValueError:
        raise BadInput(
            f"'{str(text)[:100]}' is no id of a run. list_interactions shows those that were started here."
        ) from None


def _duration(text: Json) -> timedelta | None:
    if text is None:
        return None
    try:
        found = SPAN.read(json.dumps(text))
    except ValueError:
        found = None
    if found is None or not is_usable(found):
        message = "This is no time to work in; write an ISO 8601 duration such as PT10M, of at most 999,999 days, or leave it out."
        raise BadInput("The run was not started.", (Fault("/durationAutoTermination", message),))
    return found


def _faults(error: BadInput) -> str:
    """All that is wrong, so that it can be put right at once."""
    if not error.faults:
        return str(error)
    count = len(error.faults)
    wrong = "One thing is wrong" if count == 1 else f"{count} things are wrong"
    return "\n".join([f"The run was not started. {wrong}:", *(f"- {f}" for f in error.faults)])
