"""What the dns role says of itself: status, readiness, metrics."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

from edgekeeper import __version__
from edgekeeper.dns.build import Build
from edgekeeper.dns.desired import identity_of
from edgekeeper.dns.inputs import Inputs
from edgekeeper.engines.dnsdist.view import EngineView
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus, document, readiness
from edgekeeper.ports import Clock, Journal
from edgekeeper.supervise.crew import Crew
from edgekeeper.supervise.loop import Supervisor

STALE_S = 3.0
"""Engine status older than this is not ready (report A)."""


class Reported(Protocol):
    """The parts of the role that a report reads."""

    node: str
    draining: bool
    built: Build
    clock: Clock
    journal: Journal
    alarms: Alarms
    metrics: Metrics
    crew: Crew
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

    def document(self) -> dict[str, Any]:
        """The status document."""
        now = datetime.fromtimestamp(self._role.clock.wall(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return document(self._role.node, __version__, now, {"dns": self.status()})

    def ready(self) -> tuple[bool, str]:
        """Whether traffic may be sent here, and why."""
        return readiness({"dns": self.status()})

    def status(self) -> RoleStatus:
        """The role's verdict with its details."""
        role, view = self._role, self._view
        ready = self._readiness()
        alarms = dict(role.alarms.raised)
        serving = role.crew.serving
        state = role.supervisor.state
        words = ready.why
        if ready.ok and state.refused is not None:
            words += f"; a change is refused, what ran before still runs: {state.refused.why}"
        if ready.ok and alarms:
            name, why = next(iter(alarms.items()))
            words += f"; {len(alarms)} alarm(s), {name}: {why}"
        verdict = Verdict(Health.OK if ready.ok else Health.BAD, words)
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
            "pid": serving.process.pid if serving else None,
            "version": role.built.features.text,
            "since": serving.since if serving else None,
            "generation": serving.generation if serving else None,
            "digest": state.live,
            "renderer": role.built.engine.renderer,
            "running": state.running,
            "status_age_s": round(role.clock.monotonic() - self._looked, 1) if view is not None else None,
        }
        details = {
            "engine": engine,
            "backends": backends,
            "members": {"why": inputs.why_members, "read_at": inputs.read_at, "count": len(inputs.members)},
            "zones": dict(inputs.zones),
            "certificate": inputs.certificate.digest[:16] if inputs.certificate else None,
            "last_change": role.supervisor.last_change,
            "last_decision": role.supervisor.why,
            "refused": state.refused.why if state.refused else None,
            "adopted": role.supervisor.adopted,
            "alarms": alarms,
        }
        return RoleStatus(verdict, ready, details)

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
        if role.inputs.read_at is not None:
            metrics.set("edgekeeper_dns_membership_age_seconds", max(0.0, role.clock.wall() - role.inputs.read_at))
        metrics.set("edgekeeper_journal_lost", getattr(role.journal, "lost_total", 0))
