"""What one HAProxy is given at its start and keeps over its reloads: the paths of its sockets and of its state file. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """Absolute paths. ``master`` speaks for all workers, ``admin`` for the newest one, ``state`` is read at each reload."""

    master: str
    admin: str
    state: str


def make(folder: str, tag: str) -> Seat:
    """The seat of one process; ``tag`` keeps two of them in one folder apart."""
    return Seat(f"{folder}/master-{tag}.sock", f"{folder}/admin-{tag}.sock", f"{folder}/servers-{tag}.state")
