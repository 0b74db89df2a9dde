"""What follows from what is known of the VIPs: whether this node could take one, what is ready, what needs a person. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgekeeper.engines.keepalived.features import Features
from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.model.vrrp import master_down_s, move_sum, skew_s


def can_take(*, running: bool, drained: bool, bad: bool, told: str, link: bool) -> bool:
    """Whether this node would take a VIP whose owner lets go now."""
    return running and link and not drained and not bad and told in ("MASTER", "BACKUP")


def ready(*, running: bool, why: str, states: Mapping[str, str], faults: Mapping[str, str] | None = None) -> Verdict:
    """Whether this node can hold its VIPs: keepalived runs, and none is in FAULT. ``faults`` says why those are that nobody drained."""
    if not running:
        return Verdict(Health.BAD, f"keepalived is not running: {why}")
    if not states:
        return Verdict(Health.BAD, "keepalived has not said anything yet")
    told = ", ".join(f"{name} {state}{f' ({faults[name]})' if faults and name in faults else ''}" for name, state in states.items())
    return Verdict(Health.BAD if faults else Health.OK, told)


def advice(topology: Topology, features: Features, *, legacy: bool, hmac_asked: bool, user: str, budget_s: float) -> tuple[str, ...]:
    """What a person should know: sums, and what this keepalived cannot do."""
    out = []
    slowest = max(topology.instances, key=lambda i: skew_s(i.priority, i.advert_s))
    skew = skew_s(slowest.priority, slowest.advert_s)
    sums = move_sum(topology.script.interval, topology.script.fall, topology.script.timeout, skew)
    out.append(
        f"a dead or hung service moves its VIP within 1 s by edgekeeper, within {sums.seconds:.3g} s by the track script alone ({sums.text}; budget {budget_s:g} s)"
    )
    out.append(f"a dead node's VIPs are taken over after {master_down_s(slowest.priority, slowest.advert_s):.3g} s (three adverts and {skew:.2g} s skew)")
    if hmac_asked and not features.hmac and not legacy:
        out.append(
            f"keepalived {features.text} cannot sign its adverts (2.4 can); whoever is in the segment can claim a VIP. Say legacy: true to hear no more of it"
        )
    unasked = [i.name for i in topology.instances if i.checked_by is None]
    if unasked:
        out.append(f"{', '.join(unasked)}: nothing asks the service, so a VIP stays on a node whose service is dead")
    if user == "root":
        out.append(
            "track script and FIFO reader run as root; make the user keepalived_script (adduser --system keepalived_script), or name one in vip.engine.script_user"
        )
    return tuple(out)


def without_ops(peers: Sequence[str]) -> str | None:
    """What is not known when peers have no ops address."""
    if not peers:
        return None
    return f"{', '.join(peers)} {'has' if len(peers) == 1 else 'have'} no ops address in nodes:, so nobody here knows whether they could take a VIP: drain needs --force"
