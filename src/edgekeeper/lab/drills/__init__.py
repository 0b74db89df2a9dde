"""The drills, by name. A new one is a file (or a case) and a line here."""

from __future__ import annotations

from edgekeeper.lab.drill import Drill
from edgekeeper.lab.drills import members

DRILLS: dict[str, Drill] = {
    drill.name: drill
    for drill in (
        members.KILLED,
        members.FROZEN,
    )
}
