"""``edgekeeper``: which command is meant, and how whatever went wrong is told.

Nothing is imported here that a fast path does not need. ``vip probe`` and ``vip fifo``, which keepalived
starts each second and at each reload, never see Typer; the errors' tree and the commands (``cli.root``)
come after them.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # as typing has it, without its import
    from collections.abc import Callable, Sequence
    from typing import NoReturn

_VALUED = ("--config", "--node", "--log-format")
_FLAGS = ("--debug",)


def main() -> NoReturn:
    """The console script: run the command line, exit with its code."""
    lean = fast_path(global_options_first(sys.argv[1:]))
    if lean is None:
        sys.exit(run(sys.argv[1:]))
    import os

    os._exit(lean())  # nothing is left to be written, and a thread that hangs holds nobody up


def fast_path(words: Sequence[str]) -> Callable[[], int] | None:
    """What keepalived starts, as a function that gives its exit code; None for every other command line, and for help."""
    rest, node, at = list(words), "", 0
    while at < len(rest) and rest[at].startswith("--"):
        name, equals, value = rest[at].partition("=")
        if name in _VALUED and not equals:
            at += 1
            value = rest[at] if at < len(rest) else ""
        elif name not in (*_VALUED, *_FLAGS):
            return None
        node = value if name == "--node" else node
        at += 1
    command, said = rest[at : at + 2], rest[at + 2 :]
    if "--help" in said:
        return None
    if command == ["vip", "probe"]:
        from edgekeeper.vip import track

        return lambda: track.main(said)
    if command == ["vip", "fifo"]:
        from edgekeeper.vip import fifo

        return lambda: fifo.main(["--node", node, *said])
    return None


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are told on standard error, one line each."""
    from edgekeeper.cli.ending import internal, tell
    from edgekeeper.errors import AbortedError, EdgekeeperError

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
        return tell(AbortedError("interrupted"), debug=debug)
    except EdgekeeperError as err:
        return tell(err, debug=debug)
    except Exception as err:  # noqa: BLE001 - the last resort: a person gets a line, never a traceback
        return tell(internal(err), debug=debug)
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


def _exit_code(err: SystemExit) -> int:
    return err.code if isinstance(err.code, int) else int(err.code is not None)


def _reader_is_gone() -> int:
    """The reader of standard output has had enough (``| head``): end quietly, also at the interpreter's last flush."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
