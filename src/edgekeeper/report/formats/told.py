"""What the formats of events have in common: when a line was written and by whom, and the mark that comes of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from edgekeeper.report.formats.base import Context, Parsed, name, text
from edgekeeper.report.formats.syslog import head
from edgekeeper.report.kinds import NO_TIME, NOT_TEXT, Kind, Mark, Skip

LINE_MOST = 8192
"""Bytes of a line of text that are read: what an event says is at its begin."""

ENVELOPE_S = 0.001
"""How coarse the time of an envelope is taken to be: journald writes microseconds, dockerd and CRI nanoseconds, at the moment of reading."""

_LAG_S = 2.0
"""An envelope that is later than this after a line's own stamp was not written with the line (a log that was replayed)."""


class Told(NamedTuple):
    """One line: ``at`` in seconds since 1970 (None: no time is known), how coarse that is, the machine, the program, and the words."""

    at: float | None
    stamp_s: float
    node: str
    tag: str
    words: str


Reader = Callable[[Told, Context], Parsed]


@dataclass(frozen=True, slots=True)
class EventLog:
    """A log of text lines of which few matter.

    ``words``: a line with none of them says nothing (looked for first, as it is cheap). ``sure`` finds what only lines of this format
    have. ``read`` is asked for the rest.
    """

    name: str
    read: Reader
    words: tuple[bytes, ...]
    sure: re.Pattern[bytes]

    def parse(self, line: bytes, context: Context) -> Parsed:
        """What the line says; None when nothing of use."""
        if not any(word in line for word in self.words):
            return None
        if b"\0" in line:
            return Skip(NOT_TEXT)
        return self.read(undress(line, context), context)

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly of this format."""
        return self.sure.search(line[:LINE_MOST]) is not None


def undress(line: bytes, context: Context) -> Told:
    """The line without the head of a syslog; its time is that of the head, else of the envelope around it."""
    words = text(line[:LINE_MOST])
    found = head(words, context)
    if found is None:
        at, stamp_s = moment(None, 1.0, context)
        return Told(at, stamp_s, context.node, context.tag, words)
    at, stamp_s = moment(found.at, found.stamp_s, context)
    return Told(at, stamp_s, name(found.host) or context.node, name(found.tag), found.rest)


def moment(at: float | None, stamp_s: float, context: Context) -> tuple[float | None, float]:
    """The finer of a line's own time and that of its envelope: a program may write whole seconds where its envelope has nanoseconds."""
    around = context.envelope_at
    if around is not None and (at is None or (stamp_s >= 1.0 and 0.0 <= around - at < _LAG_S)):
        return around, ENVELOPE_S
    return at, stamp_s


def mark(told: Told, context: Context, kind: Kind, about: str, what: str, **data: str | float | bool | None) -> Mark | Skip:
    """The mark of a line; a ``Skip`` where no time is known. Names are made fit to be shown."""
    if told.at is None:
        return Skip(NO_TIME)
    kept = {key: name(value) if isinstance(value, str) else value for key, value in data.items()}
    return Mark(told.at, kind, name(about), name(what), context.source, told.node, told.stamp_s, kept)
