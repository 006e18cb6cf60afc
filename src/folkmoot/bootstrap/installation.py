"""Settings, the database (embedded unless a URL is set), models, functions: what every command works with."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import os
import random
import secrets
import stat
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from folkmoot import settings
from folkmoot.bootstrap.channels import channel_shapes
from folkmoot.bootstrap.faults import arm_fault
from folkmoot.bootstrap.vaults import known_keys, open_vault
from folkmoot.domain.calls import Tool
from folkmoot.domain.channels import AppShape
from folkmoot.kernel.errors import BadInput
from folkmoot.kernel.ids import NewId, id_source
from folkmoot.llm import catalogue
from folkmoot.llm.registry import Models
from folkmoot.llm.scripted import parse_script
from folkmoot.services.closure import Workbench
from folkmoot.settings import Settings as Settings
from folkmoot.store import tenancy
from folkmoot.store.database import Database, Notifier, upgrade
from folkmoot.store.embedded import EmbeddedServer, default_data_dir, open_server
from folkmoot.tools.functions import FunctionTools
from folkmoot.vault.masks import OF_PROCESS, MaskingFormatter
from folkmoot.vault.sealing import Vault

_LARGEST_SCRIPT = 1_000_000


def read_settings() -> Settings:
    """The settings of this process; logging and fault points are set up by them."""
    found = settings.read(os.environ)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=found.log_level.upper(), handlers=[handler])
    if found.fault:
        arm_fault(found.fault)
    return found


def data_dir_of(found: Settings) -> Path:
    """The folder of everything that is kept: `data` is the embedded database's, `models` the local model's."""
    return found.data_dir or default_data_dir(os.environ, is_root=os.geteuid() == 0).parent


def read_key(name: str) -> str | None:
    """The value of an environment variable that holds a provider's key, now; from now on it is masked."""
    value = os.environ.get(name) or None
    if value is not None:
        OF_PROCESS.add(value)
    return value


def make_new_id() -> NewId:
    # seeded by the system, and then cheap: ids must differ, and need not be secret
    return id_source(lambda: time.time_ns() // 1_000_000, random.Random(os.urandom(32)).getrandbits)


@dataclass(slots=True)
class Installation:
    """What a command works with. `new_key`: the first key, made just now on an empty database, to be shown once.

    `vault` is settled once the database is migrated; until then it has no keys.
    """

    settings: Settings
    data_dir: Path
    database: Database
    notifier: Notifier
    models: Models
    functions: FunctionTools
    new_id: NewId
    new_key: str | None = None
    vault: Vault = field(default_factory=lambda: Vault((), random_bytes=secrets.token_bytes))

    @property
    def channel_apps(self) -> Mapping[str, AppShape]:
        """What the installed apps of channels ask of a definition. They are loaded when this is first asked for."""
        return channel_shapes()


@asynccontextmanager
async def open_installation(
    found: Settings, *, migrates: bool = True, connections: int = 8
) -> AsyncIterator[Installation]:
    """The database (embedded unless a URL is set), migrated and with its default tenant, and what goes with it."""
    if found.database_url is not None:
        _check_url(found.database_url)
    functions = find_functions(found.functions)
    data_dir = data_dir_of(found)
    server: EmbeddedServer | None = None
    if found.database_url is None:
        server = await open_server(data_dir / "data")
    database = None
    models = Models(data_dir=data_dir)
    try:
        database = await Database.open(found.database_url or (server.dsn if server else ""), connections=connections)
        installation = Installation(found, data_dir, database, Notifier(database), models, functions, make_new_id())
        if migrates:
            await upgrade(database)
            await make_default_tenant(installation)
            await settle_vault(installation)
        else:
            installation.vault = Vault(known_keys(found, data_dir), random_bytes=secrets.token_bytes)
        try:
            yield installation
        finally:
            await installation.notifier.close()
    finally:
        await models.close()
        if database is not None:
            await database.close()
        if server is not None:
            await server.close()


def _check_url(url: str) -> None:
    """Raises BadInput, without the URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("postgresql", "postgres") and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        raise BadInput(
            "FOLKMOOT_DATABASE_URL is no address of a PostgreSQL server. Write it as postgresql://user:password@host:port/database."
        )


async def make_default_tenant(installation: Installation) -> None:
    """The tenant `default`, its owner and one key, on a database that has none; `installation.new_key` is that key."""
    async with installation.database.writer() as writer:
        installation.new_key = await tenancy.ensure_default(
            writer, new_id=installation.new_id, random_bytes=secrets.token_bytes
        )


async def settle_vault(installation: Installation) -> None:
    """The vault with this installation's keys. Raises SecretFault, having changed nothing, where they are not the database's."""
    installation.vault = await open_vault(
        installation.settings, installation.data_dir, installation.database, random_bytes=secrets.token_bytes
    )


def bench_of(installation: Installation) -> Workbench:
    """What this machine adds to a start: the operator's functions, scripts of scripted models, what the operator allows, and what is
    known of models."""
    return Workbench(
        _finder(installation.functions),
        read_script,
        allows_stdio=installation.settings.allow_stdio,
        window_of=lambda version: catalogue.window_of(version.provider, version.model_name, version.base_url),
        prices_of=lambda model: catalogue.prices_of(model, datetime.now(UTC)),
    )


def read_script(path: str) -> Any:
    """A scripted model's rules. BadInput for what is no script: also for a device, a pipe, or a file too large for one."""
    file = Path(path)
    found = file.stat()
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{path} is no regular file. Name a YAML file of rules.")
    if found.st_size > _LARGEST_SCRIPT:
        raise BadInput(f"{path} has {found.st_size:,} bytes; a script has at most {_LARGEST_SCRIPT:,}.")
    return parse_script(file.read_text(encoding="utf-8"), path)


def _finder(functions: FunctionTools) -> Callable[[str], Tool | None]:
    return lambda name: functions.offered(name) if name in functions.names else None


def find_functions(files: tuple[Path, ...]) -> FunctionTools:
    """The operator's functions: those found by entry point, and the public ones of the files that are named."""
    extra: dict[str, Any] = {}
    sources: dict[str, Path] = {}
    for file in files:
        for name, function in inspect.getmembers(_load(file), inspect.isfunction):
            if name.startswith("_") or function.__module__ != _module_name(file):
                continue
            if sources.setdefault(name, file) != file:
                raise BadInput(
                    f"FOLKMOOT_FUNCTIONS names two functions '{name}', in {sources[name]} and in {file}. Rename one."
                )
            extra[name] = function
    return FunctionTools.discover(extra)


def _module_name(file: Path) -> str:
    return f"folkmoot_functions_{file.stem}"


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(_module_name(file), file)
    if spec is None or spec.loader is None or not file.is_file():
        raise BadInput(
            f"FOLKMOOT_FUNCTIONS names {file}, and there is no Python file {file.resolve()}. Correct the path."
        )
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the file is the operator's, and may raise anything
        raise BadInput(
            f"The functions in {_place(file, error)} cannot be loaded ({type(error).__name__}: {error}). Correct the file, or take it "
            "out of FOLKMOOT_FUNCTIONS."
        ) from error
    return module


def _place(file: Path, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == file.absolute()]
    return f"{file}:{lines[-1]}" if lines else str(file)
