"""What CloudNativePG's operator and its instances write when a primary moves. Pure.

Both write JSON lines with ``ts`` and ``msg``. The operator says that it wants another primary and why; the instance that becomes it says
when it is (``Finished setting myself as primary``), which ends the time that writers have to wait.
"""

from __future__ import annotations

import re
from typing import Any

from edgekeeper.report.formats import stamps
from edgekeeper.report.formats.base import Context, Parsed
from edgekeeper.report.formats.fields import json_object
from edgekeeper.report.formats.told import EventLog, Told, mark, moment
from edgekeeper.report.kinds import NO_TIME, TRUNCATED, Kind, Skip

_SWITCHOVER = re.compile(r"triggering a switchover|^Switching over|will try switching over", re.IGNORECASE)
_FAILOVER = re.compile(r"^Failing over|initiating a failover", re.IGNORECASE)
_PROMOTED = re.compile(r"^Finished setting myself as primary")
_ORDINAL = re.compile(r"-\d{1,9}$")


def _cnpg(told: Told, context: Context) -> Parsed:
    begin = told.words.find("{")
    one = json_object(told.words[begin:]) if begin >= 0 else None
    if one is None:
        return Skip(TRUNCATED) if begin >= 0 else None
    said = one.get("msg")
    if not isinstance(said, str):
        return None
    kind = next((k for k, p in ((Kind.DB_PROMOTED, _PROMOTED), (Kind.DB_SWITCHOVER, _SWITCHOVER), (Kind.DB_FAILOVER, _FAILOVER)) if p.search(said)), None)
    if kind is None:
        return None
    stamp = one.get("ts")
    own = stamps.iso(stamp, context.local) if isinstance(stamp, str) else float(stamp) if isinstance(stamp, int | float) and 0 < stamp < 1e10 else None
    at, stamp_s = moment(own, stamps.coarse(stamp) if isinstance(stamp, str) else 0.001, context)
    if at is None:
        return Skip(NO_TIME)
    told = told._replace(at=at, stamp_s=stamp_s)
    before, after = _word(one, "currentPrimary", "primary"), _word(one, "targetPrimary", "newPrimary", "logging_pod")
    about = f"{_word(one, 'namespace')}/{_cluster(one, after or before)}"
    data = {key: value for key, value in (("from", before), ("to", after)) if value}
    return mark(told, context, kind, about, said, **data)


def _cluster(one: dict[str, Any], instance: str) -> str:
    """An instance is named after its cluster, with a number behind."""
    named = one.get("cluster")
    return _word(one, "name") or (named if isinstance(named, str) else _ORDINAL.sub("", instance))


def _word(one: dict[str, Any], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := one.get(key), str) and value), "")


CNPG = EventLog(
    "cnpg",
    _cnpg,
    (b"witchover", b"witching over", b"ailing over", b"ailover", b"as primary"),
    re.compile(
        rb'^\s*\{(?=.*"msg": ?")(?=.*"ts": ?).*(?:"controllerKind": ?"Cluster"|"logging_pod": ?"|"(?:currentPrimary|targetPrimary|newPrimary)": ?"|"primary": ?")',
        re.DOTALL,
    ),
)
"""The log of the operator, and of an instance (from the pod's standard output)."""
