"""What a watcher hears within the process: the buffer's bound, hostile text, heartbeats (state.md, Memory and streams; F25, F60)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from uuid import UUID

import agents_at_hand as agents
import pytest
import pytest_asyncio
from agents_at_hand import Deeds, call, met, plan, script, step
from crews import crew, until
from panels import Started, start

from folkmoot.api.stream import written
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.items import StoredItem
from folkmoot.domain.runs import Run
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import events
from folkmoot.services.events import ConsentSnapshot, Delta, Ended, Event, Heartbeat, Hub, UsageSnapshot
from folkmoot.services.snapshots import AgentRunSight, Standing
from folkmoot.store import runs
from folkmoot.store.database import Database, Notifier, Reader


class Watch:
    """A run that nobody has begun, a hub, and a way to tell it what a worker would."""

    def __init__(self, database: Database, started: Started) -> None:
        self.database = database
        self.hub = Hub(database)
        self.notifier = Notifier(database)
        self.started = started

    def follow(self, *, run_id: UUID | None = None, poll_seconds: float = 60.0) -> AsyncGenerator[Event, None]:
        """With so rare a look at the database that whatever comes in time was heard."""
        return events.follow(
            self.database, self.hub, self.notifier.tell, tenant_id=self.started.tenant_id,
            run_id=run_id or self.started.run_id, poll_seconds=poll_seconds,
        )  # fmt: skip

    def tell(self, offset: int, text: str) -> None:
        head = {"to": "watchers", "run": str(self.started.run_id), "call": "c", "step": "s", "participant": "Ann"}
        self.notifier.tell({**head, "attempt": 1, "offset": offset, "text": text})

    async def until_heard(self) -> None:
        """Until the hub has heard all that was told so far: what is told last is heard last."""
        marker = UUID(int=1)
        subscription = self.hub.subscribe(marker)
        self.notifier.tell({"to": "run", "run": str(marker)})
        assert await subscription.get(seconds=30.0) is not None
        self.hub.unsubscribe(marker, subscription)

    async def stop(self) -> None:
        async with self.database.writer() as writer:
            started = self.started
            await runs.request_stop(writer, started.tenant_id, run_id=started.run_id, stopped_by="somebody")
        self.notifier.tell({"to": "run", "run": str(self.started.run_id)})


@pytest_asyncio.fixture
async def watch(database: Database, new_id: NewId) -> AsyncIterator[Watch]:
    made = Watch(database, await start(database, new_id))
    await made.hub.start()
    yield made
    await made.notifier.close()
    await made.hub.close()


async def snapshots(following: AsyncGenerator[Event, None]) -> None:
    assert isinstance(await anext(following), Run)
    assert isinstance(await anext(following), UsageSnapshot)


async def test_a_watcher_hears_at_once(watch: Watch) -> None:
    """Without waiting for the next look, which would be in a minute."""
    async with asyncio.timeout(30), aclosing(watch.follow()) as following:
        await snapshots(following)
        watch.tell(0, "Hel")
        watch.tell(3, "lo.")
        assert [(await anext(following)).text for _ in range(2)] == ["Hel", "lo."]  # type: ignore[union-attr]
        await watch.stop()
        rest = [event async for event in following]
    assert [type(event) for event in rest] == [Run, Ended]


@pytest.mark.parametrize(("pieces", "characters"), [(events.BUFFERED_PIECES + 1, 10), (200, 1500)])
async def test_a_reader_too_slow_for_the_buffer_is_let_go(watch: Watch, pieces: int, characters: int) -> None:
    """F60: too many pieces, or too much text; there is no end, for the run has not ended."""
    async with asyncio.timeout(60), aclosing(watch.follow()) as following:
        await snapshots(following)
        for number in range(pieces):
            watch.tell(number * characters, "x" * characters)
        await watch.until_heard()
        assert [event async for event in following] == []
    async with aclosing(watch.follow()) as again:  # and can come back
        await snapshots(again)


async def test_a_reader_that_keeps_up_is_kept(watch: Watch) -> None:
    """The negative control: the same text, read as it comes; and a pause that the buffer holds."""
    async with asyncio.timeout(60), aclosing(watch.follow()) as following:
        await snapshots(following)
        for round_ in range(6):
            for number in range(100):
                watch.tell((round_ * 100 + number) * 1500, "x" * 1500)
            await watch.until_heard()
            assert [type(await anext(following)) for _ in range(100)] == [Delta] * 100


async def test_news_of_items_fill_no_buffer(watch: Watch) -> None:
    """However many items are appended while a reader is busy: they are read from the database."""
    async with asyncio.timeout(60), aclosing(watch.follow()) as following:
        await snapshots(following)
        for number in range(1, 3 * events.BUFFERED_PIECES):
            watch.notifier.tell({"to": "watchers", "run": str(watch.started.run_id), "sequence": number})
        await watch.until_heard()
        await watch.stop()
        assert [type(event) async for event in following] == [Run, Ended]


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\x00", "\u2028\u2029\x85\r\n\n", "\U0001f600"])
async def test_hostile_text_is_sent_on(watch: Watch, text: str) -> None:
    """F25, B25: a stream does not break; one character stands for one, so that offsets stay right."""
    async with asyncio.timeout(30), aclosing(watch.follow()) as following:
        await snapshots(following)
        watch.tell(0, text)
        event = await anext(following)
    assert isinstance(event, Delta) and len(event.text) == len(text)
    name, data, *rest = written(event).decode().splitlines()  # as clients do that know of more line ends
    assert name == "event: delta" and rest == [""]
    shown: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert shown["text"] == event.text


async def test_quiet_runs_have_heartbeats(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """B64: proxies do not close the stream; each also says again that somebody watches."""
    monkeypatch.setattr(events, "WATCH_AGAIN_SECONDS", 0.0)
    async with asyncio.timeout(30), aclosing(watch.follow(poll_seconds=0.01)) as following:
        await snapshots(following)
        beats = [await anext(following) for _ in range(3)]
    assert beats == [Heartbeat()] * 3
    assert written(beats[0]).startswith(b":") and written(beats[0]).endswith(b"\n\n")


async def test_what_was_not_told_is_found_by_looking(watch: Watch) -> None:
    """A lost notification costs a poll interval, never data."""
    async with asyncio.timeout(30), aclosing(watch.follow(poll_seconds=0.05)) as following:
        await snapshots(following)
        async with watch.database.writer() as writer:
            await runs.request_stop(writer, watch.started.tenant_id, run_id=watch.started.run_id, stopped_by="somebody")
        assert [type(event) async for event in following if not isinstance(event, Heartbeat)] == [Run, Ended]


async def test_an_unknown_run_is_not_found_before_the_first_event(watch: Watch, new_id: NewId) -> None:
    with pytest.raises(NotFound):
        await anext(watch.follow(run_id=new_id()))


class PausesMeanwhile(AgentRunSight):
    """A run that goes on to where it awaits consent while a watcher looks: just after it was seen for the first time."""

    def __init__(self, go_on: Callable[[], Awaitable[None]]) -> None:
        self._go_on: Callable[[], Awaitable[None]] | None = go_on

    async def standing(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> Standing | None:
        found = await super().standing(reader, tenant_id, run_id)
        if self._go_on is not None:
            await self._go_on()
            self._go_on = None
        return found


async def test_what_is_asked_is_shown_once_and_after_all_that_led_to_it(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """agent-runs.md, Consent: a card is read after the plan and the call that it comes from, whenever the run pauses."""
    monkeypatch.setattr(events, "WATCH_AGAIN_SECONDS", 0.0)  # a heartbeat after each look
    deeds = Deeds()
    bench = deeds.bench(
        script(clerk=["Nothing.", plan(step("Tell Bo.", "tell")), [call("tell", who="Bo", what="42")], met()])
    )
    await agents.publish(database, caller, new_id, bench=bench)
    run = await agents.start(database, caller, new_id, bench=bench)

    async def go_on() -> None:
        async with crew(database, new_id, bench=bench, functions=deeds.functions):
            await until(agents.awaits(database, caller, run))

    hub, notifier = Hub(database), Notifier(database)
    await hub.start()
    seen: list[Event] = []
    following = events.follow(
        database, hub, notifier.tell, tenant_id=caller.tenant_id, run_id=run.run_id, sight=PausesMeanwhile(go_on), poll_seconds=0.01
    )  # fmt: skip
    async with asyncio.timeout(60), aclosing(following):
        while not any(isinstance(event, ConsentSnapshot) for event in seen) or not isinstance(seen[-1], Heartbeat):
            seen.append(await anext(following))
    await notifier.close()
    await hub.close()
    paused = await agents.now(database, caller, run)
    told = [event.sequence if isinstance(event, StoredItem) else type(event) for event in seen]
    items = [each for each in told if isinstance(each, int)]
    assert items == list(range(1, paused.last_sequence + 1)) and told.count(ConsentSnapshot) == 1
    assert told.index(AgentRun) < told.index(Heartbeat) < told.index(1)  # it was seen before it paused
    assert told.index(paused.last_sequence) < told.index(ConsentSnapshot)
