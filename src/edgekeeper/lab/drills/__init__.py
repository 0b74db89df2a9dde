"""The drills, by name. A new one is a file (or a case) and a line here."""

from __future__ import annotations

from edgekeeper.lab.drill import Drill
from edgekeeper.lab.drills import changes, kinds, members, pinned, reloads, supervisor, truth

DRILLS: dict[str, Drill] = {
    drill.name: drill
    for drill in (
        pinned.BLACKHOLE,
        pinned.AFTER_RELOAD,
        pinned.GUARD,
        pinned.ALL_SLOW,
        pinned.MAINT,
        reloads.RELOADS,
        reloads.TAKEN_PORT,
        reloads.RELOAD_DOWN,
        reloads.SUPERVISOR,
        members.KILLED,
        members.FROZEN,
        changes.CHANGED,
        changes.ROLLED,
        changes.BAD_CONFIG,
        supervisor.KILLED,
        supervisor.FROZEN,
        members.SLOW,
        truth.UPSTREAM,
        kinds.KINDS,
        changes.CERTIFICATE,
        truth.WRONG_NODE,
        supervisor.RESTARTED,
        members.OVER_STREAMS,
    )
}
