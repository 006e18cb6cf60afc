"""Events as SSE, of a run or of the inbox. Of a run's only `item` events have an id, their sequence, so `Last-Event-ID` resumes
without loss or repeat; of the inbox's `synced` events have one, so that it goes on from where all was known.

A client that goes away cancels nothing but its own stream; one that takes nothing for STALLED_SECONDS is left. Where the
database cannot be reached the stream ends without `end`, and the client comes back. Deliberately absent: what the events are
(`services.events`, `services.inbox`).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from folkmoot.api.mapping import agent_runs as agent_run_mapping
from folkmoot.api.mapping import items as item_mapping
from folkmoot.api.mapping import pending as pending_mapping
from folkmoot.api.mapping import runs as run_mapping
from folkmoot.api.mapping.cursors import feed_cursor
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.items import StoredItem
from folkmoot.domain.runs import Run
from folkmoot.kernel.errors import NotFound, Unreachable
from folkmoot.services.events import Delta, Event, Heartbeat, UsageSnapshot
from folkmoot.services.inbox import Closed, FeedEvent, Synced, Waiting
from folkmoot.services.snapshots import AgentRunEnded, ApprovalSnapshot, ConsentSnapshot, Ended
from folkmoot.wire.agent_runs import AgentRunEndEvent, ConsentEvent
from folkmoot.wire.events import ApprovalEvent, DeltaEvent, EndEvent, StatusEvent, UsageEvent
from folkmoot.wire.pending import FeedSync

STALLED_SECONDS = 30.0
RECHECK_SECONDS = 3.0
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # the second keeps nginx from gathering events
# No ends of lines in this format, and left alone by JSON; but many clients part lines there.
_SEPARATORS = re.compile("[\x85\u2028\u2029]")
IsWelcome = Callable[[], Awaitable[bool]]
_log = logging.getLogger("folkmoot.api.stream")


class EventStream(Response):
    """Sends events as they come, and closes their source when the client has left, or is welcome no more.

    `is_welcome` is asked every RECHECK_SECONDS.
    """

    media_type = "text/event-stream"

    def __init__(
        self, content: AsyncGenerator[Event | FeedEvent, None], status_code: int = 200, *, is_welcome: IsWelcome | None = None
    ) -> None:  # fmt: skip
        self.status_code = status_code
        self.background = None
        self.init_headers(_HEADERS)
        self._events = content
        self._is_welcome = is_welcome

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = [asyncio.create_task(self._send_all(send)), asyncio.create_task(_has_left(receive))]
        if self._is_welcome is not None:
            tasks.append(asyncio.create_task(_until_refused(self._is_welcome)))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if done == {tasks[-1]} and self._is_welcome is not None:
            with suppress(TimeoutError):
                await _send(send, b"", more=False)

    async def _send_all(self, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with aclosing(self._events) as events:
                try:
                    async for event in events:
                        await _send(send, written(event))
                except (Unreachable, NotFound) as error:
                    _log.info("An event stream ends early: %s", error)
            await _send(send, b"", more=False)
        except TimeoutError:
            _log.info("An event stream is closed: its reader took nothing for %s s.", STALLED_SECONDS)


async def _send(send: Send, body: bytes, *, more: bool = True) -> None:
    """Raises TimeoutError where the reader takes nothing for STALLED_SECONDS."""
    async with asyncio.timeout(STALLED_SECONDS):
        await send({"type": "http.response.body", "body": body, "more_body": more})


async def _until_refused(is_welcome: IsWelcome) -> None:
    """F43: whoever has lost the key or the right is told no more; asking again they hear why."""
    while True:
        await asyncio.sleep(RECHECK_SECONDS)
        try:
            if not await is_welcome():
                _log.info("An event stream is closed: its reader lost the key or the right.")
                return
        except Unreachable:
            pass  # the stream itself finds that out


async def _has_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def written(event: Event | FeedEvent) -> bytes:
    """An event in the form of the stream: its data is JSON on one line."""
    if isinstance(event, StoredItem):
        return _framed("item", item_mapping.conversation_item(event), mark=str(event.sequence))
    if isinstance(event, Delta):
        delta = DeltaEvent(
            step=event.step, model_call_id=event.model_call_id, participant=event.participant, attempt=event.attempt,
            offset=event.offset, text=event.text,
        )  # fmt: skip
        return _framed("delta", delta)
    if isinstance(event, Run):
        return _framed("status", _status(event))
    if isinstance(event, AgentRun):
        return _framed("status", agent_run_mapping.agent_run(event))
    if isinstance(event, ApprovalSnapshot):
        return _framed("approval", _approval(event))
    if isinstance(event, ConsentSnapshot):
        return _framed("approval", _consent(event))
    if isinstance(event, Waiting | Closed):
        name = "waiting" if isinstance(event, Waiting) else "closed"
        return _framed(name, pending_mapping.pending_work(event.entry, limit=pending_mapping.LISTED_CHARACTERS))
    if isinstance(event, Synced):
        return _framed("synced", FeedSync(waiting=event.waiting), mark=feed_cursor(event.moment))
    if isinstance(event, UsageSnapshot):
        return _framed("usage", UsageEvent(token_usage=run_mapping.token_usage(event.calls)))
    if isinstance(event, Ended):
        return _framed("end", _end(event.run))
    if isinstance(event, AgentRunEnded):
        return _framed("end", _agent_run_end(event))
    assert isinstance(event, Heartbeat)
    return b": still here\n\n"


def _framed(name: str, data: BaseModel, *, mark: str | None = None) -> bytes:
    line = f"id: {mark}\n" if mark is not None else ""
    text = _SEPARATORS.sub(lambda found: f"\\u{ord(found.group()):04x}", data.model_dump_json(by_alias=True))
    return f"event: {name}\n{line}data: {text}\n\n".encode()


def _status(run: Run) -> StatusEvent:
    return StatusEvent(status=run_mapping.status_of(run), hostname=run.hostname, date_runner_claimed=run.claimed_at)


def _approval(event: ApprovalSnapshot) -> ApprovalEvent:
    waits_for = event.waits_for
    return ApprovalEvent(
        waits_for=pending_mapping.pending_work(waits_for) if waits_for is not None else None,
        below=tuple(
            pending_mapping.pending_work(each, limit=pending_mapping.LISTED_CHARACTERS) for each in event.below
        ),
    )


def _consent(event: ConsentSnapshot) -> ConsentEvent:
    asked = event.asked
    return ConsentEvent(waits_for=agent_run_mapping.chat_item(asked) if asked is not None else None)


def _agent_run_end(event: AgentRunEnded) -> AgentRunEndEvent:
    shown = agent_run_mapping.agent_run(event.run)
    return AgentRunEndEvent(status=shown.status, output=event.output, last_error=shown.last_error)


def _end(run: Run) -> EndEvent:
    return EndEvent(status=run_mapping.status_of(run), output=run.output, failure_details=run.failure_details)
