"""The lines of a unit, from journald.

journald tells its followers of new entries four times a second at most (``POST_CHANGE_TIMER_INTERVAL_USEC``, 250 ms; its maintainers
keep it so): a single line is seen 0.25 to 0.50 s after it was written (systemd 252, measured 2026-11-30), where a file or a pipe takes half
a millisecond. Nothing is lost over a restart of journald, of journalctl or of ours: each goes on after the last entry that was seen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.process import run
from edgekeeper.ports import Clock
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.child import run_for_ever
from edgekeeper.watch.sources.lines import Cutter
from edgekeeper.watch.sources.mark import Mark
from edgekeeper.watch.sources.records import FIELDS, parse

_STILL_S: Final = 30.0
_ASK_S: Final = 5.0
_NOTE: Final = "journald holds its notices back for up to 250 ms"


class JournaldSource:
    """Follows a unit, from now on; with a ``mark`` file, from where an earlier follower has ended (see ``Mark``)."""

    def __init__(self, unit: str, clock: Clock, mark: Path | None = None, program: str = "journalctl") -> None:
        self._unit = unit
        self._clock = clock
        self._mark = mark
        self._program = program

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """See ``seams.Source``."""
        mark = Mark(self._mark, self._clock)
        following = _Following(self._unit, self._program, self._clock, mark, arrived, state)
        following.begin()
        still = asyncio.create_task(following.still())
        try:
            await run_for_ever(following.argv, self._clock, following.piece, following.tell, following.ended)
        finally:
            still.cancel()
            mark.flush()


class _Following:
    """Where in the journal we are, and what was said of it."""

    def __init__(self, unit: str, program: str, clock: Clock, mark: Mark, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        self._unit = unit
        self._program = program
        self._clock = clock
        self._mark = mark
        self._arrived = arrived
        self._state = state
        self._cutter = Cutter()
        self._since = clock.wall()
        self._cursor = ""
        self._said = ""
        self._wrong = ""
        self._unknown = False
        self._started: float | None = None
        self._told: Sight | None = None

    def begin(self) -> None:
        """Go back to where an earlier follower has ended."""
        kept = self._mark.load()
        if kept is not None and kept.get("unit") == self._unit and isinstance(cursor := kept.get("cursor"), str):
            self._cursor = cursor
            self._since = float(kept["since"]) if isinstance(kept.get("since"), float) else self._since
        self.tell("journalctl is being started")
        self._mark.keep(self._place)

    def argv(self) -> list[str]:
        """journalctl from the last entry on, or from our beginning while there was none."""
        place = f"--after-cursor={self._cursor}" if self._cursor else f"--since=@{self._since:.6f}"
        return [
            self._program, "--follow", "--no-tail", "--output=json", f"--output-fields={FIELDS}", "--all", f"--unit={self._unit}", place,
        ]  # fmt: skip

    def piece(self, raw: bytes) -> bool:
        """Take what journalctl wrote."""
        lines = []
        seen = False
        for text in self._cutter.feed(raw).splitlines():
            record = parse(text)
            if record is None:
                self._said = text.decode("utf-8", "replace")[:300]
                continue
            seen = True
            self._unknown = False
            self._cursor, self._said = record.cursor, ""
            self._started = record.started or self._started
            lines.append(record.line)
        if whole := b"".join(lines):
            self._arrived(whole, self._clock.monotonic())
        if seen:
            self._mark.keep(self._place)
        return seen

    async def still(self) -> None:
        """While nothing arrives: keep the mark young, and ask whether there is such a unit at all; journalctl waits for one that is misspelt for ever."""
        while True:
            with contextlib.suppress(EdgekeeperError):  # no systemctl here: then it cannot be told
                known = await run(["systemctl", "show", "--property=LoadState", "--value", "--", self._unit], _ASK_S)
                self._unknown = known.code == 0 and known.output.strip() == "not-found"
                self.tell(self._wrong)
            await asyncio.sleep(_STILL_S)
            self._mark.keep(self._place)

    def tell(self, wrong: str) -> None:
        """Say what can be seen, if that is another than before."""
        self._wrong = wrong
        if not wrong and self._said.startswith("No journal files"):
            wrong = f"journalctl says: {self._said}"
        elif not wrong and self._unknown:
            wrong = f"systemd knows no unit {self._unit}; its lines are followed once there is one"
        elif wrong.endswith("cannot be run: No such file or directory"):
            wrong = f"{wrong}; install systemd"
        sight = Sight(seeing=not wrong, why=wrong or f"the journal of {self._unit} is followed; {_NOTE}", started=self._started)
        if sight != self._told:
            self._told = sight
            self._state(sight)

    def ended(self) -> str:
        """What journalctl said last, which is why it ended."""
        self._cutter = Cutter()
        said, self._said = self._said, ""
        return said

    def _place(self) -> dict[str, Any] | None:
        return {"unit": self._unit, "cursor": self._cursor, "since": self._since}
