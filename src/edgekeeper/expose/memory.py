"""What a pass leaves for the next one, also of another process: absences, and the last place that each target was known to have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose import brake
from edgekeeper.expose.brake import Memory
from edgekeeper.expose.kinds import Place
from edgekeeper.host.files import read_text, write_text

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """The memory of the brake, and the last good places by class."""

    brake: Memory = field(default_factory=Memory)
    places: Mapping[str, Place] = field(default_factory=dict)


def recall(path: Path) -> tuple[Kept, str | None]:
    """What was left, and why it counts as nothing, if it does: then every absence begins anew, which deletes later and never sooner."""
    if not path.exists():
        return Kept(), None
    try:
        found = json.loads(read_text(path))
        if found["schema"] != SCHEMA:
            return Kept(), f"{path} is of another version; absences are counted anew"
        places = {str(klass): Place(str(address), int(port)) for klass, (address, port) in dict(found["places"]).items()}
        return Kept(brake.load(found), places), None
    except (EdgekeeperError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return Kept(), f"{path} cannot be read; absences are counted anew"


def remember(path: Path, kept: Kept) -> str | None:
    """Leave it; why it could not be written, or None."""
    places = {klass: [place.address, place.port] for klass, place in kept.places.items()}
    try:
        write_text(path, json.dumps({"schema": SCHEMA, "places": places, **brake.dump(kept.brake)}) + "\n", sync=False)
    except EdgekeeperError as err:
        return f"{err}; a restart of edgekeeper now would count absences anew"
    return None
