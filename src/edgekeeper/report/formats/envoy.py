"""Envoy's access log in its default format, and in the one that Istio sets. Pure.

``[START] "METHOD PATH PROTOCOL" CODE FLAGS [DETAILS TERMINATION "REASON"] RX TX DURATION UPSTREAM "XFF" "AGENT" "ID" "AUTHORITY" "SERVER"``,
behind which Istio has more. The stamp is the begin, in milliseconds of UTC; the duration is in milliseconds. The flags say what Envoy
did itself. What a client writes freely (path, agent) is not escaped, so that authority and server are read from the right.
"""

from __future__ import annotations

import re

from edgekeeper.report import kinds
from edgekeeper.report.formats import access, stamps
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.base import text as as_text
from edgekeeper.report.kinds import Request, Skip

_HEAD = re.compile(
    r'\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}Z)\] ".*?" (\d{1,3}) (-|[A-Za-z]{2,12}(?:,[A-Za-z]{2,12}){0,16})'
    r'(?: \S+ \S+ ".*?")? (?:\d+|-) (?:\d+|-) (\d{1,15}|-) (?:\d+|-) "(.*?)" ',
    re.ASCII,
)
_REST = re.compile(r"(?: \S+){0,8}", re.ASCII)

_CAUSES = (
    ("UH", access.NO_ENDPOINT),
    ("NC", access.NO_ENDPOINT),
    ("NR", access.NO_ROUTE),
    ("UT", access.TIMED_OUT),
    ("SI", access.TIMED_OUT),
    ("DT", access.TIMED_OUT),
    ("UF", access.NO_CONNECTION),
    ("UC", access.NO_CONNECTION),
    ("UR", access.NO_CONNECTION),
    ("LR", access.NO_CONNECTION),
    ("UPE", access.NO_CONNECTION),
    ("URX", access.NO_CONNECTION),
    ("UO", access.PROXY),
    ("RL", access.PROXY),
    ("OM", access.PROXY),
    ("LH", access.PROXY),
)
"""Flags and what they mean, the most telling first."""
_LEFT = ("DC", "DR")


class Envoy:
    """See the module. The router is the authority that was asked for."""

    name = "envoy"
    stamp_s = 0.001
    ends = False

    def likes(self, line: bytes) -> bool:
        """A whole line of either format."""
        text = as_text(line)
        match = _HEAD.match(text)
        return match is not None and _authority(text[match.end() - 1 :]) is not None

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The request (or TCP session) that the line tells of."""
        text = as_text(line)
        match = _HEAD.match(text)
        authority = None if match is None else _authority(text[match.end() - 1 :])
        if match is None or authority is None:
            return None if access.own_words(line) else Skip(kinds.NOT_THIS_FORMAT)
        stamp, code, flags, took, forwarded = match.groups()
        start = stamps.iso(stamp)
        if start is None:
            return Skip(kinds.NO_TIME)
        words, status = flags.split(","), int(code)
        left = any(word in _LEFT for word in words)
        cause = _cause(status, words, left=left)
        bad = None
        if status == 0 and left:
            status = access.GONE
        elif status == 0:  # a TCP session, or nothing was answered
            bad = bool(cause)
        made = Request(
            start=start,
            took_s=0.0 if took == "-" else int(took) / 1000,
            status=status,
            router="" if authority == "-" else name(authority),
            client=access.plain(forwarded.rpartition(",")[2].strip()),
            bad=bad,
            cause=cause,
        )
        return access.shared(made, line, context.source, self.stamp_s)


def _authority(rest: str) -> str | None:
    """The last but one of the quoted fields; what Istio has behind them is not quoted."""
    parts = rest.rsplit('"', 4)
    return parts[1] if len(parts) == 5 and parts[2] == " " and _REST.fullmatch(parts[4]) else None


def _cause(status: int, flags: list[str], *, left: bool) -> str:
    if left:
        return access.LEFT
    known = next((why for flag, why in _CAUSES if flag in flags), "")
    if known:
        return known if status == 0 or status >= 400 else ""
    return access.APPLICATION if status >= 500 else ""
