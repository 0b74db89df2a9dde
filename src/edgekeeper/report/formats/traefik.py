"""Traefik's access log in JSON. Pure.

Measured and read in the source (v2 and v3): lines are written when a request ends, and dated by its begin (``StartUTC``); durations
are nanoseconds; ``ClientAddr`` is who connected (or whom PROXY protocol names), ``ClientHost`` may be the X-Forwarded-For string that
anybody can write; ``RouterName`` is ``parent -> child`` where routers are layered; ``ServiceURL`` is a string in v3 and an object in v2,
and missing when no server was chosen; ``RequestCount`` numbers the requests of one process.

This is the exact parser. The fast one must agree with it on every line.
"""

from __future__ import annotations

import msgspec

from edgekeeper.report import kinds
from edgekeeper.report.formats import access, stamps
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.jsonline import decode
from edgekeeper.report.kinds import Request, Skip

NANO = 1e9
LONGEST_NS = 10**18
"""A duration of more than 31 years is none."""
NOTHING = "-"


class Url(msgspec.Struct, gc=False):
    """``ServiceURL`` as v2 wrote it; what is in it does not matter here."""


class Line(msgspec.Struct, gc=False, kw_only=True):
    """The fields that are read. All may be dropped by configuration, so that what is needed is asked for when it is known to be missing."""

    DownstreamStatus: int | None = None
    Duration: int | None = None
    StartUTC: str | None = None
    StartLocal: str | None = None
    time: str | None = None
    RouterName: str = ""
    ClientAddr: str = ""
    ClientHost: str = ""
    RetryAttempts: int = 0
    RequestCount: int | None = None
    ServiceURL: str | Url | None = None
    RequestScheme: str = ""
    RequestPath: str = ""


DECODER = msgspec.json.Decoder(Line)
_KEYS = ("DownstreamStatus", "Duration", "StartUTC", "StartLocal", "RequestCount")


class TraefikJson:
    """See the module."""

    name = "traefik-json"
    stamp_s = 0.0
    ends = False

    def likes(self, line: bytes) -> bool:
        """An object with a status, and a time or a duration, under Traefik's names."""
        if not line.startswith(b"{") or b'"DownstreamStatus":' not in line:
            return False
        found = decode(DECODER, line)
        return not isinstance(found, Skip) and found.DownstreamStatus is not None and (found.StartUTC or found.Duration) is not None

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The request that the line tells of."""
        found = decode(DECODER, line)
        if isinstance(found, Skip):
            return None if access.own_words(line) else found
        return access.shared(request(found, context.envelope_at), found.RequestPath.encode(errors="replace"), context.source, self.stamp_s)


def request(line: Line, written: float | None = None) -> Request | Skip | None:
    """The request of a decoded line; ``written`` is the time that the envelope has for it: the end, where the line does not tell how long it took.

    None for an object that has nothing of a request: Traefik's own log, which a container writes into the same stream.
    """
    status, took = line.DownstreamStatus, line.Duration
    if status is None:
        return None if all(getattr(line, key) is None for key in _KEYS) and not line.RouterName else Skip(kinds.MISSING_FIELD)
    if not (status == 0 or 100 <= status <= 999) or not 0 <= line.RetryAttempts < 10**6:
        return Skip(kinds.WRONG_TYPE)
    if took is not None and not 0 <= took < LONGEST_NS:
        return Skip(kinds.WRONG_TYPE)
    start = start_of(line, took, written)
    if isinstance(start, Skip):
        return start
    if took is None and written is None:
        return Skip(kinds.MISSING_FIELD)
    took_s = took / NANO if took is not None else max(0.0, (written or start) - start)
    router = router_of(line.RouterName)
    return Request(
        start=start,
        took_s=took_s,
        status=status,
        router=router,
        client=client_of(line.ClientAddr, line.ClientHost),
        masked=line.RetryAttempts,
        number=line.RequestCount,
        cause=cause(status, router, chosen=bool(line.ServiceURL)),
        tls=line.RequestScheme == "https" if line.RequestScheme else None,
    )


def start_of(line: Line, took: int | None, written: float | None) -> float | Skip:
    """When the request began: ``StartUTC``, else ``StartLocal``, else the end that the envelope or ``time`` (whole seconds) tells less the duration."""
    told = line.StartUTC if line.StartUTC is not None else line.StartLocal
    if told is not None:
        start = stamps.iso(told)
        return Skip(kinds.NO_TIME) if start is None else start
    end = written if written is not None else stamps.iso(line.time or "")
    if took is None:
        return Skip(kinds.MISSING_FIELD)
    if end is not None:
        return end - took / NANO
    return Skip(kinds.MISSING_FIELD if line.time is None else kinds.NO_TIME)


def router_of(text: str) -> str:
    """The route that answered: of layered ones (``parent -> child``) the last; "" when none matched."""
    return "" if text == NOTHING else name(text.rpartition(" -> ")[2] if " -> " in text else text)


def client_of(addr: str, host: str) -> str:
    """Who connected; ``ClientHost`` only when there is no address, and never a list out of a header."""
    return access.address(addr) if addr else access.plain(host)


def cause(status: int, router: str, *, chosen: bool) -> str:
    """What a status says of the reason; ``chosen`` is whether a server was chosen to ask.

    Read in the source: a 503 without a server is an empty service, a 502 or 504 with one is a failure to connect or to be answered.
    """
    if status < 499:
        return access.NO_ROUTE if status == 404 and not router else ""
    if status == access.GONE:
        return access.LEFT
    if not chosen:
        return access.NO_ENDPOINT if status == 503 else access.PROXY
    return access.NO_CONNECTION if status == 502 else access.TIMED_OUT if status == 504 else access.APPLICATION
