"""F9 and F10: what watchdogs did, what it would have been with another cooldown, and how good their fingerprints are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from edgekeeper.measure.share import clopper_pearson
from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.outages import PROBE, WARM
from edgekeeper.report.figures.say import clock, lasted, many, seconds
from edgekeeper.report.figures.triggers import BURST_S, Trigger, bursts, triggers
from edgekeeper.report.study import Study

COOLDOWNS: Final = (0.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Cooldowns that are tried on what happened, in seconds."""

_MISSING: Final = "no source tells of a watchdog's triggers, restarts or fingerprints"


@dataclass(frozen=True, slots=True)
class Replay:
    """What a cooldown would have done: restarts, suppressed triggers, and how long the longest suppressed one had to wait or was dark (None: not known)."""

    cooldown_s: float
    restarts: int
    suppressed: int
    dark_max_s: float | None


def replay(told: Sequence[Trigger], cooldown_s: float, restart_s: float | None) -> Replay:
    """The triggers of one host again, with another cooldown.

    A permitted one is dark for as long as it was, or as a restart takes (where it was not permitted), a suppressed one until the cooldown ends and the restart is done, or for
    as long as it was when it was suppressed in fact, where that is less (it recovered by itself, or a slower watchdog came). Triggers
    are taken as they came: a restart that would have prevented a later one is not guessed.
    """
    last: float | None = None
    restarts = suppressed = 0
    dark: list[float | None] = []
    for trigger in told:
        if last is None and trigger.since_s is not None and not restarts:
            last = trigger.at - trigger.since_s  # of before the record
        left = 0.0 if last is None else max(0.0, last + cooldown_s - trigger.at)
        if left == 0:
            restarts += 1
            last = trigger.restarted if trigger.restarted is not None and not trigger.suppressed else trigger.at
            dark.append(trigger.dark_s if trigger.answered is not None and not trigger.suppressed else restart_s)
            continue
        suppressed += 1
        seen = trigger.dark_s if trigger.suppressed else None
        waited = None if restart_s is None else left + restart_s
        dark.append(min((way for way in (seen, waited) if way is not None), default=None))
        if seen is None or (waited is not None and waited < seen):
            restarts += 1
            last = trigger.at + left
        elif trigger.restarted is not None:
            restarts += 1
            last = trigger.restarted
    known = [d for d in dark if d is not None]
    return Replay(cooldown_s, restarts, suppressed, max(known, default=None) if len(known) == len(dark) else None)


def f9(study: Study) -> Figure:
    """Triggers, restarts and suppressed ones, what ended each, and other cooldowns."""
    title = "Watchdog restarts"
    found = triggers(study)
    if not found:
        return Figure("F9", title, _MISSING, measured=False)
    flat = [t for several in found.values() for t in several]
    restarted = [t for t in flat if t.restarted is not None]
    held = [t for t in flat if t.suppressed]
    rows = tuple((host, *_row(t), seen_by_probes(study, host, t)) for host, several in found.items() for t in several)
    parts = [f"{many(len(flat), 'trigger')} on {many(len(found), 'host')}: {many(len(restarted), 'restart')}, {len(held)} suppressed by a cooldown"]
    delays = [t.restarted - t.at for t in restarted if t.restarted is not None and not t.suppressed]
    if delays:
        parts.append(f"restarted within {seconds(max(delays))} of the trigger")
    worst = max((t for t in held if t.dark_s is not None), key=lambda t: t.dark_s or 0.0, default=None)
    if worst is not None:
        parts.append(f"the longest suppressed one lasted {seconds(worst.dark_s)} and was ended by {worst.ending}")
    return Figure(
        "F9",
        title,
        "; ".join(parts),
        table=Table(
            (
                "host",
                "trigger",
                "at",
                "what came of it",
                "since the restart before",
                "to the restart",
                "from there to an answer",
                "dark until",
                "ended by",
                "what probes saw",
            ),
            rows,
        ),
        data={"triggers": [_data(host, t) for host, several in found.items() for t in several]},
    )


def _row(trigger: Trigger) -> tuple[str, ...]:
    outcome = "suppressed" if trigger.suppressed else "restarted" if trigger.restarted is not None else "nothing that is told"
    if trigger.suppressed and trigger.cooldown_s:
        outcome += f" ({trigger.cooldown_s:.0f} s cooldown{f', {trigger.left_s:.0f} s left' if trigger.left_s is not None else ''})"
    if trigger.suppressed and trigger.restarted is not None:
        outcome += ", later restarted"
    return (
        trigger.why,
        clock(trigger.at),
        outcome,
        f"{trigger.since_s:.0f} s" if trigger.since_s is not None else "",
        seconds(trigger.restarted - trigger.at) if trigger.restarted is not None else "",
        seconds(trigger.answered - trigger.restarted) if trigger.answered is not None and trigger.restarted is not None else "",
        f"{clock(trigger.at + trigger.dark_s)} ({seconds(trigger.dark_s)})" if trigger.dark_s is not None else "not told",
        trigger.ending,
    )


