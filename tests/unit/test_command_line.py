"""What is typed on the command line, read; and what is shown, made safe: the parts of commands that need no process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from folkmoot import settings
from folkmoot.bootstrap.faults import arm_fault
from folkmoot.bootstrap.installation import find_functions
from folkmoot.cli import inputs, runs, screen, sets
from folkmoot.domain.definitions import Reference
from folkmoot.kernel.errors import BadInput


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("openai:gpt", ("openai", "gpt", None)),
        ("ollama:llama:3b", ("openai-compatible", "llama:3b", "http://127.0.0.1:11434/v1")),
        ("openai-compatible:m@https://h/v1", ("openai-compatible", "m", "https://h/v1")),
        ("openai-compatible:@cf/m@1@http://h:1/v1", ("openai-compatible", "@cf/m@1", "http://h:1/v1")),
        ("local:smollm2-135m-instruct", ("local", "smollm2-135m-instruct", None)),
    ],
)
def test_a_model_is_written_as_provider_and_name(text: str, wanted: tuple[Any, ...]) -> None:
    choice = inputs.model_of(text)
    assert choice is not None
    assert (choice.provider, choice.model_name, choice.base_url) == wanted


def test_a_models_file_is_named_by_its_whole_path() -> None:
    choice = inputs.model_of("local:models/tiny.gguf")
    assert choice is not None and choice.path == str(Path.cwd() / "models/tiny.gguf")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("small", "'small' names no model. A model is written as provider:name"),
        ("openai:", "'openai:' names no model."),
        ("gpt:small", "There is no provider 'gpt' that a name alone is enough for."),
        ("openai-compatible:small", "'openai-compatible:small' lacks the server's URL."),
        ("openai-compatible:@http://h/v1", "lacks the server's URL."),
        ("local:small", "There is no local model 'small'; there is smollm2-135m-instruct, or name a file"),
        ("scripted:gone.yaml", "The script 'gone.yaml' cannot be read: No such file or directory."),
    ],
)
def test_a_model_that_is_written_otherwise_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as refusal:
        inputs.model_of(text)
    assert sentence in str(refusal.value)


def test_inputs_are_pairs_or_files(tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("a=b\nc", encoding="utf-8")
    assert inputs.read_inputs(["a=1=2", "b=", f"c=@{file}"]) == (("a", "1=2"), ("b", ""), ("c", "a=b\nc"))


@pytest.mark.parametrize("text", ["topic", "=tea", "topic=@/gone.txt", "topic=@/dev/null/\0"])
def test_what_is_no_input_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        inputs.read_inputs([text])


def test_an_input_that_is_no_text_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "photo").write_bytes(b"\xff\xd8")
    with pytest.raises(BadInput, match="it is no UTF-8 text"):
        inputs.read_inputs([f"topic=@{tmp_path / 'photo'}"])


def test_an_interaction_is_named_with_or_without_namespace_and_version() -> None:
    assert sets.meant("talk", None) == Reference("talk", "default")
    assert sets.meant("team/talk@3", None) == Reference("talk", "team", version=3)


@pytest.mark.parametrize(
    "what", ["", "@3", "/talk", "team/", "talk@", "talk@0", "talk@x", "talk@99999999999", "talk@³"]
)
def test_what_names_no_interaction_is_refused(what: str) -> None:
    with pytest.raises(BadInput):
        sets.meant(what, None)


def test_a_name_has_no_interactions_to_choose_from() -> None:
    with pytest.raises(BadInput, match=r"is no file or folder here\. Correct the path"):
        sets.meant("team/talk", "talk")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("PORT", "99999"), ("PORT", "8.5"), ("PORT", "x"), ("SLOTS", "inf"), ("SLOTS", "0"), ("LEASE_SECONDS", "nan"),
        ("LEASE_SECONDS", "1e300"), ("RETRY_SECONDS", "0"), ("LOG_LEVEL", "loud"), ("MODLE", "openai:x"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named(setting: str, value: str) -> None:
    with pytest.raises(BadInput, match=f"FOLKMOOT_{setting}"):
        settings.read({f"FOLKMOOT_{setting}": value})


@pytest.mark.parametrize("text", ["", "after_claim", "after_claim:explode", "after_claim:exit:soon", "nowhere:exit", "after_claim:freeze", "after_claim:exit=3"])  # fmt: skip
def test_a_fault_that_cannot_be_is_refused_and_arms_nothing(text: str) -> None:
    with pytest.raises(BadInput):
        arm_fault(text)


def test_two_functions_of_one_name_in_two_files_are_refused(tmp_path: Path) -> None:
    files = (tmp_path / "a.py", tmp_path / "b.py")
    for file in files:
        file.write_text("def look(place: str) -> str:\n    '''Look.'''\n    return place\n", encoding="utf-8")
    assert find_functions(files[:1]).names
    with pytest.raises(BadInput, match=r"two functions 'look', in .*a\.py and in .*b\.py\. Rename one\."):
        find_functions(files)


def test_an_id_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="'the-last' is no run's id; `folkmoot runs list` shows them"):
        runs.show_command("the-last")
    with pytest.raises(BadInput, match="If it is an agent run's number, `folkmoot agent` takes it"):
        runs.show_command("14")


def test_a_status_that_is_none_is_refused() -> None:
    with pytest.raises(BadInput, match="There is no status 'Done'; there are New, Running,"):
        runs.list_command(status="Done", root=None, parent=None, limit=1, as_json=False)


# what is shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\n\tlines", "two\n\tlines"),
        ("日本語 é 👍", "日本語 é 👍"),
        ("\x1b[2J\x9b31m\x07\r\x7f\x00", "\\u001b[2J\\u009b31m\\u0007\\u000d\\u007f\\u0000"),
        ("abc\u202ecba\u2028", "abc\\u202ecba\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_would_act_on_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert screen.printable(text) == shown


@pytest.mark.parametrize("text", ["short", "a long line " * 20, "日本語" * 40, "e\u0301" * 100, "one\ntwo\n" * 30])
@pytest.mark.parametrize("columns", [10, 31, 60])
def test_a_shortened_text_takes_no_more_columns_than_it_may(text: str, columns: int) -> None:
    short = screen.shortened(text, columns)
    assert screen.width(short) <= columns and "\n" not in short
    assert short == text or " … " in short


def test_columns_of_a_table_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    screen.put_table(("name", "state"), [("日本", "new"), ("a\nb", "\x1b[0m")])
    assert capsys.readouterr().out == "name  state\n日本  new\na b   \\u001b[0m\n"
