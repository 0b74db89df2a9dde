"""The sessions that ``show sess`` and ``show sess all`` tell of, in the formats of HAProxy 2.6, 3.0 and 3.2. Pure.

The short form is a line a session and has no byte counts; the long form has some twenty lines for each, with
the bytes of both directions and the address that the session is connected to. Filters (``show sess server B/S``) are
silently ignored by 2.6 and must be applied here, on the reader's side.

Sessions of the command line itself (``be=<NONE>``) and those without a server (``srv=<none>``) are skipped.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from edgekeeper.engines.haproxy.stats import parse_uptime, split_address


@dataclass(frozen=True, slots=True)
class Session:
    """One established session. ``id`` is a pointer: unique now, and used again once the session is over."""

    id: str
    source: str
    """``host:port`` of the client as HAProxy writes it, ``?`` where it is not known (any more)."""
    source_host: str
    frontend: str
    backend: str
    server: str
    age_s: float | None = None
    bytes_in: int | None = None
    """From the client; None in the short form."""
    bytes_out: int | None = None
    """To the client; None in the short form."""
    proto: str = ""
    address: str = ""
    """Where the session is connected to, ``host:port``; empty in the short form."""


_SHORT = re.compile(r"(0x[0-9a-f]{1,16}): proto=(\S+)(?: src=(\S+))? fe=(\S+) be=(\S+) srv=(\S+) (?:.*? )?age=(\S+)(?: |\Z)")
_LONG = re.compile(r"(0x[0-9a-f]{1,16}): \[[^\]\n]*\] id=\d+ proto=(\S+)(?: source=(\S+))?")
_FRONTEND = re.compile(r"\n  frontend=(\S+) ")
_BACKEND = re.compile(r"\n  backend=(\S+) ")
_SERVER = re.compile(r"\n  server=(\S+) \(id=[^)\n]*\)(?: addr=(\S+))?")
_AGE = re.compile(r"\n  task=[^\n]* age=([0-9a-z]+)\)")
_REQUEST = re.compile(r"\n  req=0x[^\n]* total=(\d{1,20})\)")
_RESPONSE = re.compile(r"\n  res=0x[^\n]* total=(\d{1,20})\)")
_START = re.compile(r"^0x[0-9a-f]{1,16}: ", re.MULTILINE)
_LONGEST = 1 << 18
"""Characters of one session's long form before it counts as something else (measured: 2,000)."""


def parse_session_line(line: str) -> Session | None:
    """A line of ``show sess``; None for anything that is no session with a server."""
    match = _SHORT.match(line)
    if match is None:
        return None
    number, proto, source, frontend, backend, server, age = match.groups()
    if backend == "<NONE>" or server == "<none>":
        return None
    seconds = parse_uptime(age)
    return Session(number, source or "?", _host(source), frontend, backend, server, None if seconds is None else float(seconds), None, None, proto)


def parse_session_record(text: str) -> Session | None:
    """One session of ``show sess all`` with all of its lines; None for anything that is no session with a server."""
    head = _LONG.match(text)
    backend, server = _BACKEND.search(text), _SERVER.search(text)
    if head is None or backend is None or server is None or backend[1] == "<NONE>" or server[1] in ("<none>", "<NONE>"):
        return None
    frontend, age, request, response = _FRONTEND.search(text), _AGE.search(text), _REQUEST.search(text), _RESPONSE.search(text)
    seconds = parse_uptime(age[1]) if age else None
    return Session(
        head[1],
        head[3] or "?",
        _host(head[3]),
        frontend[1] if frontend else "?",
        backend[1],
        server[1],
        None if seconds is None else float(seconds),
        int(request[1]) if request else None,
        int(response[1]) if response else None,
        head[2],
        server[2] or "",
    )


class SessionReader:
    """Sessions out of pieces of an answer as they come: feed text of any length, then ``end``. Reads both forms.

    No more than one session's text is kept.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._words: dict[str, str] = {}

    def feed(self, text: str) -> list[Session]:
        """The sessions that this piece completes."""
        text = self._rest + text
        starts = [match.start() for match in _START.finditer(text)]
        if not starts:
            self._rest = text[-_LONGEST:]
            return []
        self._rest = text[starts[-1] :]
        if len(self._rest) > _LONGEST:  # no session is that long: something else follows
            self._rest = ""
        found = (_one(text[start:end]) for start, end in itertools.pairwise(starts))
        return [self._kept(session) for session in found if session is not None]

    def end(self) -> list[Session]:
        """The last one, once the answer is over."""
        rest, self._rest = self._rest, ""
        session = _one(rest)
        return [] if session is None else [self._kept(session)]

    def _kept(self, s: Session) -> Session:
        """The session with one copy of each word that many have in common: 20,000 of them take 8 MB less."""
        one = self._words.setdefault
        host, frontend, backend, server, proto, address = (one(w, w) for w in (s.source_host, s.frontend, s.backend, s.server, s.proto, s.address))
        return Session(s.id, s.source, host, frontend, backend, server, s.age_s, s.bytes_in, s.bytes_out, proto, address)


def _one(text: str) -> Session | None:
    first, newline, _ = text.partition("\n")
    return parse_session_line(first) or (parse_session_record(text) if newline else None)


def _host(source: str | None) -> str:
    return split_address(source)[0] if source else "?"