def seen_by_probes(study: Study, host: str, trigger: Trigger) -> str:
    """The outages that probes had around a trigger: those of the host's own probes, where it has any; "" where none did."""
    end = trigger.answered or trigger.restarted or trigger.at
    near = [h for h in study.outages if h.group in {PROBE, WARM} and h.first_bad <= end + BURST_S and h.last_bad >= trigger.at - BURST_S]
    own = [h for h in near if study.node_of(h.source) == host.partition(": ")[0]]
    worst = max(own or near, key=lambda h: (h.span.min_s, h.span.max_s), default=None)
    return lasted(worst.span) if worst is not None else ""


def restart_takes(told: Sequence[Trigger]) -> float | None:
    """How long from a trigger to an answer after the restart: the median of what was seen (to the restart's own end where no answer was)."""
    full = [t.answered - t.at for t in told if t.restarted is not None and t.answered is not None and not t.suppressed]
    half = [t.restarted - t.at for t in told if t.restarted is not None and not t.suppressed]
    return median(full) if full else median(half) if half else None


def cooldowns(study: Study) -> Figure:
    """What other cooldowns would have done with the same triggers."""
    title = "Another cooldown"
    found = triggers(study)
    if not found:
        return Figure("F9C", title, _MISSING, measured=False)
    takes = restart_takes([t for several in found.values() for t in several])
    rows: list[tuple[str, ...]] = []
    data: list[dict[str, object]] = []
    for cooldown in COOLDOWNS:
        outcomes = [replay(several, cooldown, takes) for several in found.values()]
        darks = [o.dark_max_s for o in outcomes]
        dark = None if any(d is None for d in darks) else max(d for d in darks if d is not None)
        restarts, held = sum(o.restarts for o in outcomes), sum(o.suppressed for o in outcomes)
        data.append({"cooldown_s": cooldown, "restarts": restarts, "suppressed": held, "dark_max_s": dark})
        rows.append((f"{cooldown:.0f} s", str(restarts), str(held), seconds(dark) if dark is not None else "not known"))
    free = max((c for c, row in zip(COOLDOWNS, data, strict=True) if row["suppressed"] == 0), default=None)
    answer = (
        f"of those tried, {free:.0f} s is the longest that holds no trigger back" if free is not None else "each cooldown that was tried holds a trigger back"
    )
    notes = [f"A restart is taken to need {seconds(takes)}, the median of what was seen."] if takes is not None else []
    notes.append("Triggers are replayed as they came: that a restart would have prevented a later one is not guessed.")
    return Figure(
        "F9C",
        title,
        answer,
        table=Table(("cooldown", "restarts", "held back at first", "dark for at most"), tuple(rows)),
        notes=tuple(notes),
        data={"cooldowns": data, "restart_s": takes},
    )


def _data(host: str, trigger: Trigger) -> dict[str, object]:
    return {
        "host": host,
        "at": trigger.at,
        "why": trigger.why,
        "restarted": trigger.restarted,
        "suppressed": trigger.suppressed,
        "since_s": trigger.since_s,
        "answered": trigger.answered,
        "dark_s": trigger.dark_s,
        "ended_by": str(trigger.ending),
    }


def _between(least: int, most: int) -> str:
    return many(most, "line") if least == most else f"{least:,} to {most:,} lines"


def f10(study: Study) -> Figure:
    """Bursts of a fingerprint, how dense, and how often the service recovered before anybody did anything."""
    title = "Quality of fingerprints"
    found = bursts(study)
    if not found:
        return Figure("F10", title, "no source has a line that a watchdog looks for", measured=False)
    told = [b for b in found if b.itself is not None]
    alone = sum(bool(b.itself) for b in told)
    rows = tuple((b.host, b.service, clock(b.first), seconds(b.last - b.first), str(b.count), f"{b.per_minute:.0f}", _ITSELF[b.itself]) for b in found)
    parts = [f"{many(len(found), 'burst')} of {_between(min(b.count for b in found), max(b.count for b in found))}"]
    trickle = sum(b.count < 3 for b in found)
    if trickle:
        parts.append(f"{trickle} of fewer than three lines")
    data: dict[str, object] = {"bursts": len(found), "told": len(told), "itself": alone}
    if told:
        low, high = clopper_pearson(len(told) - alone, len(told))
        data |= {"precision_low": low, "precision_high": high}
        parts.append(
            f"{alone} of {len(told)} recovered before a restart, so that {100 * low:.0f} % to {100 * high:.0f} % of bursts need one (95 %, Clopper-Pearson)"
        )
    else:
        parts.append("whether they meant a wedge cannot be told: no answer or restart is on record after them")
    return Figure(
        "F10",
        title,
        "; ".join(parts),
        table=Table(("host", "service", "began", "for", "lines", "a minute", "recovered before a restart"), rows),
        notes=("Lines less than 60 s apart are one burst.",),
        data=data,
    )


_ITSELF: Final = {None: "not told", True: "yes", False: "no"}
