"""What acceptance tests may ask for beside what every test may: somebody at a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell


@pytest.fixture
def shell(database_dsn: str, tmp_path: Path) -> Iterator[Shell]:
    """The command on the test's database, from an empty folder."""
    made = Shell(tmp_path, database_dsn)
    yield made
    made.close()
