"""Kubernetes Events: one JSON object a line, or what ``kubectl get events -A -o json`` (also with ``--watch``) prints. Pure.

Old Events have whole seconds (``lastTimestamp``), new ones microseconds (``eventTime``, ``series``). An Event that happened several times
tells only its first and its last time. Events vanish after an hour by default, so they have to be collected while it happens.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Item, Parsed, name
from edgekeeper.report.formats.kubeobjects import objects
from edgekeeper.report.kinds import MISSING_FIELD, NO_TIME, TRUNCATED, Kind, Mark, Skip

_LIKES = re.compile(
    rb'^\s*\{(?=.*"(?:involvedObject|regarding)": ?\{).*"(?:reason|message|note)": ?"'  # one object a line
    rb'|^\s+"(?:involvedObject|regarding)": \{\s*$|^\s+"(?:reportingComponent|reportingController|firstTimestamp|lastTimestamp|eventTime)": (?:"|null)',
    re.DOTALL,
)
_FROM = re.compile(r"\bfrom (\S+?)(?: to (\S+?))?[.,;]?(?:\s|$)")
_PLACED = re.compile(r" to ([^\s/]{1,253})$")
_NODE_STATE = {"NodeNotReady": "NotReady", "NodeReady": "Ready", "NodeNotSchedulable": "NotSchedulable", "NodeSchedulable": "Schedulable"}
_DATABASE = {"SwitchingOver": Kind.DB_SWITCHOVER, "FailingOver": Kind.DB_FAILOVER, "FailoverTarget": Kind.DB_FAILOVER, "SwitchoverTarget": Kind.DB_SWITCHOVER}
_SEEN_MOST = 100_000
_MESSAGE_MOST = 200


class KubeEvents:
    """``k8s-events``: Events of either API (v1 and events.k8s.io/v1), items of lists, and those that a watch wraps."""

    name = "k8s-events"

    def parse(self, line: bytes, context: Context) -> Parsed:
        """The marks of the Events that this line completes."""
        found, lost = objects(line, context, self.name)
        seen: set[tuple[str, str, float]] = context.state.setdefault("k8s-events seen", set())
        out: list[Item] = [Skip(TRUNCATED)] * lost
        for change, one in found:
            if change != "DELETED":  # it is not the happening that was taken back, but the record
                out.extend(_of(one, context, seen))
        return out or None

    def likes(self, line: bytes) -> bool:
        """Whether the line is an Event, or a line of one that is printed over many."""
        return _LIKES.search(line) is not None


def _of(one: dict[str, Any], context: Context, seen: set[tuple[str, str, float]]) -> list[Item]:
    about = one.get("involvedObject") or one.get("regarding")
    if not isinstance(about, dict):
        return [Skip(MISSING_FIELD)] if one.get("kind") == "Event" else []
    times = _times(one, context)
    if not times:
        return [Skip(NO_TIME)]
    meta = one.get("metadata")
    ident = _word(meta, "uid") or f"{_word(meta, 'namespace')}/{_word(meta, 'name')}" if isinstance(meta, dict) else ""
    out: list[Item] = []
    for at, stamp_s in times:
        key = (ident, _word(one, "reason"), at)
        if key in seen:
            continue  # a watch tells an Event again each time that it changes
        if len(seen) < _SEEN_MOST:
            seen.add(key)
        found = _mark(one, about, at, stamp_s, context)
        if found is not None:
            out.append(found)
    return out


def _times(one: dict[str, Any], context: Context) -> list[tuple[float, float]]:
    """First and last time, each with how coarse it is."""
    series = one.get("series")
    last_seen = _word(series, "lastObservedTime") if isinstance(series, dict) else ""
    first = _first(one, "eventTime", "firstTimestamp", "deprecatedFirstTimestamp", "lastTimestamp", "deprecatedLastTimestamp")
    last = last_seen or _first(one, "lastTimestamp", "deprecatedLastTimestamp") or first
    if not first and not last:
        meta = one.get("metadata")
        first = last = _word(meta, "creationTimestamp") if isinstance(meta, dict) else ""
    stamped = {at: stamps.coarse(stamp) for stamp in (first, last) if (at := stamps.iso(stamp, context.local)) is not None}
    return sorted(stamped.items())


def _first(one: dict[str, Any], *keys: str) -> str:
    return next((word for key in keys if (word := _word(one, key))), "")


def _word(one: Any, key: str) -> str:
    value = one.get(key) if isinstance(one, dict) else None
    return value if isinstance(value, str) else ""


def _mark(one: dict[str, Any], about: dict[str, Any], at: float, stamp_s: float, context: Context) -> Mark | None:
    kind, reason = _word(about, "kind"), _word(one, "reason")
    message = (_word(one, "message") or _word(one, "note"))[:2000]
    source = one.get("source")
    node = _word(source, "host") or _word(one, "reportingInstance" if _word(one, "reportingComponent") == "kubelet" else "")
    whole = f"{_word(about, 'namespace')}/{_word(about, 'name')}"
    data: dict[str, str | float | bool | None] = {"reason": name(reason), "message": name(message), "count": _count(one)}
    said = f"{reason}: {message[:_MESSAGE_MOST]}"
    if kind == "Pod":
        placed = _PLACED.search(message) if reason == "Scheduled" else None
        node = placed[1] if placed else node
        return Mark(at, Kind.POD, name(whole), name(said), context.source, name(node), stamp_s, data)
    if kind == "Node":
        node = _word(about, "name")
        data["state"] = name(_NODE_STATE.get(reason, reason))
        return Mark(at, Kind.NODE_STATE, name(node), name(f"{node}: {said}"), context.source, name(node), stamp_s, data)
    if kind == "Cluster" and reason in _DATABASE:
        found = _FROM.search(message)
        data |= {"from": name(found[1]) if found else None, "to": name(found[2]) if found and found[2] else None}
        return Mark(at, _DATABASE[reason], name(whole), name(said), context.source, "", stamp_s, data)
    if _word(one, "type") == "Warning":
        return Mark(at, Kind.NOTE, name(f"{kind} {whole}"), name(said), context.source, name(node), stamp_s, data)
    return None


def _count(one: dict[str, Any]) -> float | None:
    series = one.get("series")
    value = series.get("count") if isinstance(series, dict) else one.get("count")
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9 else None


K8S_EVENTS = KubeEvents()
