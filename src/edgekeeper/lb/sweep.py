"""Twice a second: end the sessions that a HAProxy of ours leaves on dead servers, in old workers and in the twins of a service."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from edgekeeper.engines.haproxy.admin import Admin
from edgekeeper.engines.haproxy.look import Picture
from edgekeeper.errors import EdgekeeperError
from edgekeeper.lb import brake
from edgekeeper.lb.brake import Manner
from edgekeeper.lb.scene import Ended, Scene, View, end_left, end_sessions
from edgekeeper.log import WARNING, Event, emit
from edgekeeper.model.budget import Budget, Window, spend
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Clock, Journal

EVERY_S = 0.5
"""How often ``sweep`` is to be called: pinned sessions of old workers end within a second of DOWN."""

AGAIN_S = 5.0
"""A cut that ended nothing is tried again after this long."""

LIMIT, WINDOW_S = 60, 600.0
"""At most so many cuts in so many seconds: a server that flaps every ten seconds is past helping its clients by cutting them."""


class Sweeper:
    """The sweep of one supervised HAProxy. ``manner`` may be exchanged at any time (a reload brings other services, the canary speaks)."""

    def __init__(self, admin: Admin, manner: Manner, clock: Clock, journal: Journal) -> None:
        self.manner = manner
        self.held: tuple[str, ...] = ()
        """What the cascade brake holds back now, as sentences."""
        self.gaps: tuple[str, ...] = ()
        """What of old workers could not be seen at the last look, as sentences."""
        self.picture: Picture | None = None
        """HAProxy as it was at the last look; None when it could not be seen."""
        self.total = 0
        """Sessions ended since the start."""
        self._scene = Scene(admin, clock)
        self._clock = clock
        self._journal = journal
        self._since = brake.Since()
        self._budget = Budget((Window(LIMIT, WINDOW_S),))
        self._spent = ""
        self._cuts: deque[tuple[float, int]] = deque(maxlen=4096)
        self._vain: dict[tuple[str, str, tuple[int, ...]], float] = {}

    @property
    def cuts_per_minute(self) -> int:
        """Sessions that were ended in the last 60 s."""
        now = self._clock.monotonic()
        return sum(number for at, number in self._cuts if now - at <= 60)

    async def sweep(self) -> int:
        """Look once and end what must end; returns how many sessions were ended. Raises as ``Admin`` does when HAProxy cannot be seen."""
        try:
            view = await self._scene.see()
        except EdgekeeperError:
            self.picture = None
            self._since = brake.Since()  # what could not be watched has to settle anew
            raise
        now = self._clock.monotonic()
        found = brake.sweep(self._since, view.servers, view.worker, self.manner, now, view.left)
        if found.held and not self.held:
            self._hold("brake", "; ".join(found.held))
        self._since, self.held, self.gaps, self.picture = found.since, found.held, view.gaps, view.picture
        self._vain = {cut: at for cut, at in self._vain.items() if now - at < AGAIN_S}
        total = 0
        for cut in found.cuts:
            key = (cut.backend, cut.server, cut.workers)
            if key in self._vain:
                continue
            if not self._may(cut):
                continue
            ended = await self._end(view, cut)
            if not ended.total:
                self._vain[key] = now
            if not ended.total and not ended.notes:
                continue  # they went by themselves
            total += ended.total
            self._tell(f"{cut.backend}/{cut.server}", "; ".join((f"{cut.why}: {ended.total}", *ended.notes)), ended.cut)
        if total:
            self._cuts.append((self._clock.monotonic(), total))
            self.total += total
        return total

    def _may(self, cut: brake.Cut) -> bool:
        """Take a cut out of the budget; told once while it is spent."""
        spending = spend(self._budget, self._clock.monotonic())
        self._budget = spending.budget
        if not spending.allowed and not self._spent:
            self._hold(f"{cut.backend}/{cut.server}", f"{cut.why}; held back, the budget is spent: {spending.why}")
        self._spent = "" if spending.allowed else spending.why
        return spending.allowed

    def _hold(self, name: str, why: str) -> None:
        emit(Event.LB_HELD, why, level=WARNING, server=name)
        self._journal.write(Entry("lb", Event.LB_HELD, name, "hold", why))

    async def _end(self, view: View, cut: brake.Cut) -> Ended:
        if cut.left:
            return await end_left(view, cut.backend, cut.server, cut.workers)
        return await end_sessions(view, cut.backend, cut.server, cut.workers, self.manner.twins)

    def _tell(self, name: str, why: str, cut: Mapping[int, int]) -> None:
        data: dict[str, Any] = {"sessions": sum(cut.values()), "workers": {str(pid): number for pid, number in cut.items()}}
        emit(Event.LB_SESSIONS_FREED, why, server=name, **data)
        self._journal.write(Entry("lb", Event.LB_SESSIONS_FREED, name, "act", why, data))
