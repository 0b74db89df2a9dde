"""HAProxy's log: ``option tcplog``, ``option httplog`` (also with more behind), and what it says of servers. Pure.

In syslog's dress or raw. Measured: a session is logged when it ends and dated by its begin (milliseconds, local time, no zone);
the first letter of its termination says who ended it, and for a session that was killed because its server went down it is ``D-``
(2.6) or ``DC`` (3.2), not ``DD``: only the first letter counts for that. A request that is killed so was answered 502 by 2.6; from 3.0
on its client gets nothing, and the log says 500 and no bytes. A pinned session leaves no line before it is killed. In ``Server ... is DOWN ... 0
sessions active`` the number is not that of the victims.

A TCP session has no status; whether it went badly is told by the letters: see ``_TCP``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from edgekeeper.report import kinds
from edgekeeper.report.formats import access, stamps, syslog
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.base import text as as_text
from edgekeeper.report.kinds import Kind, Mark, Request, Skip

_LEAD = r"([^\s<]\S{0,127}):(\d{1,9}) \[([^\]\s]{1,40})\] (\S{1,512}) (\S{1,512})/(\S{1,512}) "
_COUNTS = r"\d+/\d+/\d+/\d+/(\+?\d{1,9}) \d+/\d+"
_TCP_LINE = re.compile(_LEAD + r"-?\d+/-?\d+/\+?(-?\d{1,15}) \+?\d+ ([A-Za-z-]{2}) " + _COUNTS + r"(?: |$)", re.ASCII)
_HTTP_LINE = re.compile(_LEAD + r"-?\d+/-?\d+/-?\d+/-?\d+/\+?(-?\d{1,15}) (-1|\d{3}) \+?\d+ \S+ \S+ ([A-Za-z-]{4}) " + _COUNTS + r"(?: |$)", re.ASCII)
_PRIORITY = re.compile(r"<\d{1,3}>|\[[A-Z]{4,9}\] +(?:\d{1,3}/\d{6} +)?\(\d{1,10}\) : ", re.ASCII)
_SERVER = re.compile(r"(?:Backup )?[Ss]erver (\S{1,255})/(\S{1,255}) (?:is|was) (?:going )?(DOWN|UP|NOLB|MAINT|DRAIN)\b(.*)", re.ASCII)
_NO_SERVER = re.compile(r"(?:backend|proxy) '?(\S{1,255}?)'? has no server available!", re.ASCII)
_REASON = re.compile(r'reason: ([^"]{1,120}?)(?:, code: (\d{1,5}))?(?:, info: ".*?")?(?:, check duration|[.]|$)', re.ASCII)

_DRESS_MAX = 300
_TOLD_MAX = 4096
_AGAIN_S = 2.0

KILLED_DOWN = "killed: server down"
KILLED_ADMIN = "killed: by an administrator"
KILLED_BACKUP = "killed: an active server came up"
CUT_SERVER = "cut by the server"
NO_RESOURCES = "the proxy had no resources left"
IDLE = "idle for too long"

_KILLED = {"D": KILLED_DOWN, "K": KILLED_ADMIN, "U": KILLED_BACKUP}
_TCP = {
    "SC": access.NO_CONNECTION,  # the server refused, or there was none
    "SQ": access.NO_CONNECTION,
    "SD": CUT_SERVER,  # it broke off while data went through
    "SL": CUT_SERVER,
    "sC": access.TIMED_OUT,
    "sQ": access.TIMED_OUT,  # no server had room in time
    "PC": access.PROXY,
    "PD": access.PROXY,
    "RC": NO_RESOURCES,
    "RD": NO_RESOURCES,
    "IC": access.PROXY,
    "ID": access.PROXY,
}
"""Ends of a TCP session that hurt its client, and why. Not in it: what the client did itself, what a policy refused, and idle timeouts
(``cD``, ``sD``), which are the usual end of a session that nobody uses any more."""
_LEFT_WAITING = ("CC", "CQ", "cC")
"""The client gave up before it was connected: counted like a 499."""
_HTTP_CUT = {"SD": CUT_SERVER, "SL": CUT_SERVER, "RD": NO_RESOURCES, "ID": access.PROXY, "PD": access.PROXY}
"""An answer that had begun with a good status and was never complete."""


class _Session(NamedTuple):
    client: str
    start: float
    took_s: float
    frontend: str
    router: str
    server: str
    letters: str
    retries: int


class HaProxy:
    """See the module. Both kinds of line may be in one log. The router of a request is its backend."""

    name = "haproxy"
    stamp_s = 0.001
    ends = False

    def likes(self, line: bytes) -> bool:
        """A whole line of either kind, or one of those on servers."""
        text = _bare(as_text(line))
        if _TCP_LINE.match(text) or _HTTP_LINE.match(text) or _NO_SERVER.fullmatch(text):
            return True
        match = _SERVER.fullmatch(text)
        return match is not None and match[4].startswith((", reason: ", " for maintenance", "/"))

    def parse(self, line: bytes, context: Context) -> Parsed:
        """A request, a mark (a server or backend went down or up), or nothing."""
        text = as_text(line)
        short = text[text.find("]: ") + 3 :] if text.find("]: ", 0, _DRESS_MAX) > 0 else text  # what follows "haproxy[13498]: ", without reading its stamp
        match = _HTTP_LINE.match(short)
        if match is not None:
            return access.shared(_http(match, context), line, context.source, self.stamp_s)
        match = _TCP_LINE.match(short)
        if match is not None:
            return _tcp(match, context)
        dress = syslog.head(text, context)
        body = _PRIORITY.sub("", dress.rest if dress else text, count=1)
        match = _HTTP_LINE.match(body)
        if match is not None:
            return access.shared(_http(match, context), line, context.source, self.stamp_s)
        match = _TCP_LINE.match(body)
        if match is not None:
            return _tcp(match, context)
        if dress is None and body == text and context.envelope_at is None and not _bare_words(text):
            return Skip(kinds.NOT_THIS_FORMAT)
        return _told(body, dress, context)


def _bare_words(text: str) -> bool:
    """Whether a line without any dress is one of HAProxy's on servers."""
    return _SERVER.fullmatch(text) is not None or _NO_SERVER.fullmatch(text) is not None


