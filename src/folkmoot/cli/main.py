"""The commands' root, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import typer

from folkmoot.cli import commands, exits, screen
from folkmoot.kernel.errors import BadInput, FolkmootError
from folkmoot.vault.masks import mask

_log = logging.getLogger("folkmoot")


def show(error: FolkmootError) -> None:
    """The sentence, and below it each fault with its place that the sentence does not hold."""
    sentence = mask(str(error))
    screen.say(screen.paint("folkmoot: ", screen.BOLD) + screen.printable(sentence))
    if isinstance(error, BadInput):
        for index, fault in enumerate(error.faults):
            if str(fault) not in sentence and not (index == 0 and fault.message in sentence):
                screen.say(f"  {screen.printable(mask(str(fault)))}")


def main() -> None:
    """Runs a command and leaves with its exit code. A closed pipe is no error: whoever read has had enough."""
    screen.prepare()
    # Before a command has handlers of its own, a request to end unwinds it like Ctrl-C, so that nothing is left open.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        code: int | None = commands.make_app(arguments)(args=arguments, prog_name="folkmoot", standalone_mode=False)
    except FolkmootError as error:
        show(error)
        return exits.of_error(error)
    except screen.Unwritable as error:
        screen.say(f"folkmoot: the output cannot be written: {error}. Make room for it, or send it elsewhere.")
        return exits.FAILED
    except BrokenPipeError:
        screen.lead_nowhere(sys.stdout)
        return exits.DONE
    except (KeyboardInterrupt, asyncio.CancelledError, typer.Abort):
        return exits.INTERRUPTED
    except typer.Exit as ended:
        return ended.exit_code
    except SystemExit as ended:
        # so the library leaves when nobody reads its help any more; it has seen to the stream
        if isinstance(ended.__context__, BrokenPipeError):
            return exits.DONE
        raise
    except Exception as error:
        # the library's own usage errors; they know how to show themselves
        shown = getattr(error, "show", None)
        if shown is None:
            return _failed(error)
        shown()
        return int(getattr(error, "exit_code", exits.WRONG_INPUT))
    return code or exits.DONE


def _failed(error: Exception) -> int:
    logging.basicConfig(stream=sys.stderr)
    _log.error("An unexpected error", exc_info=error)
    what = screen.printable(mask(f"{type(error).__name__}: {error}"))
    screen.say(f"folkmoot: an unexpected error, a fault of Folkmoot: {what}. Please report it with the lines above.")
    return exits.FAILED
