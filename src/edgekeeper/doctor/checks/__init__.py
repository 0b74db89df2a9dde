"""Every check there is, in the order of its id. Pure."""

from __future__ import annotations

from edgekeeper.doctor.check import Check
from edgekeeper.doctor.checks import lb_config, lb_health, lb_pinned, lb_running, nodes, vip_probe, vip_safety, vip_same

CHECKS: tuple[Check, ...] = tuple(
    sorted(
        [*lb_pinned.CHECKS, *lb_health.CHECKS, *lb_config.CHECKS, *lb_running.CHECKS, *nodes.CHECKS, *vip_same.CHECKS, *vip_probe.CHECKS, *vip_safety.CHECKS],
        key=lambda check: check.id,
    ),
)
BY_ID = {check.id: check for check in CHECKS}
