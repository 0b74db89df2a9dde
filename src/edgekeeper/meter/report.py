"""What the probe role says of itself: each target, the verdict, metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekeeper.measure.outages import Outage
from edgekeeper.measure.running import Running
from edgekeeper.meter.kept import Kept, Key
from edgekeeper.meter.live import name
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus

_QUANTILES = (0.5, 0.95, 0.99)
_NAMED = 5
"""Targets that are down and named in the verdict; its details have all."""


def status(kept: Kept, alarms: Mapping[str, str], now: float) -> RoleStatus:
    """The role's verdict with its details; ``now`` is on the clock of the samples. Ready is whether it asks: what it asks may be down."""
    items = [item(key, running, now) for key, running in kept.running.items()]
    down = [f"{i['target']} ({i['conn']}) does not answer: {i['error']}" for i in items if i["state"] == "down"]
    others = [f"{alarm}: {why}" for alarm, why in alarms.items() if not alarm.startswith("outage of ")]
    word = f"{len(items)} targets are asked" if len(items) != 1 else "1 target is asked"
    more = [f"and {len(down) - _NAMED} more"] if len(down) > _NAMED else []
    bad = [*down[:_NAMED], *more, *others]
    verdict = Verdict(Health.BAD, "; ".join(bad)) if bad else Verdict(Health.OK, f"{word}, all answer")
    return RoleStatus(verdict, Verdict(Health.OK, word), {"alarms": dict(alarms), "targets": items})


def item(key: Key, running: Running, now: float) -> dict[str, Any]:
    """One target, as ``/status`` shows it."""
    current, said = running.current(), running.summary()
    return {
        "target": key[0],
        "conn": key[1],
        "state": "unknown" if running.last is None else "down" if current is not None else "up",
        "since_s": round(now - current.first_bad, 3) if current is not None else None,
        "error": (running.last_bad.error or "") if running.last_bad is not None else "",
        "asked": running.asked,
        "unanswered": running.unanswered,
        "slow": running.slow,
        "outages": running.outages,
        "longest": bounds(said.worst) if said.worst is not None else None,
        "unseen_below_s": None if math.isinf(said.blind_s) else round(said.blind_s, 3),
    }


def bounds(outage: Outage) -> dict[str, float | None]:
    """An outage's bounds in seconds, the upper one None when no end was seen."""
    return {"min_s": round(outage.min_s, 3), "max_s": None if math.isinf(outage.max_s) else round(outage.max_s, 3)}


@dataclass(frozen=True, slots=True)
class Lost:
    """Questions that were asked and not recorded, and those that do not count because the meter was held up."""

    unrecorded: int
    uncounted: int


class Gauges:
    """The metrics of all targets; targets that are asked no more disappear."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._of: Kept | None = None
        self._asked: dict[Key, int] = {}

    def measure(self, kept: Kept, alarms: Mapping[str, str], lost: Lost, now: float) -> None:
        """Set them; ``now`` is on the clock of the samples. Only what changed is looked at: a thousand targets each second took a tenth of a core."""
        if kept is not self._of:
            for gauge in ("up", "asked", "unanswered", "slow", "outages", "outage_seconds_min", "outage_seconds_max", "answer_seconds"):
                self._metrics.clear(f"edgekeeper_probe_{gauge}")
            self._of, self._asked = kept, {}
        for key, running in kept.running.items():
            if self._asked.get(key) != running.asked or running.current() is not None:
                self._asked[key] = running.asked
                self._target(key, running, now)
        self._metrics.set("edgekeeper_probe_unrecorded", lost.unrecorded)
        self._metrics.set("edgekeeper_probe_uncounted", lost.uncounted)
        self._metrics.set("edgekeeper_probe_alarms", len(alarms))

    def _target(self, key: Key, running: Running, now: float) -> None:
        labels = {"target": key[0], "conn": key[1]}
        if running.last is not None:
            self._metrics.set("edgekeeper_probe_up", float(running.current() is None), labels)
        total = running.total(now)
        for gauge, value in (
            ("asked", running.asked),
            ("unanswered", running.unanswered),
            ("slow", running.slow),
            ("outages", running.outages),
            ("outage_seconds_min", total.min_s),
            ("outage_seconds_max", total.max_s),
        ):
            self._metrics.set(f"edgekeeper_probe_{gauge}", float(value), labels)
        for share in _QUANTILES:
            took = running.times.quantile(share)
            if took is not None:
                self._metrics.set("edgekeeper_probe_answer_seconds", took, {**labels, "quantile": f"{share:g}"})


def alarm_of(key: Key) -> str:
    """What the alarm about an outage of a target is called."""
    return f"outage of {name(key)}"
