"""BGP sessions as FRR, GoBGP and Cilium tell them. Pure.

FRR writes ``%ADJCHANGE: neighbor A(host) in vrf default Up`` and ``... Down REASON`` (FRR 8.4 to 10), with or without a reference
(``[PXVXG-TFNNT]``), with local time in its file. GoBGP 3 and 4 and Cilium name the same keys (``msg``, ``Key``, ``Reason``, ``Topic``) as
JSON or as ``key=value``, in any order; Cilium of the logrus era often without a time, so that the envelope's is taken.
"""

from __future__ import annotations

import re

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Parsed
from edgekeeper.report.formats.fields import fields_of
from edgekeeper.report.formats.told import EventLog, Told, mark, moment
from edgekeeper.report.kinds import TRUNCATED, Kind, Skip

_FRR_STAMP = re.compile(r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) (.*)", re.ASCII | re.DOTALL)
_ADJACENCY = re.compile(r"ADJCHANGE: neighbor ([^\s()]+)(?:\(([^)]{0,255})\))?(?: in vrf (\S+))? (Up|Down)\b ?(.*)")
_NOTIFICATION = re.compile(
    r"%NOTIFICATION(?:\([^)]{1,20}\))?: (sent to|received from) neighbor ([^\s()]+)(?:\([^)]{0,255}\))? (\d{1,3}/\d{1,3})(?: \(([^)]*)\))?"
)
_WITHDRAWN = re.compile(r"(?:^|\s)([^\s()]+)(?:\([^)]{0,255}\))? rcvd UPDATE about (\S+) (.{1,40}?) -- withdrawn")
_RESET = re.compile(r"soft[- ]re(?:set|configuration|fresh)", re.IGNORECASE)


def _frr(told: Told, context: Context) -> Parsed:
    own = _FRR_STAMP.match(told.words)
    if own is not None:
        at, stamp_s = moment(stamps.iso(own[1], context.local), stamps.coarse(own[1]), context)
        told = told._replace(at=at, stamp_s=stamp_s, words=own[2])
    words = told.words
    if (found := _ADJACENCY.search(words)) is not None:
        peer, host, vrf, state, reason = found.groups()
        more = {"host": host} if host and host != "Unknown" else {}
        more |= {"vrf": vrf} if vrf and vrf != "default" else {}
        if state == "Up":
            return mark(told, context, Kind.BGP_UP, peer, f"BGP session with {peer} is up", **more)
        return mark(told, context, Kind.BGP_DOWN, peer, f"BGP session with {peer} is down: {reason.strip()}", reason=reason.strip(), **more)
    if (found := _NOTIFICATION.search(words)) is not None:
        way, peer, code, reason = found.groups()
        kind = Kind.BGP_NOTIFY_SENT if way == "sent to" else Kind.BGP_NOTIFY_HEARD
        return mark(told, context, kind, peer, f"BGP notification {code} ({reason or '?'}) {way} {peer}", code=code, reason=reason or "")
    if (found := _WITHDRAWN.search(words)) is not None:
        peer, prefix, family = found.groups()
        return mark(told, context, Kind.BGP_WITHDRAWN, peer, f"{peer} has withdrawn {prefix}", prefix=prefix, family=family)
    return Skip(TRUNCATED) if "%ADJCHANGE: " in words or "%NOTIFICATION: " in words else None


def _gobgp(told: Told, context: Context) -> Parsed:
    fields = fields_of(told.words)
    if fields is None:
        return Skip(TRUNCATED) if told.words.lstrip().startswith("{") else None
    said, peer = fields.get("msg", ""), fields.get("key", "")
    stamp = fields.get("time") or fields.get("ts") or ""
    if stamp:
        at, stamp_s = moment(stamps.iso(stamp, context.local), stamps.coarse(stamp), context)
        told = told._replace(at=at, stamp_s=stamp_s)
    if not peer:
        return None
    match said.lower():
        case "peer up":
            return mark(told, context, Kind.BGP_UP, peer, f"BGP session with {peer} is up")
        case "peer down":
            reason = fields.get("reason", "")
            return mark(told, context, Kind.BGP_DOWN, peer, f"BGP session with {peer} is down: {reason or 'no reason is told'}", reason=reason)
        case "sent notification" | "received notification" as which:
            kind = Kind.BGP_NOTIFY_SENT if which.startswith("sent") else Kind.BGP_NOTIFY_HEARD
            code = f"{fields.get('code', '?')}/{fields.get('subcode', '?')}"
            return mark(told, context, kind, peer, f"{which} {code}, {peer}", code=code)
        case _ if _RESET.search(said):
            return mark(told, context, Kind.BGP_WITHDRAWN, peer, f"{said}, {peer}", why=said)
        case _:
            return None


FRR = EventLog(
    "frr",
    _frr,
    (b"ADJCHANGE", b"NOTIFICATION", b"-- withdrawn"),
    re.compile(
        rb"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? (?:[a-z]{1,20}: )?(?:BGP|ZEBRA|BFD|STATIC|OSPF|OSPF6|ISIS|MGMTD|VTYSH|WATCHFRR): "
        rb"|%ADJCHANGE: neighbor |%NOTIFICATION(?:\([^)]{1,20}\))?: (?:sent to|received from) neighbor "
        rb"|(?:^|[ \]])(?:bgpd|zebra|bfdd|staticd|watchfrr)\[\d{1,10}\]: \[[0-9A-Z]{5}-[0-9A-Z]{5}\]"
    ),
)
"""FRR's file log and its lines in a syslog; also what UniFi and others with an FRR inside write."""

GOBGP = EventLog(
    "gobgp",
    _gobgp,
    (b"Peer Up", b"Peer Down", b" notification", b"oft reset", b"oft-reset", b"oft Reset"),
    re.compile(
        rb"\b[Tt]opic\"? ?[=:] ?\"?(?:Peer|Operation|config|Config|Server|Prefix|Table|Bmp|Roa|netlink|Zebra)\b"
        rb"|\bsubsys=bgp-control-plane\b|\"subsys\":\"bgp-control-plane\"|component=gobgp\.|\"component\":\"gobgp\."
    ),
)
"""GoBGP's own log and Cilium's, as JSON or as ``key=value``."""
