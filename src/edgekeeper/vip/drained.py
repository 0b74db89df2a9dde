"""Which VIPs a person has drained here: kept beside the track files, so that an interrupted hand-over is told from a drain. Lost at a reboot, as they are."""

from __future__ import annotations

import json
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text


class Drained:
    """The names of drained VIPs."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "drained.json"
        self.names: frozenset[str] = frozenset()
        try:
            names = json.loads(read_text(self._file))["names"]
            self.names = frozenset(str(name) for name in names)
        except (EdgekeeperError, ValueError, KeyError, TypeError):
            self.names = frozenset()

    def set(self, name: str, *, drained: bool) -> None:
        """Remember; StepFailedError when it cannot be written."""
        names = self.names | {name} if drained else self.names - {name}
        write_text(self._file, json.dumps({"schema": 1, "names": sorted(names)}), sync=False)
        self.names = names
