"""What the dns role says of itself: status, readiness, metrics."""

from __future__ import annotations

from typing import Protocol

from edgekeeper.dns.build import Build
from edgekeeper.dns.desired import identity_of
from edgekeeper.dns.inputs import Inputs
from edgekeeper.engines.dnsdist.view import EngineView
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus
from edgekeeper.ports import Clock
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.standing import details, standing, verdict

STALE_S = 3.0
"""Engine status older than this is not ready (report A)."""


class Reported(Protocol):
    """The parts of the role that a report reads."""

    draining: bool
    built: Build
    clock: Clock
    alarms: Alarms
    metrics: Metrics
    supervisor: Supervisor
    inputs: Inputs


class Report:
    """Reads the role; changes nothing but metrics."""

    def __init__(self, role: Reported) -> None:
        self._role = role
        self._view: EngineView | None = None
        self._looked = 0.0

    def looked(self, view: EngineView, now: float) -> None:
        """The engine's own view, read just now."""
        self._view, self._looked = view, now

    def status(self) -> RoleStatus:
        """The role's verdict with its details."""
        role, view = self._role, self._view
        ready = self._readiness()
        alarms, now = role.alarms.raised, standing(role.supervisor)
        held = {s.address: s for s in view.servers} if view is not None else {}
        inputs = role.inputs
        backends = [
            {
                "name": m.label,
                "address": m.address,
                "state": held[m.address].state if m.address in held else "absent",
                "drained": m.label in inputs.drained.names or m.address in inputs.drained.names,
                "resting": m.address in inputs.heard.resting,
                "identity": inputs.judgement.identity.get(m.address) or identity_of(m, inputs.seen.get(m.address)),
                "answers": getattr(inputs.seen.get(m.address), "rcode", None),
                "queries": held[m.address].queries if m.address in held else 0,
            }
            for m in inputs.members
        ]
        engine = {
            "version": role.built.features.text,
            "renderer": role.built.engine.renderer,
            "status_age_s": round(role.clock.monotonic() - self._looked, 1) if view is not None else None,
        }
        own = {
            "backends": backends,
            "members": {"why": inputs.follower.why, "read_at": inputs.follower.read_at, "count": len(inputs.members)},
            "zones": dict(inputs.zones),
            "certificate": inputs.certificate.digest[:16] if inputs.certificate else None,
        }
        return RoleStatus(verdict(now, ready, alarms), ready, {**details(now, alarms, engine), **own})

    def _readiness(self) -> Verdict:
        role, view = self._role, self._view
        if role.draining:
            return Verdict(Health.BAD, "draining before a restart")
        if not role.supervisor.state.running:
            return Verdict(Health.BAD, f"dnsdist is not running: {role.supervisor.why}")
        age = role.clock.monotonic() - self._looked
        if view is None or age > STALE_S:
            return Verdict(Health.BAD, "dnsdist has not answered its status yet" if view is None else f"dnsdist's status is {age:.1f} s old")
        up = sum(1 for s in view.servers if s.up)
        words = f"{up} of {len(view.servers)} backends up"
        return Verdict(Health.OK if up else Health.BAD, words)

    def measure(self) -> None:
        """Set the gauges."""
        role, view = self._role, self._view
        metrics = role.metrics
        fresh = view is not None and role.supervisor.state.running and role.clock.monotonic() - self._looked <= STALE_S
        metrics.set("edgekeeper_dns_engine_up", 1.0 if fresh else 0.0)
        servers = view.servers if view is not None and fresh else ()
        metrics.replace("edgekeeper_dns_backend_up", "backend", {s.name: 1.0 if s.up else 0.0 for s in servers})
        metrics.set("edgekeeper_dns_backends", len(servers))
        metrics.set("edgekeeper_dns_alarms", len(role.alarms.raised))
        read_at = role.inputs.follower.read_at
        if read_at is not None:
            metrics.set("edgekeeper_dns_membership_age_seconds", max(0.0, role.clock.wall() - read_at))
