"""One tree of errors; each class carries its exit code, and its message is what the user reads.

::

    EdgekeeperError            1   (findings, changes wanted, a promise broken)
    ├── UsageError             2   the command line or the config is wrong
    │   └── ConfigError        2   every mistake of a config file at once
    ├── RefusedError           3   refused for safety
    ├── LockHeldError          4   somebody else does it right now
    ├── StepFailedError        5   a step failed or timed out; can be resumed
    ├── MissingError           6   something needed cannot be reached or is not installed
    └── AbortedError           7   aborted by the user

A message says what is wrong and, after a semicolon, what happens instead. Errors that
reach the command line are printed as one line (a ``ConfigError`` as one line a mistake),
never as a traceback, unless ``--debug`` was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class EdgekeeperError(Exception):
    """Root of all errors that edgekeeper raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(EdgekeeperError):
    """The command line or a file given to it is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One mistake in a config file; ``line`` and ``column`` count from 1 (0: the whole file)."""

    line: int
    column: int
    where: str
    what: str

    def text(self, file: str) -> str:
        """The line that a person reads: ``file:line:column: where: what``."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.where}: {self.what}" if self.where else f"{place}: {self.what}"


class ConfigError(UsageError):
    """A config file with all of its mistakes, in the order of their lines."""

    def __init__(self, file: str, mistakes: tuple[Mistake, ...]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes))
        super().__init__("\n".join(m.text(file) for m in self.mistakes))


class RefusedError(EdgekeeperError):
    """Refused for safety; the message names the word that would allow it, where there is one."""

    exit_code = 3


class LockHeldError(EdgekeeperError):
    """Somebody else holds the lock; the message says who."""

    exit_code = 4


class StepFailedError(EdgekeeperError):
    """A step failed or ran into its deadline; doing it again is safe."""

    exit_code = 5


class MissingError(EdgekeeperError):
    """Something needed (an engine, a peer, an API, a right) is missing or cannot be reached."""

    exit_code = 6


class AbortedError(EdgekeeperError):
    """The user aborted it."""

    exit_code = 7
