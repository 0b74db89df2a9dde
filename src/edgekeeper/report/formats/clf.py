"""The common and combined log formats, and what Traefik and ingress-nginx put behind them. Pure.

``host - user [02/Jan/2006:15:04:05 -0700] "GET / HTTP/1.1" 200 512 "referer" "agent"``, then

- Traefik: ``count "router" "server" 12ms``. The stamp is the begin of the request. The status was that of the server until v2.10.5: a
  failure of the proxy itself was logged as ``-``. Quotes in referer and agent are escaped since v3.6.18 only: before, a client can
  write fields of its own there. So the line is read from both ends: the head up to the status, which comes before anything that a
  client wrote freely, and the tail from the right, where router and server come after it.
- ingress-nginx: ``length time [service] [alternative] address length time status id``; the stamp is the end of the request. Where
  several servers were asked in turn, their addresses and statuses are lists: failures that the client never saw.
- nothing: nginx, Apache, Traefik's ``genericCLF``: no route is told.

A stamp is in whole seconds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from edgekeeper.report import kinds
from edgekeeper.report.formats import access, stamps
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.base import text as as_text
from edgekeeper.report.formats.traefik import cause as traefik_cause
from edgekeeper.report.formats.traefik import router_of
from edgekeeper.report.kinds import Request, Skip

_HOST = r'([^\s"\[\],]{1,256}(?:, ?[^\s"\[\],]{1,256}){0,16})'  # Traefik writes the X-Forwarded-For string, which may be a list
_HEAD = re.compile(
    rf'{_HOST} \S{{1,64}} [^"]{{0,512}}?\[(\d\d/[A-Z][a-z]{{2}}/\d{{4}}:\d\d:\d\d:\d\d [+-]\d{{4}})\] '
    r'".*?" (-|\d{3}) (?:-|\d{1,18})(?= |$)',
    re.ASCII,
)
_COUNT = re.compile(r" (\d{1,18}) $", re.ASCII)
_TOOK = re.compile(r" (\d{1,15})ms *$", re.ASCII)


class Head(NamedTuple):
    """What every dress has in common. ``at`` is None when the stamp is no time, ``status`` None for ``-``; ``rest`` begins with a space."""

    client: str
    at: float | None
    status: int | None
    rest: str


class _Tail(NamedTuple):
    number: int
    router: str
    server: str
    took_s: float


def head(line: bytes) -> Head | None:
    """The fields up to the status, and what follows the size; None when the line does not begin so."""
    text = as_text(line)
    match = _HEAD.match(text)
    if match is None:
        return None
    host, stamp, status = match.groups()
    return Head(access.plain(host), stamps.clf(stamp), access.status_of(status), text[match.end() :])


class TraefikClf:
    """Traefik's own dress: count, router, server and duration behind the agent."""

    name = "traefik-clf"
    stamp_s = 1.0
    ends = False

    def likes(self, line: bytes) -> bool:
        """A line of the common format with Traefik's tail."""
        found = head(line)
        return found is not None and _tail(found.rest) is not None

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The request that the line tells of."""
        found = head(line)
        tail = None if found is None else _tail(found.rest)
        if found is None or tail is None:
            return None if access.own_words(line) else Skip(kinds.NOT_THIS_FORMAT)
        if found.at is None:
            return Skip(kinds.NO_TIME)
        if found.status is None:
            return Skip(kinds.ORIGIN_STATUS)
        router = router_of(tail.router)
        why = traefik_cause(found.status, router, chosen=tail.server not in ("", "-"))
        made = Request(found.at, tail.took_s, found.status, router=router, client=found.client, number=tail.number, cause=why)
        return access.shared(made, line, context.source, self.stamp_s)


class Combined:
    """The dress without a route: nginx, Apache, Traefik's ``genericCLF``; fields of one's own behind the agent are passed over.

    nginx stamps the end of a request, the others its begin, and none says how long it took.
    """

    name = "combined"
    stamp_s = 1.0
    ends = True

    def likes(self, line: bytes) -> bool:
        """A line of the common format with no tail that tells more."""
        found = head(line)
        return found is not None and found.status is not None and _tail(found.rest) is None and not _INGRESS.match(found.rest)

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The request that the line tells of."""
        found = head(line)
        if found is None:
            return None if access.own_words(line) else Skip(kinds.NOT_THIS_FORMAT)
        if found.at is None:
            return Skip(kinds.NO_TIME)
        if found.status is None:
            return Skip(kinds.ORIGIN_STATUS)
        made = Request(found.at, 0.0, found.status, client=found.client, cause=access.LEFT if found.status == access.GONE else "")
        return access.shared(made, line, context.source, self.stamp_s)


_INGRESS = re.compile(r' "[^"]*" "[^"]*" \d{1,12} (\d{1,9}\.\d{3}) \[([^\]\s"]*)\] \[[^\]\s"]*\] ([^"]*)$', re.ASCII)
_BETWEEN = re.compile(r", | : ")
_INGRESS_WORDS = 5


class IngressNginx:
    """The format of ingress-nginx (``upstreaminfo``): request time, service, and the servers that were asked in turn."""

    name = "ingress-nginx"
    stamp_s = 1.0
    ends = True

    def likes(self, line: bytes) -> bool:
        """A line of the common format with that tail."""
        found = head(line)
        return found is not None and _INGRESS.match(found.rest) is not None

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The request that the line tells of."""
        found = head(line)
        match = None if found is None else _INGRESS.match(found.rest)
        if found is None or match is None:
            return None if access.own_words(line) else Skip(kinds.NOT_THIS_FORMAT)
        if found.at is None:
            return Skip(kinds.NO_TIME)
        took, service, upstream = match.groups()
        words = _BETWEEN.sub(",", upstream).split(" ")
        if found.status is None or len(words) != _INGRESS_WORDS:
            return Skip(kinds.WRONG_TYPE)
        servers, statuses = words[0].split(","), words[3].split(",")
        made = Request(
            found.at - float(took),
            float(took),
            found.status,
            router="" if service == "-" else name(service),
            client=found.client,
            masked=sum(map(_failed, statuses[:-1])),
            cause=_ingress_cause(found.status, statuses[-1], asked=servers != ["-"]),
        )
        return access.shared(made, line, context.source, self.stamp_s)


def _tail(rest: str) -> _Tail | None:
    """Traefik's fields, found from the right."""
    parts = rest.rsplit('"', 4)
    if len(parts) != 5 or parts[2] != " ":
        return None
    count, took = _COUNT.search(parts[0][-21:]), _TOOK.match(parts[4])
    if count is None or took is None:
        return None
    return _Tail(int(count[1]), parts[1], parts[3], int(took[1]) / 1000)


def _failed(status: str) -> bool:
    """An attempt that nginx went on from: a server error, or none at all."""
    return status == "-" or (status.isascii() and status.isdigit() and int(status) >= 500)


def _ingress_cause(status: int, last: str, *, asked: bool) -> str:
    """nginx writes 502 and 504 as the server's status also where there was no answer, so those two cannot be told from the application's own."""
    if status == access.GONE:
        return access.LEFT
    if status < 500:
        return ""
    if not asked:
        return access.NO_ENDPOINT if status == 503 else access.PROXY
    if status in (502, 504):
        return access.NO_CONNECTION if status == 502 else access.TIMED_OUT
    return access.APPLICATION if last == str(status) else access.PROXY
