"""Sessions that HAProxy has right now: ``show sess``, and ``edgekeeper lb sessions -o json``. Pure.

A session on a dead server leaves no line in any log before it is killed: only such a dump, taken during a roll, shows the next victims.
``show sess`` has no time: a line ``# at 2026-11-29T20:33:40Z`` before a dump tells it (for our own program and for a script of one line),
else the envelope's stamp, else the last change of the file. Whether its server is down only our own program says.
"""

from __future__ import annotations

import re

import msgspec

from edgekeeper.engines.haproxy.sess import Session, parse_session_line
from edgekeeper.report import kinds
from edgekeeper.report.formats import access, stamps
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.base import text as as_text
from edgekeeper.report.formats.jsonline import decode
from edgekeeper.report.kinds import Kind, Mark, Skip

_AT = re.compile(r"# at (\S{1,40})\s*", re.ASCII)
_LIKE = re.compile(rb"0x[0-9a-f]{1,16}: proto=\S+ .*\bfe=\S+ be=\S+ srv=\S+ ")
_STAMP_S = 1.0


class _Row(msgspec.Struct, gc=False):
    client: str
    backend: str
    server: str
    pinned: bool
    age_s: float | None
    host: str = ""


_ROW = msgspec.json.Decoder(_Row)


class ShowSess:
    """The dump of HAProxy itself, one session a line. Lines that are no session with a server say nothing."""

    name = "haproxy-sessions"

    def likes(self, line: bytes) -> bool:
        """A session in the short form."""
        return _LIKE.match(line) is not None

    def parse(self, line: bytes, context: Context) -> Parsed:
        """A mark for each session."""
        text = as_text(line)
        stamp = _AT.fullmatch(text)
        if stamp is not None:
            context.state[self.name] = stamps.iso(stamp[1])
            return None
        if not _LIKE.match(line):
            return Skip(kinds.NOT_THIS_FORMAT) if text.strip() else None
        session = parse_session_line(text)
        return None if session is None else _mark(session, context, context.state.get(self.name), down=None)


class LbSessions:
    """The rows of our own ``lb sessions -o json``; the rest of its document says nothing."""

    name = "lb-sessions"

    def likes(self, line: bytes) -> bool:
        """A row."""
        return isinstance(self._row(line), _Row)

    def parse(self, line: bytes, context: Context) -> Parsed:
        """A mark for each row."""
        row = self._row(line)
        if row is None:
            return None
        session = Session("", row.client, row.host, "", row.backend, row.server, row.age_s)
        return _mark(session, context, None, down=row.pinned)

    def _row(self, line: bytes) -> _Row | None:
        line = line.strip().removesuffix(b",")
        if not line.startswith(b'{"client":'):
            return None
        found = decode(_ROW, line)
        return None if isinstance(found, Skip) else found


def _mark(session: Session, context: Context, at: float | None, *, down: bool | None) -> Mark:
    at = at if at is not None else context.envelope_at if context.envelope_at is not None else context.until
    server, client = name(f"{session.backend}/{session.server}"), access.address(session.source)
    age = session.age_s
    what = f"a session of {client or 'somebody'} on {server}" + (f", {age:.0f} s old" if age is not None else "") + (": the server is down" if down else "")
    return Mark(at, Kind.PINNED, server, what, context.source, context.node, _STAMP_S, {"client": client, "age_s": age, "down": down})
