"""Alarms: conditions that a person should know of, raised and cleared once each, with their reason."""

from __future__ import annotations

from collections.abc import Mapping

from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Journal


class Alarms:
    """The alarms of one role: a name to a sentence."""

    def __init__(self, role: str, journal: Journal) -> None:
        self._role = role
        self._journal = journal
        self._now: dict[str, str] = {}

    @property
    def raised(self) -> Mapping[str, str]:
        """What is raised now."""
        return dict(self._now)

    def set(self, name: str, why: str | None) -> None:
        """Raise an alarm with its reason, or clear it with None. The same again is no news."""
        before = self._now.get(name)
        if why == before:
            return
        if why is None:
            del self._now[name]
            emit(Event.ALARM_CLEARED, f"{name}: no longer so (it was: {before})", level=INFO, alarm=name)
            self._journal.write(Entry(self._role, Event.ALARM_CLEARED, name, "act", f"no longer so: {before}"))
            return
        self._now[name] = why
        emit(Event.ALARM_RAISED, f"{name}: {why}", level=WARNING, alarm=name)
        if before is None:
            self._journal.write(Entry(self._role, Event.ALARM_RAISED, name, "alarm", why))
