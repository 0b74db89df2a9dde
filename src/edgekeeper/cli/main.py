"""``edgekeeper``: which command is meant, and how whatever went wrong is told.

Only the standard library is imported here, and only what a wrong command line needs: the commands
(``cli.root``, with Typer) come after the fast paths, so that a command that must start quickly never
pays for the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from edgekeeper.errors import AbortedError, ConfigError, EdgekeeperError, StepFailedError

_VALUED = ("--config", "--node", "--log-format")
_FLAGS = ("--debug",)
_MOST_MISTAKES = 200


def main() -> NoReturn:
    """The console script: run the command line, exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are told on standard error, one line each."""
    words = global_options_first(argv)
    debug = "--debug" in words
    try:
        if words == ["--version"]:
            from edgekeeper import __version__
            from edgekeeper.cli.output import say

            say(f"edgekeeper {__version__}")
            code = 0
        else:
            from edgekeeper.cli.root import run_command

            code = run_command(words)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_is_gone()
    except SystemExit as err:  # Typer ends so when the reader of its help is gone
        return _reader_is_gone() if isinstance(err.__context__, BrokenPipeError) else _exit_code(err)
    except KeyboardInterrupt:
        return _tell(AbortedError("interrupted"), debug=debug)
    except EdgekeeperError as err:
        return _tell(err, debug=debug)
    except Exception as err:  # noqa: BLE001 - the last resort: a person gets a line, never a traceback
        return _tell(_internal(err), debug=debug)
    return code


def global_options_first(argv: Sequence[str]) -> list[str]:
    """The words with the options that every command has moved to the front, so that they may stand anywhere before ``--``."""
    front: list[str] = []
    rest: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        if word in _VALUED and words:
            front += [word, words.pop(0)]
        elif word in _FLAGS or word.startswith(tuple(f"{name}=" for name in _VALUED)):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def _tell(err: EdgekeeperError, *, debug: bool) -> int:
    """Print an error as its line (a config's as one line a mistake); with --debug, where it came from."""
    from edgekeeper.cli.output import complain, complain_block

    try:
        if debug:
            import traceback

            complain_block("".join(traceback.format_exception(err.__cause__ if isinstance(err, _InternalError) else err)))
        if isinstance(err, ConfigError):
            complain(*(mistake.text(err.file) for mistake in err.mistakes[:_MOST_MISTAKES]))
            if len(err.mistakes) > _MOST_MISTAKES:
                complain(f"edgekeeper: {err.file} has {len(err.mistakes) - _MOST_MISTAKES} more mistakes; mend these first")
        else:
            complain(f"edgekeeper: {err}")
    except OSError:
        pass  # nobody listens any more; the exit code still tells
    return err.exit_code


class _InternalError(StepFailedError):
    """A mistake of edgekeeper's own; its cause has the place."""


def _internal(err: Exception) -> _InternalError:
    told = _InternalError(f"internal error, {type(err).__name__}: {err}; nothing more was done. --debug shows where, please report it")
    told.__cause__ = err
    return told


def _exit_code(err: SystemExit) -> int:
    return err.code if isinstance(err.code, int) else int(err.code is not None)


def _reader_is_gone() -> int:
    """The reader of standard output has had enough (``| head``): end quietly, also at the interpreter's last flush."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
