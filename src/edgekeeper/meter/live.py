"""The live table: what each target is doing now, in values. Pure."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from edgekeeper.measure.running import Running
from edgekeeper.meter.kept import Kept, Key, Told
from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span, format_duration

HEAD: Final = ("TARGET", "STATE", "NOW", "OUTAGES", "LONGEST", "LATENCY", "LAST ERROR")
SHOWN: Final = 24
"""Answers in a sparkline."""
_BARS: Final = " ▁▂▃▄▅▆▇█"
_LOST: Final = "✗"
_FASTEST_S, _STEP = 0.0005, 3.0
"""A bar is three times as long as the one before: half a millisecond to three seconds in eight."""


@dataclass(slots=True)
class Recent:
    """The last answers of each target."""

    seen: dict[Key, deque[float | None]] = field(default_factory=dict)

    def take(self, sample: Sample) -> None:
        """Keep how long it took; None for one that was lost."""
        self.seen.setdefault((sample.target, sample.conn), deque(maxlen=SHOWN)).append(sample.done - sample.sent if sample.ok else None)


def sparkline(times: deque[float | None]) -> str:
    """One character an answer, on a scale of powers; a lost one stands out whatever the scale is."""
    return "".join(_LOST if took is None else _bar(took) for took in times)


def _bar(took_s: float) -> str:
    step = 1 if took_s <= _FASTEST_S else 1 + math.ceil(math.log(took_s / _FASTEST_S, _STEP))
    return _BARS[min(step, len(_BARS) - 1)]


def name(key: Key) -> str:
    """A target as tables call it."""
    url, conn = key
    return url if conn == "fresh" else f"{url} (warm)"


def row(key: Key, running: Running, recent: Recent, now: float) -> tuple[str, ...]:
    """One line of the table; ``now`` is on the clock of the samples."""
    outage = running.current()
    if running.last is None:
        state, since = "...", ""
    elif outage is not None:
        state, since = "OUT", Span(max(0.0, outage.last_bad - outage.first_bad), now - outage.first_bad).text() if now > outage.first_bad else ""
    else:
        state, since = ("slow" if running.last.slow else "ok" if running.last.ok else "lost"), f"{(running.last.done - running.last.sent) * 1000:.1f} ms"
    worst = running.summary().worst
    error = (running.last_bad.error or "") if running.last_bad is not None else ""
    return (name(key), state, since, str(running.outages), worst.text() if worst else "none seen", sparkline(recent.seen.get(key, deque())), error)


def rows(kept: Kept, recent: Recent, now: float) -> list[tuple[str, ...]]:
    """The whole table, targets that are out first: with two hundred of them the screen ends before the list does."""
    found = [row(key, running, recent, now) for key, running in kept.running.items()]
    return sorted(found, key=lambda r: r[1] != "OUT")


def sentence(told: Told) -> str:
    """What a change is called where there is no live table: a line of its own."""
    if told.ended:
        return f"{name(told.key)} answers again: it was out for {told.outage.text()}, {told.outage.bad} questions unanswered"
    return f"{name(told.key)} does not answer{f' ({told.why})' if told.why else ''}"


def cost(targets: int, every_s: float, kind_ms: float) -> str:
    """What asking so often takes of one core; ``kind_ms`` is what one question takes."""
    a_second = targets / every_s
    return f"{targets} connections asked every {format_duration(every_s)}: {a_second:,.0f} questions a second, about {a_second * kind_ms / 10:.0f} % of a core"
