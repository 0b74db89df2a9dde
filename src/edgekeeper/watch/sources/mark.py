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
_AT_LEAST_S: Final = 60.0


class Mark:
    """One small JSON file. Not synced, and at most twice a second: after kill -9 up to half a second of lines is read again.

    A line that comes twice arms a watch twice, which is harmless; one that is missed is not. Where no file is
    named, or it cannot be written, nothing is kept.
    """

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._asked = self._written = float("-inf")
        self._value: dict[str, Any] | None = None
        self._place: Callable[[], dict[str, Any] | None] | None = None

    def load(self) -> dict[str, Any] | None:
        """What was kept within the last five minutes, with ``at`` (Unix seconds); None when there is none that can be used."""
        if self._path is None:
            return None
        try:
            value = json.loads(read_text(self._path, 65536))
            age = self._clock.wall() - float(value["at"])
        except (EdgekeeperError, ValueError, TypeError, KeyError, RecursionError):
            return None
        return value if 0.0 <= age <= OLDEST_S else None

    def keep(self, place: Callable[[], dict[str, Any] | None]) -> None:
        """Keep what ``place`` returns, now or later; it is called when it is to be written, and None keeps what is there.

        What has not changed is written once a minute, to say that it is still so.
        """
        self._place = place
        now = self._clock.monotonic()
        if self._path is None or now - self._asked < _EVERY_S:
            return
        self._asked = now
        value = self._ask()
        if value is not None and (value != self._value or now - self._written >= _AT_LEAST_S):
            self._write(value)

    def flush(self) -> None:
        """Write it now: at the end."""
        value = self._ask()
        if value is not None:
            self._write(value)

    def _ask(self) -> dict[str, Any] | None:
        if self._place is None:
            return None
        try:
            return self._place()
        except OSError:  # a file that cannot be read now has no place that could be told
            return None

    def _write(self, value: dict[str, Any]) -> None:
        if self._path is None:
            return
        self._value, self._written = value, self._clock.monotonic()
        with contextlib.suppress(EdgekeeperError):
            write_text(self._path, json.dumps({"at": self._clock.wall(), **value}), sync=False)
