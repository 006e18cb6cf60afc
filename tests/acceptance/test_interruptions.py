"""Commands that are interrupted: by Ctrl-C once and twice, by SIGTERM, by kill -9. Whatever is done to the process, the run is kept."""

from __future__ import annotations

import signal
import subprocess

from shell import AGREED, SLOW, Shell, lines_until

TOPIC = ("-i", "topic=tea")


def start_slow(shell: Shell) -> tuple[subprocess.Popen[str], str]:
    """A run in which Ann thinks for a minute, and its id."""
    process = shell.start("run", shell.talk(SLOW), *TOPIC)
    run_id = lines_until(process, "run ")[-1].split()[-1]
    lines_until(process, "The task:")
    return process, run_id


def test_ctrl_c_once_stops_the_run(shell: Shell) -> None:
    """Bad input: Ctrl-C once."""
    process, run_id = start_slow(shell)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("Stopping the run.") and err.splitlines()[-1] == "Stopped."
    assert f"{run_id}  Stopped" in shell.run("runs", "list").out


def test_ctrl_c_twice_leaves_the_run_as_it_is_and_the_next_worker_goes_on(shell: Shell) -> None:
    """Bad input: Ctrl-C twice. Nothing is lost."""
    process, run_id = start_slow(shell)
    process.send_signal(signal.SIGINT)
    lines_until(process, "Stopping the run.")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"The run is left as it is, and goes on where a worker runs. To see it: folkmoot runs watch {run_id}" in err
    assert f"{run_id}  Running" in shell.run("runs", "list", "--status", "Running").out
    worker = shell.start("worker")
    watching = shell.start("runs", "watch", run_id)
    lines_until(watching, "The task:")
    assert shell.run("runs", "stop", run_id).code == 0
    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 1 and err.splitlines()[-1] == "Stopped."
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0


def test_sigterm_leaves_the_run_as_it_is(shell: Shell) -> None:
    process, run_id = start_slow(shell)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "The run is left as it is" in err
    assert f"{run_id}  Running" in shell.run("runs", "list").out


def test_a_run_whose_process_was_killed_is_finished_by_a_worker(shell: Shell) -> None:
    """Nothing lost: kill -9 of the whole of `folkmoot run`; the next worker takes over, and `runs watch` shows the answer."""
    slow_at_first = AGREED.replace('"Tea, as ever."}', '"Tea, as ever.", delay: 1500ms}')
    process = shell.start("run", shell.talk(slow_at_first), *TOPIC)
    run_id = lines_until(process, "run ")[-1].split()[-1]
    lines_until(process, "The task:")
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    worker = shell.start("worker")
    done = shell.run("runs", "watch", run_id)
    assert (done.code, done.out) == (0, "Tea it is.\n")
    assert done.err.count("Ann: Tea, as ever.") == 1
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
