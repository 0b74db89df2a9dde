"""What the vip role says of itself: status, readiness, metrics."""

from __future__ import annotations

from typing import Any, Protocol

from edgekeeper.model.verdict import Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.status import RoleStatus
from edgekeeper.ports import Clock
from edgekeeper.supervise.loop import Supervisor
from edgekeeper.supervise.standing import details, standing, verdict
from edgekeeper.vip import desired
from edgekeeper.vip.book import Page
from edgekeeper.vip.build import Build
from edgekeeper.vip.scene import Scene


class Reported(Protocol):
    """The parts of the role that a report reads."""

    built: Build
    clock: Clock
    alarms: Alarms
    metrics: Metrics
    supervisor: Supervisor
    scene: Scene


class Report:
    """Reads the role; changes nothing but metrics."""

    def __init__(self, role: Reported) -> None:
        self._role = role

    def status(self) -> RoleStatus:
        """The role's verdict with its details."""
        role = self._role
        ready, alarms, now = self._readiness(), role.alarms.raised, standing(role.supervisor)
        own = {"vips": [self._vip(page) for page in role.scene.book.pages.values()], "peers": self._peers()}
        return RoleStatus(verdict(now, ready, alarms), ready, {**details(now, alarms, {"version": role.built.features.text}), **own})

    def _vip(self, page: Page) -> dict[str, Any]:
        scene, name, instance = self._role.scene, page.instance.name, page.instance
        patient = scene.prober.patients.get(name)
        asked = patient is not None and patient.target is not None
        return {
            "name": name,
            "address": instance.address,
            "vrid": instance.vrid,
            "interface": instance.interface,
            "state": page.state,
            "priority": page.told_priority or instance.priority,
            "configured_priority": instance.priority,
            "since": page.told_since,
            "held": page.held,
            "shadow": page.covered_at is not None,
            "health": patient.sample.kind if patient is not None and asked else "good",
            "why": patient.why if patient is not None and asked else "nothing is asked of its service",
            "usable": patient.sample.usable if patient is not None else None,
            "weight": scene.weights.read(name),
            "drained": name in scene.drained.names,
            "can_take": scene.can_take(page),
        }

    def _peers(self) -> list[dict[str, Any]]:
        now = self._role.clock.monotonic()
        return [
            {"name": view.name, "answered_s": round(now - view.answered, 1) if view.answered is not None else None, "why": view.why}
            for view in self._role.scene.peers.views.values()
        ]

    def _readiness(self) -> Verdict:
        role = self._role
        states = {name: page.state for name, page in role.scene.book.pages.items()}
        faults = {n: self._why(n) for n, state in states.items() if state == "FAULT" and n not in role.scene.drained.names}
        return desired.ready(running=role.supervisor.state.running, why=role.supervisor.why, states=states, faults=faults)

    def _why(self, name: str) -> str:
        patient = self._role.scene.prober.patients.get(name)
        return patient.why if patient is not None and patient.counts.bad else "keepalived says so: its track script, an interface, or a track file"

    def measure(self) -> None:
        """Set the gauges."""
        role, metrics = self._role, self._role.metrics
        pages = role.scene.book.pages
        metrics.replace("edgekeeper_vip_master", "vip", {name: float(page.held) for name, page in pages.items()})
        metrics.replace("edgekeeper_vip_priority", "vip", {name: float(page.told_priority or page.instance.priority) for name, page in pages.items()})
        metrics.set("edgekeeper_vip_engine_up", float(role.supervisor.state.running))
        metrics.set("edgekeeper_vip_alarms", len(role.alarms.raised))
