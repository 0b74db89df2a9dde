"""What ``kubectl drain``, ``cordon`` and ``uncordon`` print. Pure.

kubectl writes no times. They are there when the lines went through something that stamps (``kubectl drain n1 2>&1 | ts '%FT%TZ'``, a log of
containers, our own roll); else the marks have an order, and ``at`` is None. ``pod/NAME evicted`` names no namespace: it is that of the
``evicting pod`` line before it. While a budget says no, kubectl repeats both lines every 5 seconds.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Parsed, name
from edgekeeper.report.formats.told import ENVELOPE_S, EventLog, Told
from edgekeeper.report.kinds import Kind, Mark

_STAMP = re.compile(
    r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\]?:? +(.*)",
    re.ASCII | re.DOTALL,
)
_NODE = re.compile(r'node[/ ]"?([^\s"/]{1,253})"? (?:already )?(cordoned|uncordoned|drained)( \(.*\))?')
_EVICTING = re.compile(r'evicting pod "?(?:([^\s"/]{1,253})/)?([^\s"/]{1,253})"?(?: \(.*\))?')
_DONE = re.compile(r'pod[/ ]"?([^\s"/]{1,253})"? (evicted|deleted)( \(.*\))?')
_AGAIN = re.compile(r'error when evicting pods?[/ ]"([^"]{1,253})"(?: -n "([^"]{1,253})")? \(will retry after ([0-9.]{1,8}m?s)\): (.*)')
_FAILED = re.compile(r'error when (?:waiting for|evicting|deleting) pods?[/ ]"([^"]{1,253})"(?: (?:in namespace|-n) "([^"]{1,253})")?.*')
_UNABLE = re.compile(r'error: unable to drain node "([^"]{1,253})".*')
_PODS_MOST = 100_000
_DRY = "dry run"


def _kubectl(told: Told, context: Context) -> Parsed:
    own = _STAMP.match(told.words)
    if own is not None:
        at = stamps.iso(own[1], context.local)
        if at is None:
            at = stamps.bsd(own[1], context.local, until=context.until, near=context.near)
        told = told._replace(at=at, stamp_s=stamps.coarse(own[1]), words=own[2])
    elif told.at is not None and context.envelope_at is not None:
        told = told._replace(stamp_s=ENVELOPE_S)
    state: dict[str, Any] = context.state.setdefault("kubectl", {"node": "", "evicting": {}})
    words = told.words.strip()
    if (found := _NODE.fullmatch(words)) is not None:
        return None if found[3] and _DRY in found[3] else _node(told, context, state, found[1], found[2])
    if (found := _EVICTING.fullmatch(words)) is not None:
        return _evicting(told, context, state, found[1] or "", found[2])
    if (found := _DONE.fullmatch(words)) is not None:
        return None if found[3] and _DRY in found[3] else _done(told, context, state, found[1], found[2])
    if (found := _AGAIN.fullmatch(words)) is not None:
        pod, namespace, again, why = found.groups()
        return _mark(
            told, context, Kind.EVICTION_BLOCKED, _full(state, pod, namespace), f"{pod} cannot be evicted yet: {why}", again_s=_seconds(again), why=why
        )
    if (found := _FAILED.fullmatch(words)) is not None:
        return _mark(told, context, Kind.NOTE, _full(state, found[1], found[2]), words)
    if (found := _UNABLE.fullmatch(words)) is not None:
        return _mark(told, context, Kind.NOTE, found[1], words)
    return None


def _node(told: Told, context: Context, state: dict[str, Any], node: str, verb: str) -> Mark:
    if verb == "cordoned":
        state["node"] = node
        state["evicting"] = {}
    kind = {"cordoned": Kind.CORDONED, "uncordoned": Kind.UNCORDONED, "drained": Kind.DRAINED}[verb]
    return _mark(told, context, kind, node, f"{node} is {verb}", node=node)


def _evicting(told: Told, context: Context, state: dict[str, Any], namespace: str, pod: str) -> Parsed:
    under_way: dict[str, list[str]] = state["evicting"]
    spaces = under_way.get(pod, [])
    if namespace in spaces:
        return None  # tried again after a budget's no
    if len(under_way) < _PODS_MOST:
        under_way[pod] = [*spaces, namespace]
    return _mark(told, context, Kind.EVICTING, f"{namespace}/{pod}", f"{pod} is asked to go", node=state["node"])


def _done(told: Told, context: Context, state: dict[str, Any], pod: str, verb: str) -> Mark:
    """Of two pods of one name in two namespaces the first that was asked is taken to have gone first."""
    under_way: dict[str, list[str]] = state["evicting"]
    spaces = under_way.pop(pod, [])
    if len(spaces) > 1:
        under_way[pod] = spaces[1:]
    kind = Kind.EVICTED if verb == "evicted" else Kind.DELETED
    namespace = spaces[0] if spaces else ""
    return _mark(told, context, kind, f"{namespace}/{pod}", f"{pod} is {verb}", node=state["node"])


def _full(state: dict[str, Any], pod: str, namespace: str | None) -> str:
    return f"{namespace or next(iter(state['evicting'].get(pod, [])), '')}/{pod}"


def _seconds(text: str) -> float:
    try:
        return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1]) * (60 if text.endswith("m") else 1)
    except ValueError:
        return 5.0


def _mark(told: Told, context: Context, kind: Kind, about: str, what: str, **data: str | float | bool | None) -> Mark:
    """Other than of any other log, lines without a time are kept: they tell which pods, and in which order."""
    kept = {key: name(value) if isinstance(value, str) else value for key, value in data.items() if value != ""}
    return Mark(told.at, kind, name(about), name(what), context.source, "", told.stamp_s if told.at is not None else 0.0, kept)


_LEAD = rb"^(?:\[?(?:\d{4}-\d\d-\d\d[T ][0-9:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} [ \d]?\d [0-9:.]{8,18})\]?:? +)?"
KUBECTL = EventLog(
    "kubectl-drain",
    _kubectl,
    (b"cordoned", b" drained", b"evicting pod", b" evicted", b" deleted", b"error"),
    re.compile(
        _LEAD + rb'(?:node[/ ]"?[^\s"/]{1,253}"? (?:already )?(?:cordoned|uncordoned|drained)\b|evicting pod "?[^\s"]{1,500}"?$'
        rb'|pod[/ ]"?[^\s"/]{1,253}"? (?:evicted|deleted)$|error when evicting pods?[/ ]"|(?:Warning|WARNING): ignoring DaemonSet-managed Pods: )'
    ),
)
"""``kubectl drain`` of any version since 1.8, stamped or not."""
