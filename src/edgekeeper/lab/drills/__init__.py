"""The drills, by name. A new one is a file (or a case) and a line here."""

from __future__ import annotations

from edgekeeper.lab.drill import Drill
from edgekeeper.lab.drills import changes, kinds, members, pinned, reloads, supervisor, truth, vip_faults, vip_joint, vip_moves, vip_owners, vip_quiet

DRILLS: dict[str, Drill] = {
    drill.name: drill
    for drill in (
        pinned.BLACKHOLE,
        pinned.AFTER_RELOAD,
        pinned.GUARD,
        pinned.ALL_SLOW,
        pinned.MAINT,
        reloads.RELOADS,
        reloads.TAKEN_PORT,
        reloads.RELOAD_DOWN,
        reloads.SUPERVISOR,
        members.KILLED,
        members.FROZEN,
        changes.CHANGED,
        changes.ROLLED,
        changes.BAD_CONFIG,
        supervisor.KILLED,
        supervisor.FROZEN,
        members.SLOW,
        truth.UPSTREAM,
        kinds.KINDS,
        changes.CERTIFICATE,
        truth.WRONG_NODE,
        supervisor.RESTARTED,
        members.OVER_STREAMS,
        vip_moves.VIP_DRAINED,
        vip_moves.VIP_STOPPED,
        vip_moves.VIP_DRAIN_ABORTED,
        vip_faults.VIP_KILLED,
        vip_faults.VIP_FROZEN,
        vip_faults.VIP_SERVICE_DEAD,
        vip_faults.VIP_SERVICE_BLACKHOLE,
        vip_faults.VIP_KUBEADM,
        vip_owners.VIP_PARTITION,
        vip_owners.VIP_TWO_OWNERS,
        vip_owners.VIP_RESUMED,
        vip_owners.VIP_KEEPALIVED_KILLED,
        vip_owners.VIP_COLD_START,
        vip_quiet.VIP_ALL_MEMBERS_DEAD,
        vip_quiet.VIP_DRAINED_TCP,
        vip_quiet.VIP_SUPERVISOR_KILLED,
        vip_quiet.VIP_SUPERVISOR_FROZEN,
        vip_quiet.VIP_RELOADED,
        vip_joint.DNS_AND_VIP,
    )
}
