"""What one keepalived is given at its start and keeps over its reloads: where its pid files, its FIFO and its dumps lie. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """The role's folder below run_dir, absolute. All keepalived processes of a node share it: there is never more than one."""

    folder: str

    @property
    def fifo(self) -> str:
        """Where keepalived writes its transitions."""
        return f"{self.folder}/fifo/vrrp.fifo"

    @property
    def dumps(self) -> str:
        """Where it writes what it holds, when asked by a signal; nobody else can read there."""
        return f"{self.folder}/dumps"

    def pid_file(self, of: str) -> str:
        """The pid file of its parent, vrrp, checkers or bfd process: by default several keepalived would share one and end at once."""
        return f"{self.folder}/keepalived-{of}.pid"
