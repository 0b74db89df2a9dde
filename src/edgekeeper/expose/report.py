"""What the expose role says of itself: its verdict, the hosts that are not as they should be, metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgekeeper.expose.parts import Parts
from edgekeeper.expose.prover import Prover
from edgekeeper.expose.seen import Seen
from edgekeeper.expose.sync import numbers
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus
from edgekeeper.ports import Clock

HOSTS_MOST = 200
"""More hosts that are not well are told as a number: a status is read every few seconds."""


def status(seen: Seen, parts: Parts | None, prover: Prover | None, alarms: Mapping[str, str], clock: Clock) -> RoleStatus:
    """The role's verdict with its details. Ready is whether it is at work; one that waits for the Lease is."""
    states = seen.last.states() if seen.last is not None else {}
    proofs = prover.results if prover is not None else {}
    odd = {host: {"state": word, "why": why} for host, (word, why) in states.items() if word != "active"}
    for host, proof in proofs.items():
        if not proof.ok and host not in odd:
            odd[host] = {"state": "unproved", "why": proof.why}
    details: dict[str, Any] = {
        "alarms": dict(alarms),
        "leads": seen.leads,
        "lease": seen.lease,
        "pass": dict(numbers(seen.last)) if seen.last is not None else None,
        "pass_age_s": round(clock.wall() - seen.at, 1) if seen.at is not None else None,
        "refused": seen.last.plan.refused if seen.last is not None else None,
        "hosts": dict(sorted(odd.items())[:HOSTS_MOST]),
        "hosts_not_shown": max(0, len(odd) - HOSTS_MOST),
        "proved": sum(1 for proof in proofs.values() if proof.ok),
        "calls": seen.calls,
        "untold": seen.untold or None,
        "sources": _sources(parts) if parts is not None else None,
    }
    if parts is None and not alarms:
        return RoleStatus(Verdict(Health.UNKNOWN, "it is being started"), Verdict(Health.UNKNOWN, "it is being started"), details)
    if alarms:
        verdict = Verdict(Health.BAD, "; ".join(f"{name}: {why}" for name, why in alarms.items()))
    elif seen.last is None:
        verdict = Verdict(Health.OK, f"waits for the Lease: {seen.lease}") if not seen.leads else Verdict(Health.UNKNOWN, "no pass yet")
    else:
        verdict = Verdict(Health.OK, seen.last.sentence())
    ready = Verdict(Health.OK, "at work") if parts is not None else Verdict(Health.BAD, verdict.why)
    return RoleStatus(verdict, ready, details)


def _sources(parts: Parts) -> dict[str, Any]:
    """How old the view of the sources is, and why it is not full; what is too old takes nothing away."""
    view = parts.source.snapshot()
    return {"full": view.whole, "age_s": round(view.stale_s, 1), "why": view.why}


def measure(seen: Seen, prover: Prover | None, alarms: Mapping[str, str], metrics: Metrics) -> None:
    """The gauges of the role."""
    metrics.set("edgekeeper_expose_leads", float(seen.leads))
    metrics.set("edgekeeper_expose_alarms", len(alarms))
    if seen.last is not None and seen.at is not None:
        metrics.set("edgekeeper_expose_wanted", seen.last.plan.wanted)
        metrics.set("edgekeeper_expose_managed", seen.last.plan.own)
        metrics.set("edgekeeper_expose_held", len(seen.last.plan.held))
        metrics.set("edgekeeper_expose_drift", len(seen.last.failed))
        metrics.set("edgekeeper_expose_last_success_timestamp_seconds", seen.at)
    if prover is not None:
        metrics.set("edgekeeper_expose_unproved", sum(1 for proof in prover.results.values() if not proof.ok))
