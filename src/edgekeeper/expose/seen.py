"""What the role knows of its last passes. Values only: the role writes them, its report reads them."""

from __future__ import annotations

from dataclasses import dataclass

from edgekeeper.expose.sync import Pass


@dataclass(slots=True)
class Seen:
    """What the role knows of its last passes, for its status. ``last`` is the last one that saw the mesh, ``at`` when that was (Unix time).

    ``lease`` is the sentence about the Lease; ``calls`` counts those of the mesh's API; ``untold`` is why objects cannot be told, "" while they can.
    """

    last: Pass | None = None
    at: float | None = None
    leads: bool = False
    lease: str = ""
    calls: int = 0
    untold: str = ""
