"""What the lb role says of itself: status, readiness, metrics."""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from edgekeeper.engines.haproxy.look import Picture
from edgekeeper.engines.haproxy.topology import Frontage, server_name
from edgekeeper.lb import desired
from edgekeeper.lb.build import Build
from edgekeeper.lb.inputs import Inputs
from edgekeeper.lb.sweep import Sweeper
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus
from edgekeeper.ports import Clock
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.standing import details, standing, verdict

STALE_S = 3.0
"""A picture older than this is not ready."""


class Reported(Protocol):
    """The parts of the role that a report reads."""

    built: Build
    clock: Clock
    alarms: Alarms
    metrics: Metrics
    supervisor: Supervisor
    inputs: Inputs
    sweeper: Sweeper | None
    canary: Verdict


class Report:
    """Reads the role; changes nothing but metrics."""

    def __init__(self, role: Reported) -> None:
        self._role = role
        self.picture: Picture | None = None
        self._looked = 0.0
        self._ended: deque[float] = deque(maxlen=4096)

    def cut(self, now: float) -> None:
        """HAProxy ended a connection because its server went DOWN."""
        self._ended.append(now)

    def looked(self, picture: Picture | None, now: float) -> None:
        """HAProxy's own view, read just now."""
        self.picture, self._looked = picture, now

    def status(self) -> RoleStatus:
        """The role's verdict with its details."""
        role, picture = self._role, self.picture
        ready = self._readiness()
        alarms, now = role.alarms.raised, standing(role.supervisor)
        workers = picture.workers if picture is not None else ()
        engine = {
            "version": role.built.features.text,
            "status_age_s": round(role.clock.monotonic() - self._looked, 1) if picture is not None else None,
            "workers": [{"pid": w.pid, "current": w.current, "reloads": w.reloads} for w in workers],
        }
        running = role.supervisor.actor.running_intent()
        services: tuple[Frontage, ...] = running.services if running is not None else ()
        own = {
            "services": [self._service(service) for service in services],
            "self_test": {"verdict": str(role.canary.health), "why": role.canary.why},
            "cuts_per_minute": self._cuts(),
        }
        return RoleStatus(verdict(now, ready, alarms), ready, {**details(now, alarms, engine), **own})

    def _cuts(self) -> int:
        """Connections that HAProxy or the sweep ended in the last minute because their server was dead."""
        now = self._role.clock.monotonic()
        swept = self._role.sweeper.cuts_per_minute if self._role.sweeper is not None else 0
        return swept + sum(1 for at in self._ended if now - at <= 60)

    def _service(self, service: Frontage) -> dict[str, Any]:
        follower = self._role.inputs.followers.get(service.name)
        known = self._role.inputs.patiences.known.get(service.name)
        sums = desired.detection(service)
        labels = {server_name(member): member.label for member in follower.members} if follower is not None else {}
        return {
            "name": service.name,
            "listen": [bind.address for bind in service.binds],
            "members": {"why": follower.why, "read_at": follower.read_at, "count": len(follower.members)} if follower is not None else None,
            "detection_s": {"min": sums[0], "max": sums[1]} if sums is not None else None,
            "check_timeout_s": service.check.timeout_s,
            "check_timeout_why": known.why if known is not None else None,
            "servers": [self._server(service, server.name, server.address, labels.get(server.name, server.name)) for server in service.servers],
        }

    def _server(self, service: Frontage, name: str, address: str, label: str) -> dict[str, Any]:
        rows = [self.picture.stats.server(backend, name) if self.picture is not None else None for backend in service.backends]
        strict = rows[0]
        return {
            "name": label,
            "address": address,
            "state": strict.status if strict is not None else "absent",
            "check": strict.check if strict is not None else "",
            "since_s": strict.lastchg if strict is not None else None,
            "sessions": sum(row.scur for row in rows if row is not None),
            "weight": strict.weight if strict is not None else None,
        }

    def _readiness(self) -> Verdict:
        role, picture = self._role, self.picture
        if not role.supervisor.state.running:
            return Verdict(Health.BAD, f"HAProxy is not running: {role.supervisor.why}")
        age = role.clock.monotonic() - self._looked
        if picture is None or age > STALE_S:
            return Verdict(Health.BAD, "HAProxy has not answered its status yet" if picture is None else f"HAProxy's status is {age:.1f} s old")
        return desired.readiness(picture.stats, role.supervisor.actor.running_intent())

    def measure(self) -> None:
        """Set the gauges."""
        role, picture, metrics = self._role, self.picture, self._role.metrics
        fresh = picture is not None and role.supervisor.state.running and role.clock.monotonic() - self._looked <= STALE_S
        metrics.set("edgekeeper_lb_engine_up", 1.0 if fresh else 0.0)
        servers = picture.stats.servers if picture is not None and fresh else ()
        metrics.replace("edgekeeper_lb_server_up", "server", {s.name: 0.0 if s.down else 1.0 for s in servers})
        metrics.replace("edgekeeper_lb_server_sessions", "server", {s.name: float(s.scur) for s in servers})
        metrics.replace("edgekeeper_lb_server_down_seconds", "server", {s.name: float(s.lastchg or 0) for s in servers if s.down})
        metrics.set("edgekeeper_lb_old_workers", len(picture.old) if picture is not None and fresh else 0)
        metrics.set("edgekeeper_lb_cuts_per_minute", self._cuts())
        metrics.set("edgekeeper_lb_alarms", len(role.alarms.raised))
