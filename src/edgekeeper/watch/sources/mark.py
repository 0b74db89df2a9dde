"""How far a source has read, kept over our own restart: what was written meanwhile is read then, and nothing twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.ports import Clock

OLDEST_S: Final = 300.0
"""A mark older than this is of no use: what was written since is no news any more."""

_EVERY_S: Final = 0.5


class Mark:
    """One small JSON file. Not synced, and at most twice a second: after kill -9 up to half a second of lines is read again.

    A line that comes twice arms a watch twice, which is harmless; one that is missed is not. Where no file is
    named, or it cannot be written, nothing is kept.
    """

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._kept = float("-inf")
        self._stale: Callable[[], dict[str, Any] | None] | None = None

    def load(self) -> dict[str, Any] | None:
        """What was kept within the last five minutes, with ``at`` (Unix seconds); None when there is none that can be used."""
        if self._path is None:
            return None
        try:
            value = json.loads(read_text(self._path, 65536))
            age = self._clock.wall() - float(value["at"])
        except (EdgekeeperError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return value if isinstance(value, dict) and 0.0 <= age <= OLDEST_S else None

    def keep(self, place: Callable[[], dict[str, Any] | None]) -> None:
        """Keep what ``place`` returns, now or soon; it is called when it is written, and None keeps what is there."""
        self._stale = place
        if self._clock.monotonic() - self._kept >= _EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write it now if it has changed; at the end, and when there is time."""
        place, self._stale = self._stale, None
        if self._path is None or place is None:
            return
        self._kept = self._clock.monotonic()
        with contextlib.suppress(EdgekeeperError, OSError):
            value = place()
            if value is not None:
                write_text(self._path, json.dumps({"at": self._clock.wall(), **value}), sync=False)
