"""The demonstration, to its agreed answer: always with a script, and once with the local model where its file is at hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from shell import EXAMPLES, Shell

from folkmoot.llm.model_file import model_path
from folkmoot.store.embedded import default_data_dir

SCRIPT = f"scripted:{EXAMPLES / 'scripted-panel.script.yaml'}"


def test_the_scripted_panel_comes_to_its_answer(shell: Shell) -> None:
    done = shell.run("run", str(EXAMPLES / "scripted-panel.yaml"), "-i", "question=Should the team write tests first?")
    assert (done.code, json.loads(done.out)) == (0, {"answer": "keep", "reason": "with a budget"})
    lines = [line for line in done.err.splitlines() if line.startswith(("Ann", "Ben", "Cid", "-- "))]
    assert lines == [
        "-- The task: Discuss and decide: Should the team write tests first?",
        "Ann: Early tests caught three faults last year.",
        "Ben: They also took a week.",
        "Ben: puts to the vote: Keep the early tests?",
        "Ann: agrees",
        "Cid: disagrees: Not without a budget.",
        "-- Tally: 2 for (Ben, Ann); 1 against (Cid); 0 not voting. The topic is carried.",
        'Cid: proposes: {"answer":"keep","reason":"with a budget"}',
        "Ann: agrees",
        "Ben: agrees",
        "-- Tally: 3 for (Cid, Ann, Ben); 0 against; 0 not voting. The answer is accepted.",
    ]


def test_the_demo_takes_another_model_without_a_download_and_uses_no_key_unasked(shell: Shell) -> None:
    """Shown by 1: MODEL=provider:name puts any other model in its place; a key in the environment is noticed, never used."""
    done = shell.run("demo", "--model", SCRIPT, "--question", "Tea?", env={"OPENAI_API_KEY": "sk-not-to-be-used"})
    assert (done.code, json.loads(done.out)["answer"]) == (0, "keep")
    assert (
        "-- OPENAI_API_KEY is set: MODEL=openai:NAME would use that key with OpenAI. It is not used unless" in done.err
    )
    assert "The question: Tea?" in done.err and "sk-not" not in done.err
    assert not (shell.home / "data" / "models").exists()
    assert {call["provider"] for call in usage(shell)} == {"scripted"}


def usage(shell: Shell) -> list[dict[str, str]]:
    run = json.loads(shell.run("runs", "list", "--json").out.splitlines()[0])
    whole = json.loads(shell.run("runs", "show", "--json", run["id"]).out)
    found: list[dict[str, str]] = whole["tokenUsage"]
    return found


def models_file() -> Path:
    """Where the local model's file is on this machine, if it was ever pulled by this user."""
    return model_path(None, default_data_dir(os.environ, is_root=os.geteuid() == 0).parent)


@pytest.mark.timeout(600)
@pytest.mark.skipif(not models_file().is_file(), reason="the local model's file is not there: folkmoot model pull")
def test_the_demo_comes_to_an_agreed_answer_on_the_local_model(shell: Shell) -> None:
    """Shown by 1: the agreed answer of a real run, which fits the schema."""
    folder = shell.home / "data" / "models"
    folder.mkdir(parents=True)
    (folder / models_file().name).symlink_to(models_file())
    done = shell.run("demo", seconds=590)
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert set(answer) == {"answer", "reason"} and all(isinstance(text, str) for text in answer.values())
    assert "SmolLM2-135M, a toy that runs on this machine" in done.err
    assert "puts to the vote:" in done.err and "The answer is accepted." in done.err
    assert {call["provider"] for call in usage(shell)} == {"local"}
