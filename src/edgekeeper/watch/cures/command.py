"""Run a program that cures."""

from __future__ import annotations

from collections.abc import Sequence

from edgekeeper.errors import EdgekeeperError, UsageError
from edgekeeper.host import process
from edgekeeper.model.text import printable


class CommandCure:
    """A program with its arguments, in a session of its own, no shell; past its deadline in seconds it is killed with its children. A ``seams.Cure``."""

    def __init__(self, argv: Sequence[str], *, deadline_s: float = 60.0) -> None:
        if not argv or not argv[0] or any("\0" in word for word in argv):
            msg = "the command of a cure is empty or holds a NUL; write it as a list: [program, argument]"
            raise UsageError(msg)
        self.name = f"command {printable(argv[0], 80)}"
        self._argv = tuple(argv)
        self._deadline_s = deadline_s

    async def ready(self, *, ours: bool, since: float) -> str | None:  # noqa: ARG002 - as every cure is asked
        """Nothing stands in its way that could be seen before."""
        return None

    async def apply(self) -> str | None:
        """Run it; None when it exits with 0, else the sentence that says how it ended, with the last line that it printed."""
        try:
            ended = await process.run(self._argv, self._deadline_s)
        except EdgekeeperError as err:
            return str(err)
        if not ended.code:
            return None
        said = next((line.strip() for line in reversed(ended.output.splitlines()) if line.strip()), "")
        how = f"exited with {ended.code}" if ended.code > 0 else f"was ended by signal {-ended.code}"
        return f"{printable(self._argv[0], 80)} {how}{': ' + printable(said, 200) if said else ''}"
