"""What a pass leaves for the next one, also of another process: absences, and the last place that each target was known to have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose import brake
from edgekeeper.expose.brake import Memory
from edgekeeper.expose.kinds import Place
from edgekeeper.host.files import read_text, write_text

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """The memory of the brake, the last good places by class, the cluster's network of Services as it was last told, and what is away.

    ``moving``: services that a migration has deleted and not made anew yet, by host.
    """

    brake: Memory = field(default_factory=Memory)
    places: Mapping[str, Place] = field(default_factory=dict)
    network: str | None = None
    moving: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def recall(path: Path) -> tuple[Kept, str | None]:
    """What was left, and why it counts as nothing, if it does: then every absence begins anew, which deletes later and never sooner."""
    try:
        if not path.exists():
            return Kept(), None
        found = json.loads(read_text(path))
        if found["schema"] != SCHEMA:
            return Kept(), f"{path} is of another version; absences are counted anew"
        places = {str(klass): Place(str(address), int(port)) for klass, (address, port) in dict(found["places"]).items()}
        network = found.get("network")
        moving = {str(host): dict(raw) for host, raw in dict(found.get("moving", {})).items()}
        return Kept(brake.load(found), places, network if isinstance(network, str) else None, moving), None
    except (EdgekeeperError, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Kept(), f"{path} cannot be read; absences are counted anew"


def remember(path: Path, kept: Kept, *, sync: bool = False) -> str | None:
    """Leave it, ``sync`` on the disk itself; why it could not be written, or None."""
    places = {klass: [place.address, place.port] for klass, place in kept.places.items()}
    try:
        write_text(
            path,
            json.dumps({"schema": SCHEMA, "places": places, "network": kept.network, "moving": dict(kept.moving), **brake.dump(kept.brake)}) + "\n",
            sync=sync,
        )
    except EdgekeeperError as err:
        return f"{err}; a restart of edgekeeper now would count absences anew"
    return None
