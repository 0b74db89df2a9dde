"""What a watchdog saw and did, put together from its lines: triggers with what came of each, and bursts of fingerprints. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

BURST_S: Final = 60.0
"""Lines of a fingerprint that are less than this apart are one burst."""

SAME_S: Final = 900.0
"""A restart that failed rounds of a probe ask for ends a suppressed trigger of at most so long before."""

AFTER_S: Final = 600.0
"""So long after a restart or a burst an answer, or a restart, still tells what became of it."""

_FAIL_S: Final = 300.0
"""A restart belongs to the decision of at most so long before."""

_DEEDS: Final = (Kind.FINGERPRINT, Kind.WATCH_ACTING, Kind.WATCH_SUPPRESSED, Kind.WATCH_RESTARTED)


class Ending(StrEnum):
    """What ended the time without service."""

    RESTART = "the restart"
    LATER = "a later restart"
    ITSELF = "the service itself"
    UNKNOWN = "not told"


@dataclass(slots=True)
class Trigger:
    """One time that a watchdog wanted a restart, in seconds on the clock of reference; None where nothing tells.

    ``since_s`` is how long after the restart before, ``answered`` the first good answer after its restart (or after it recovered).
    """

    at: float
    why: str
    service: str
    suppressed: bool = False
    cooldown_s: float | None = None
    since_s: float | None = None
    restarted: float | None = None
    answered: float | None = None
    ending: Ending = Ending.UNKNOWN
    seen: float = 0.0

    @property
    def left_s(self) -> float | None:
        """How much of the cooldown was left."""
        return None if self.cooldown_s is None or self.since_s is None else max(0.0, self.cooldown_s - self.since_s)

    @property
    def dark_s(self) -> float | None:
        """From the trigger to the answer, or to the restart where no answer is on record."""
        end = self.answered if self.answered is not None else self.restarted
        return None if end is None else max(0.0, end - self.at)


@dataclass(slots=True)
class Burst:
    """Lines of a fingerprint that came together. ``itself``: it answered again before any restart; None: nothing tells."""

    host: str
    service: str
    first: float
    last: float
    count: int = 1
    itself: bool | None = None

    @property
    def per_minute(self) -> float:
        """Lines a minute; a burst shorter than a second counts as one second long."""
        return self.count * 60.0 / max(1.0, self.last - self.first)


@dataclass(slots=True)
class _Host:
    """The marks of one watch: by service where a host has several."""

    deeds: list[Mark] = field(default_factory=list)
    answers: list[Mark] = field(default_factory=list)


def _hosts(study: Study) -> dict[str, _Host]:
    """Marks by host, and by service where a host restarts several; what names no service of those goes to all of a host."""
    deeds = [m for m in study.marks(*_DEEDS) if m.at is not None]
    services: dict[str, set[str]] = {}
    for mark in deeds:
        if mark.kind in {Kind.WATCH_ACTING, Kind.WATCH_RESTARTED}:
            services.setdefault(_host(study, mark), set()).add(mark.object)
    found: dict[str, _Host] = {}
    for mark in deeds:
        for name in _names(_host(study, mark), mark.object, services):
            found.setdefault(name, _Host()).deeds.append(mark)
    for mark in study.marks(Kind.WATCH_PROBE, Kind.WATCH_PROVEN, Kind.NOTE):
        if mark.at is not None and _good(mark):
            for name in _names(_host(study, mark), str(mark.data.get("service") or mark.object), services):
                if name in found:
                    found[name].answers.append(mark)
    return found


def _names(host: str, service: str, services: Mapping[str, set[str]]) -> list[str]:
    several = services.get(host, set())
    if len(several) < 2:
        return [host]
    return [f"{host}: {service}"] if service in several else [f"{host}: {one}" for one in sorted(several)]


def _host(study: Study, mark: Mark) -> str:
    return mark.node or study.node_of(mark.source)


def _good(mark: Mark) -> bool:
    """Whether it says that the service answers: a probe that succeeds, a proof after a restart, a route that is back."""
    return mark.kind == Kind.WATCH_PROVEN or mark.data.get("ok") is True or mark.data.get("state") == "routed"


def triggers(study: Study) -> dict[str, list[Trigger]]:
    """The triggers of each host in their order."""
    found = {}
    for host, one in sorted(_hosts(study).items()):
        several = _of(host, one)
        if several:
            found[host] = several
    return found


def _of(host: str, one: _Host) -> list[Trigger]:
    clusters = _clusters(host, [m for m in one.deeds if m.kind == Kind.FINGERPRINT])
    found: list[Trigger] = []
    for mark in one.deeds:
        at = mark.at or 0.0
        now = found[-1] if found else None
        match mark.kind:
            case Kind.WATCH_SUPPRESSED:
                _suppressed(found, mark, _burst_at(clusters, at))
            case Kind.WATCH_ACTING:
                burst = _burst_at(clusters, at)
                by_line = burst is not None or "fingerprint" in mark.what
                if now is not None and now.suppressed and now.restarted is None and not by_line and at - now.at <= SAME_S and not _between(one, now.seen, at):
                    now.seen = at  # the slower watchdog of the same trouble
                elif now is None or now.restarted is not None or at - now.seen > BURST_S or now.suppressed:
                    start = burst.first if burst is not None and (now is None or burst.first > now.seen) else at
                    found.append(Trigger(start, "a line of the log" if by_line else "failed rounds of the probe", mark.object, seen=at))
                else:
                    now.seen = at
            case Kind.WATCH_RESTARTED:
                if now is not None and now.restarted is None and at - now.seen <= _FAIL_S:
                    now.restarted = at
                else:
                    found.append(Trigger(at, "not told", mark.object, restarted=at, seen=at))
            case _:
                pass
    for place, trigger in enumerate(found):
        until = found[place + 1].at if place + 1 < len(found) else float("inf")
        _end(trigger, one, until)
    _since(found)
    return found


def _suppressed(found: list[Trigger], mark: Mark, burst: Burst | None) -> None:
    at = mark.at or 0.0
    now = found[-1] if found else None
    if now is not None and now.restarted is None and at - now.seen <= BURST_S:
        now.seen = at
        if now.suppressed:
            return
        trigger = now  # it was decided, and then held back
    else:
        start = burst.first if burst is not None and (now is None or burst.first > now.seen) else at
        trigger = Trigger(start, "a line of the log" if burst is not None or "fingerprint" in mark.what else "failed rounds of the probe", mark.object, seen=at)
        found.append(trigger)
    trigger.suppressed = True
    cooldown, since = mark.data.get("cooldown_s"), mark.data.get("since_s")
    trigger.cooldown_s = float(cooldown) if isinstance(cooldown, int | float) else None
    trigger.since_s = float(since) if isinstance(since, int | float) else None


def _between(one: _Host, begin: float, end: float) -> bool:
    return any(begin < (m.at or 0.0) < end for m in one.answers)


def _end(trigger: Trigger, one: _Host, until: float) -> None:
    """What ended it: the first of a restart and an answer."""
    start = trigger.restarted if trigger.restarted is not None else trigger.at
    before = [m.at for m in one.answers if m.at is not None and trigger.at < m.at < min(start, until)] if trigger.restarted is not None else []
    after = [m.at for m in one.answers if m.at is not None and start <= m.at < min(until, start + AFTER_S) and m.at > trigger.at]
    if before and trigger.suppressed:
        trigger.answered, trigger.ending = before[0], Ending.ITSELF
    elif trigger.restarted is not None:
        trigger.answered = after[0] if after else None
        trigger.ending = Ending.LATER if trigger.suppressed else Ending.RESTART
    elif after:
        trigger.answered, trigger.ending = after[0], Ending.ITSELF


def _since(found: list[Trigger]) -> None:
    last: float | None = None
    for trigger in found:
        if trigger.since_s is None and last is not None:
            trigger.since_s = trigger.at - last
        if trigger.restarted is not None:
            last = trigger.restarted


def _clusters(host: str, marks: Sequence[Mark]) -> list[Burst]:
    found: list[Burst] = []
    for mark in marks:
        at = mark.at or 0.0
        if found and at - found[-1].last < BURST_S:
            found[-1].last = at
            found[-1].count += 1
        else:
            found.append(Burst(host, mark.object, at, at))
    return found


def _burst_at(clusters: Sequence[Burst], at: float) -> Burst | None:
    return next((b for b in clusters if b.first - 1 <= at <= b.last + BURST_S), None)


def bursts(study: Study) -> list[Burst]:
    """Every burst, and whether the service answered before anybody restarted it."""
    found = []
    for host, one in sorted(_hosts(study).items()):
        clusters = _clusters(host, [m for m in one.deeds if m.kind == Kind.FINGERPRINT])
        restarts = [m.at for m in one.deeds if m.at is not None and m.kind == Kind.WATCH_RESTARTED]
        for place, burst in enumerate(clusters):
            until = min(burst.first + AFTER_S, clusters[place + 1].first if place + 1 < len(clusters) else float("inf"))
            restart = min((t for t in restarts if burst.first <= t <= until), default=None)
            answer = min((m.at for m in one.answers if m.at is not None and burst.first < m.at <= until), default=None)
            if restart is not None or answer is not None:
                burst.itself = answer is not None and (restart is None or answer < restart)
            found.append(burst)
    return found
