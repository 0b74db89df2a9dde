"""What this node knows of each VIP: the kernel's addresses, what keepalived told, what peers announce on the wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from edgekeeper.engines.keepalived.topology import Instance
from edgekeeper.vip.decide import Sight

REMEMBERED = 64
"""Adverts remembered for each VIP."""


@dataclass(slots=True)
class Page:
    """One VIP. Times are monotonic seconds; None is never."""

    instance: Instance
    held: bool = False
    held_since: float | None = None
    left_at: float | None = None
    covered_at: float | None = None
    told: str = "UNKNOWN"
    told_priority: int = 0
    told_since: float | None = None  # Unix time
    busy: bool = False
    low: int = 0  # what was taken off its priority as a settled owner, last
    adverts: deque[tuple[float, str, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    owned_since: float | None = None

    @property
    def state(self) -> str:
        """MASTER when the kernel has the address, else what keepalived told last; it tells nothing once it was killed."""
        if self.held:
            return "MASTER"
        return "BACKUP" if self.told == "MASTER" else self.told

    def advert(self, at: float, source: str, priority: int) -> bool:
        """A peer announced itself as the owner, or let go (priority 0). Whether it is a new owner."""
        quiet = 1.5 * self.instance.advert_s + 0.2
        if priority == 0:
            self.adverts.clear()
            self.owned_since = None
            return False
        fresh = not self.adverts or at - self.adverts[-1][0] > quiet
        if fresh:
            self.owned_since = at
        self.adverts.append((at, source, priority))
        return fresh

    def rival_adverts(self, now: float) -> list[tuple[float, str, int]]:
        """Adverts of another owner while this node is one too; none when they have stopped."""
        interval, since = self.instance.advert_s, self.held_since if self.held_since is not None else now
        last = self.heard_ago(now)
        if last is None or last >= 1.5 * interval + 0.2:
            return []
        return [advert for advert in self.adverts if advert[0] >= since and now - advert[0] < 2 * interval + 1]

    def heard_ago(self, now: float) -> float | None:
        """Seconds since a peer's last advert."""
        return now - self.adverts[-1][0] if self.adverts else None

    def sight(self, now: float, *, dead: bool, running: bool, deadline_s: float) -> Sight:
        """What there is to decide about."""

        def ago(at: float | None) -> float | None:
            return now - at if at is not None else None

        return Sight(
            self.held,
            ago(self.covered_at),
            ago(self.left_at) if not self.held else None,
            self.heard_ago(now),
            ago(self.owned_since),
            dead,
            running,
            self.busy,
            deadline_s=deadline_s,
            advert_s=self.instance.advert_s,
        )


class Book:
    """All VIPs of this node, by name."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}

    def rewrite(self, instances: Iterable[Instance]) -> None:
        """These are the VIPs now; what is known of those that stay is kept."""
        self.pages = {i.name: self._page(i) for i in instances}

    def _page(self, instance: Instance) -> Page:
        page = self.pages.get(instance.name)
        if page is None or page.instance.ip != instance.ip or page.instance.interface != instance.interface:
            return Page(instance)
        page.instance = instance
        return page

    def by_vrid(self, vrid: int, version: int) -> Page | None:
        """The VIP with this VRID and IP version."""
        for page in self.pages.values():
            if page.instance.vrid == vrid and (":" in page.instance.ip) == (version == 6):
                return page
        return None

    def by_address(self, address: str) -> Page | None:
        """The VIP with this address."""
        return next((page for page in self.pages.values() if page.instance.ip == address), None)
