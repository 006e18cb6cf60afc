"""What a user sees and types: terminals with and without colour, pipes that are read or closed, messages that are typed meanwhile."""

from __future__ import annotations

import re

import pytest
from shell import AGREED, SLOW, Shell

TOPIC = ("-i", "topic=tea")
# they talk until somebody says milk
HEARING = """\
rules:
  - when: {offered: agree}
    reply: {calls: [{name: agree, arguments: {}}]}
  - when: {seen: milk, participant: Ben}
    reply: {calls: [{name: propose_solution, arguments: {solution: "Milk it is."}}]}
  - reply: {text: "Tea, as ever.", delay: 300ms}
"""
PATIENT = {"old": "maximumRounds: 2", "new": "maximumRounds: 500"}
# text that clears the screen, turns red by ESC and by C1, and reads from right to left
ACTING = r"\e[2J\x9b31mred\a \u202eoot"
SHOWN = r"\u001b[2J\u009b31mred\u0007 \u202eoot"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


# messages


def test_lines_of_a_pipe_are_said_to_the_run(shell: Shell) -> None:
    done = shell.run("run", shell.talk(HEARING, **PATIENT), *TOPIC, typed="\n  milk, please  \n")
    assert (done.code, done.out) == (0, "Milk it is.\n")
    assert "owner (person): milk, please\n" in done.err


def test_where_no_person_may_speak_a_typed_line_is_answered_and_the_run_goes_on(shell: Shell) -> None:
    file = shell.talk(old="  humanSettings: {chatMode: Observing}\n", new="")
    done = shell.run("run", file, *TOPIC, typed="milk, please\nand sugar\n")
    assert (done.code, done.out) == (0, "Tea it is.\n")
    assert done.err.count("No person takes part in this run: the interaction 'team/talk' has no humanSettings.") == 1


def test_a_line_typed_on_a_terminal_is_said_to_the_run_and_the_thinking_line_gives_way(shell: Shell) -> None:
    """A line for who is thinking, names in colour; the answer alone on stdout."""
    with shell.terminal("run", shell.talk(HEARING, **PATIENT), *TOPIC) as terminal:
        terminal.until("Ann is thinking")
        terminal.type("milk, please\n")
        done = terminal.end()
    assert (done.code, done.out) == (0, "Milk it is.\n")
    assert re.search(r"\x1b\[\d+m\x1b\[1mowner \(person\):\x1b\[0m milk, please", done.err)
    assert re.search(r"\x1b\[\d+m\x1b\[1mAnn:\x1b\[0m Tea, as ever.", done.err)
    # the last thing done before a line of the conversation is to blank what stood there
    assert re.search(r"\r +\r\S*Ann:", done.err)


def test_ctrl_c_on_a_terminal_stops_the_run(shell: Shell) -> None:
    with shell.terminal("run", shell.talk(SLOW), *TOPIC) as terminal:
        terminal.until("Ann is thinking")
        terminal.type("\x03")
        done = terminal.end()
    assert done.code == 130 and "Stopped." in done.err


def test_closing_the_terminal_leaves_the_run_to_be_gone_on_with(shell: Shell) -> None:
    with shell.terminal("run", shell.talk(SLOW), *TOPIC) as terminal:
        terminal.until("Ann is thinking")
        terminal.close()
        assert terminal.end().code == 130
    assert "  Running  " in shell.run("runs", "list").out


# what a terminal is shown


def acting(shell: Shell) -> str:
    script = AGREED.replace("Tea, as ever.", f"I am {ACTING}").replace("Tea it is.", f"Tea {ACTING}")
    return shell.talk(script)


def test_control_characters_of_a_model_never_reach_the_terminal(shell: Shell) -> None:
    """Neither in the conversation nor in the answer, where the terminal shows that too."""
    with shell.terminal("run", acting(shell), *TOPIC, shows_data=True) as terminal:
        done = terminal.end()
    assert done.code == 0
    assert f"I am {SHOWN}" in done.err and done.err.count(f"Tea {SHOWN}") == 2
    left = COLOUR.sub("", done.err)
    assert [c for c in left if (ord(c) < 32 and c not in "\r\n") or 127 <= ord(c) < 160 or c == "\u202e"] == []


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_without_colour_gets_no_escape_code(shell: Shell, more: dict[str, str]) -> None:
    """Bad input: a terminal without colour."""
    with shell.terminal("run", acting(shell), *TOPIC, env=more) as terminal:
        done = terminal.end()
    assert done.code == 0 and "Ann: I am" in done.err
    assert "\x1b" not in done.err
    assert ("is thinking" in done.err) == ("NO_COLOR" in more)


def test_what_is_no_terminal_gets_lines_alone_and_the_answer_as_it_is(shell: Shell) -> None:
    """Bad input: a terminal without colour. Data is not touched where no terminal shows it."""
    done = shell.run("run", acting(shell), *TOPIC)
    assert done.out == "Tea \x1b[2J\x9b31mred\a \u202eoot\n"
    assert "\x1b" not in done.err and "\r" not in done.err and "is thinking" not in done.err


# closed pipes


@pytest.mark.parametrize("command", [("runs", "list"), ("openapi",), ("--help",)], ids=" ".join)
def test_a_reader_that_has_had_enough_is_no_error(shell: Shell, command: tuple[str, ...]) -> None:
    """Bad input: a closed pipe, as in `folkmoot runs list | head -0`."""
    process = shell.start(*command)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(30) == 0
    assert err.replace(first_key(err), "") == ""


def first_key(err: str) -> str:
    return err if re.fullmatch("The tenant 'default' was made. Its key, shown this once: fm_[^ ]+\n", err) else ""


def test_a_run_whose_reader_is_gone_goes_to_its_end(shell: Shell) -> None:
    """Bad input: a closed pipe, as in `folkmoot run … | true` and `folkmoot run … 2>&1 | true`. Nothing is lost."""
    process = shell.start("run", shell.talk(), *TOPIC)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(30) == 0
    assert err.endswith("Completed.\n") and "Traceback" not in err
    process = shell.start("run", "team/talk", *TOPIC)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(30) == 0
    assert shell.run("runs", "list").out.count("  Completed  ") == 2