def _bare(text: str) -> str:
    dress = syslog.head(text, Context())
    return _PRIORITY.sub("", dress.rest if dress else text, count=1)


def _session(match: re.Match[str], context: Context) -> _Session | Skip:
    host, _port, stamp, frontend, backend, server, took = match.groups()[:7]
    start = stamps.clf(stamp, context.local)
    if start is None:
        return Skip(kinds.NO_TIME)
    context.near = start
    retries = int(match.groups()[-1])
    return _Session(access.plain(host), start, max(0, int(took)) / 1000, frontend, name(backend), server, match.groups()[-2], retries)


def _http(match: re.Match[str], context: Context) -> Request | Skip | None:
    found = _session(match, context)
    if isinstance(found, Skip):
        return found
    ends, status = found.letters[:2], int(match[8])
    why, bad = _KILLED.get(ends[0], ""), None
    if status < 0 and ends[1] == "R":  # nothing was asked either: a browser's connection in reserve
        return None
    if status < 0:  # nothing was answered
        status = access.GONE if ends[0] in "Cc" else 0
        bad = None if status else True
    elif why or ends in _HTTP_CUT:
        bad, why = True, why or _HTTP_CUT[ends]
    return _request(found, status, bad=bad, cause=why or _http_cause(status, ends, found.server))


def _http_cause(status: int, ends: str, server: str) -> str:
    if status == access.GONE or (status and ends[0] == "C" and ends[1] in "QCH"):
        return access.LEFT
    if 0 < status < 500:
        return ""
    if server == "<NOSRV>":
        return access.NO_ENDPOINT if ends[0] in "Ss" or status == 503 else access.PROXY
    if ends[0] == "S":
        return access.NO_CONNECTION
    if ends[0] == "s":
        return access.TIMED_OUT
    if ends[0] == "R":
        return NO_RESOURCES
    return access.APPLICATION if ends[0] == "-" else access.PROXY


def _tcp(match: re.Match[str], context: Context) -> Request | Skip:
    found = _session(match, context)
    if isinstance(found, Skip):
        return found
    ends = found.letters
    why = _KILLED.get(ends[0]) or _TCP.get(ends, "")
    if why:
        return _request(found, 0, bad=True, cause=access.NO_ENDPOINT if found.server == "<NOSRV>" and ends[0] == "S" else why)
    if ends in _LEFT_WAITING:
        return _request(found, access.GONE, bad=None, cause=access.LEFT)
    return _request(found, 0, bad=False, cause=IDLE if ends in ("cD", "sD") else "")


def _request(found: _Session, status: int, *, bad: bool | None, cause: str) -> Request:
    return Request(
        start=found.start,
        took_s=found.took_s,
        status=status,
        router=found.router.removesuffix("~"),
        client=found.client,
        bad=bad,
        masked=found.retries,
        cause=cause,
        tls=found.frontend.endswith("~"),
    )


def _told(text: str, dress: syslog.Head | None, context: Context) -> Mark | None:
    """What the line says of a server; None when it is anything else that HAProxy says."""
    match, none = _SERVER.fullmatch(text), _NO_SERVER.fullmatch(text)
    at, stamp_s = (dress.at, dress.stamp_s) if dress else (context.envelope_at, 0.001)
    node = name(dress.host) if dress and dress.host else context.node
    if none is not None:
        backend = name(none[1])
        found = Mark(at, Kind.NO_SERVER, backend, f"backend {backend} has no server left", context.source, node, stamp_s)
    elif match is not None:
        server = name(f"{match[1]}/{match[2]}")
        up = match[3] == "UP"
        reason = _reason(match[4])
        what = f"server {server} is {'up' if up else 'down'}" + (f": {reason}" if reason else "")
        kind = Kind.SERVER_UP if up else Kind.SERVER_DOWN
        found = Mark(at, kind, server, what, context.source, node, stamp_s, {"reason": reason} if reason else {})
    else:
        return None
    return found if _news(found, context) else None


def _news(mark: Mark, context: Context) -> bool:
    """Whether it was not said just before: a container's log has what goes to standard error and what goes to the log."""
    told: dict[tuple[Kind, str], float | None] = context.state.setdefault("haproxy.told", {})
    if len(told) > _TOLD_MAX:
        told.clear()
    if mark.kind is Kind.SERVER_UP:
        told.pop((Kind.SERVER_DOWN, mark.object), None)
        told.pop((Kind.NO_SERVER, mark.object.partition("/")[0]), None)
    else:
        told.pop((Kind.SERVER_UP, mark.object), None)
    key = mark.kind, mark.object
    again, before = key in told, told.get(key)
    told[key] = mark.at
    return not again or (mark.at is not None and before is not None and mark.at - before > _AGAIN_S)


def _reason(text: str) -> str:
    """``Layer7 wrong status 500``, ``maintenance``."""
    if "maintenance" in text:
        return "maintenance"
    match = _REASON.search(text)
    if match is None:
        return ""
    return name(match[1] + (f" {match[2]}" if match[2] else ""))
