"""A worker that dies while it goes from one key to the next: nothing of it is lost, and nothing is recorded twice (B44; F01, F02)."""

from __future__ import annotations

import asyncio
import signal
from base64 import b64encode
from functools import partial
from pathlib import Path

import crews
import panels
import pytest
from api_at_hand import VAULT
from crews import until
from keyed_models import CRASHES, bank
from processes import hands

from folkmoot.domain.model_calls import Model, ModelChoice
from folkmoot.kernel.ids import NewId
from folkmoot.llm.registry import Models
from folkmoot.services.secrets import open_sealed
from folkmoot.store.database import Database

SEALING_KEY = b64encode(bytes(range(32))).decode()


class Reached(crews.Listening):
    """The models that are reached over the network, for a worker in this process."""

    def __init__(self, models: Models) -> None:
        super().__init__()
        self._models = models

    def adapter_of(self, choice: ModelChoice) -> Model:
        return self._models.adapter_of(choice)

    async def close(self) -> None:
        await self._models.close()


@pytest.mark.parametrize(("point", "nth"), CRASHES)
async def test_crash_between_a_keys_failure_and_the_next_key(
    database: Database, new_id: NewId, tmp_path: Path, point: str, nth: int
) -> None:
    """platform.md: a key that failed rests for all workers; the one that takes over goes on with the next."""
    async with bank(database.dsn, tmp_path, works=False) as home, hands(database, tmp_path) as crew:
        await home.panel()
        await home.key("a-first", play="refused")
        await home.key("b-second")
        started = await home.start()
        first = await crew.hire(fault=f"{point}:exit:{nth}", SECRET_KEY=SEALING_KEY)
        assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
        model = Reached(Models(data_dir=tmp_path))
        async with crews.rescuers(database, new_id, {}, model=model, open_secret=partial(open_sealed, VAULT)):
            await until(lambda: panels.has_ended(database, started), seconds=60)
        run = await home.ended(started)
        assert run["status"] == "Completed", run["failureDetails"]
        (failure,) = run["credentialFailures"]
        assert failure["failureReason"] == "Authentication"
        counts = home.models.counts()
        # It is asked again only where the first worker died before the rest was recorded.
        assert counts["a-first"] == (2 if point == "after_model_call" else 1)
        assert counts["b-second"] == 1
        calls = await panels.rows_of(database, started, "model_call")
        sent = [call for call in calls if call["voided_at"] is None and call["credential"] is not None]
        assert len(sent) == sum(counts.values())  # a lost call still has its key
