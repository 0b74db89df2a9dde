"""The track files through which keepalived is told to let go: ``weight-<vip>`` for hand-overs, ``health-<vip>`` for the prober."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text


class Weight(IntEnum):
    """What a track file says: it is taken off the priority, and 254 or more means FAULT."""

    SERVING = 0
    PREFER_NOT = 60
    FAULT = 300


class TrackFile:
    """One kind of track file of all VIPs, below the role's folder."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._kind = kind

    def path(self, vip: str) -> Path:
        """Where it lies."""
        return self._folder / f"{self._kind}-{vip}"

    def read(self, vip: str) -> int:
        """What it says; 0 when it is missing or says nothing readable, as keepalived takes it."""
        try:
            return int(read_text(self.path(vip)).strip() or 0)
        except (EdgekeeperError, ValueError):
            return 0

    def write(self, vip: str, value: int) -> None:
        """Say something else; StepFailedError when the file cannot be written. Replaced in one rename, which keepalived notices."""
        write_text(self.path(vip), f"{int(value)}\n", mode=0o644, sync=False)
