"""A journal in memory."""

from __future__ import annotations

from edgekeeper.model.entry import Entry


class Journal:
    """What was written, in order."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)
