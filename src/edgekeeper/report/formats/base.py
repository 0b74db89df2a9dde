"""What a format of a log is: one line in, what it says out. Pure.

A parser never raises, whatever the bytes are: a line that it cannot read is a ``Skip`` with a reason, a line that says nothing for us is
None. A parser keeps no state but in the ``Context`` of the source, so that one parser serves any number of sources at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from edgekeeper.model.sample import Sample
from edgekeeper.model.text import printable
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Mark, Request, Skip

NAME_MAX = 256
"""Characters that a name out of a log (a router, a host, a peer) may have; the rest is cut, as a name may be 64 KiB of anything."""

Item = Request | Mark | Sample | Skip
Parsed = Item | list[Item] | None


@dataclass(slots=True)
class Context:
    """What a parser needs beside the line; one for each source, changed as its lines are read.

    ``local`` makes seconds since 1970 of year, month, day, hour, minute, second of the clock of the source's zone, for stamps that have no
    zone. ``until`` is when the source was last changed (for stamps
    that have no year), ``near`` a time that was read in the same source (better than ``until``, as a copied file is younger than its
    lines). ``envelope_at`` is the time that the envelope (CRI, docker, journald, Loki) of the present line tells, ``node`` the machine
    where known, ``tag`` the program or container that the envelope names, ``state`` a parser's own: keys begin with the name of the format.
    """

    local: Callable[[int, int, int, int, int, float], float] = utc
    until: float | None = None
    near: float | None = None
    node: str = ""
    source: str = ""
    tag: str = ""
    envelope_at: float | None = None
    state: dict[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """A kind of log. ``parse`` reads a line, ``likes`` says whether a line is certainly of this kind (strict: it must not like another's)."""

    @property
    def name(self) -> str:
        """What people write to force it: ``traefik-json``, ``haproxy``, ``frr``."""
        ...

    def parse(self, line: bytes, context: Context) -> Parsed:
        """What the line (without its end) says; None when nothing of use."""
        ...

    def likes(self, line: bytes) -> bool:
        """Whether the line is certainly of this format."""
        ...


def name(text: str) -> str:
    """A name out of a log on one line, printable, of at most ``NAME_MAX`` characters."""
    return text if len(text) <= NAME_MAX and text.isprintable() else printable(text, NAME_MAX)[:NAME_MAX]


def text(line: bytes) -> str:
    """The line as text; bytes that are not UTF-8 stay visible as escapes."""
    return line.decode("utf-8", "backslashreplace")
