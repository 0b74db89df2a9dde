"""What ``edgekeeper probe --record`` writes: one line for each question, schema 1. Pure.

``sent`` and ``done`` are of a monotonic clock, ``ts`` is the wall clock at sending: the questions are put on the wall clock by ``ts``, and
keep their exact length.
"""

from __future__ import annotations

import re

import msgspec

from edgekeeper.model.sample import SCHEMA, Sample
from edgekeeper.report.formats.base import Context, Item, Parsed, name
from edgekeeper.report.formats.jsonline import decode
from edgekeeper.report.kinds import NO_TIME, NOT_THIS_FORMAT, Kind, Mark, Skip

_LATEST = 7e9
"""A wall clock beyond the year 2190 is a mistake."""


class _Line(msgspec.Struct, gc=False):
    ts: float
    target: str
    sent: float
    done: float
    ok: bool
    conn: str = "fresh"
    slow: bool = False
    schema: int = 0
    error: str | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    first_byte_ms: float | None = None
    answered_by: str | None = None
    id: str | None = None


_STEP_S = 1.0
"""By how many seconds a clock must be set for it to be told."""
_STEADY_S = 600.0
_DECODER = msgspec.json.Decoder(_Line)
_LIKES = re.compile(rb'^\s*\{(?=.*"target": ?")(?=.*"sent": ?[0-9])(?=.*"done": ?[0-9])(?=.*"conn": ?").*"ok": ?(?:true|false)', re.DOTALL)


class ProbeRecord:
    """``probe-record``."""

    name = "probe-record"

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The question, on the wall clock; with an id of its own, also the mark that another log may have a stamp for."""
        if not line.strip():
            return None
        one = decode(_DECODER, line)
        if isinstance(one, Skip):
            return one
        if one.schema != SCHEMA:
            return Skip(NOT_THIS_FORMAT)
        took = one.done - one.sent
        if not (0 < one.ts < _LATEST and 0 <= took < _LATEST):
            return Skip(NO_TIME)
        sample = Sample(
            one.ts,
            name(one.target),
            "warm" if one.conn == "warm" else "fresh",
            one.ts,
            one.ts + took,
            one.ok,
            one.slow,
            _name(one.error),
            one.connect_ms,
            one.tls_ms,
            one.first_byte_ms,
            _name(one.answered_by),
        )
        moved = _moved(one, context)
        if moved is None and not (one.id and one.ok):
            return sample
        found: list[Item] = [sample] if moved is None else [sample, moved]
        if one.id and one.ok:
            found.append(
                Mark(one.ts, Kind.CLOCK, name(one.id), "asked by a probe", context.source, context.node, 0.0, {"side": "sent", "until": one.ts + took})
            )
        return found

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly a record of a probe."""
        return _LIKES.search(line) is not None


def _moved(one: _Line, context: Context) -> Mark | None:
    """A note where the wall clock went another way than the steady one since the line before: it was set, or the machine slept meanwhile.

    A steady clock that goes back is of another start of the machine, and one that leaps is of another machine: neither says anything.
    """
    before = context.state.get("probe-record clocks")
    context.state["probe-record clocks"] = one.ts, one.sent
    if before is None or not 0 <= one.sent - before[1] <= _STEADY_S:
        return None
    moved = (one.ts - before[0]) - (one.sent - before[1])
    if abs(moved) < _STEP_S:
        return None
    what = f"the clock was set back by {-moved:.1f} s" if moved < 0 else f"the clock was set forward by {moved:.1f} s, or the machine slept for so long"
    return Mark(one.ts, Kind.NOTE, "clock", what, context.source, context.node, 0.0, {"moved_s": moved})


def _name(word: str | None) -> str | None:
    return None if word is None else name(word)


PROBE_RECORD = ProbeRecord()
