"""keepalived.conf from a topology and a seat: the same two give the same bytes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from edgekeeper.engines.keepalived.features import Features
from edgekeeper.engines.keepalived.quote import word, words
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Instance, Topology

FILE = "keepalived.conf"
CHECKED = "keepalived-check.conf"
"""What 2.2.7's ``-t`` is given instead: it differs in the script user only, because with another one than root that ``-t`` kills itself."""

REFRESH_S = 30
"""Seconds between gratuitous ARPs of an owner: a switch may forget, a client may have been away."""


def files(topology: Topology, seat: Seat, features: Features) -> dict[str, str]:
    """File name to text."""
    out = {FILE: text(topology, seat, topology.script_user)}
    if features.test_kills_itself:
        out[CHECKED] = text(topology, seat, "root")
    return out


def text(topology: Topology, seat: Seat, script_user: str) -> str:
    """The configuration with scripts that run as this user."""
    lines = [*_globals(topology, seat, script_user)]
    for instance in topology.instances:
        lines += ["", *_tracked(topology, seat, instance), *_instance(seat, instance)]
    return "\n".join(lines) + "\n"


def _block(head: str, lines: Iterator[str]) -> list[str]:
    return [f"{head} {{", *(f"    {line}" for line in lines), "}"]


def _globals(topology: Topology, seat: Seat, script_user: str) -> list[str]:
    def lines() -> Iterator[str]:
        yield f"router_id {word(topology.node)}"
        yield "enable_script_security"
        yield f"script_user {word(script_user)}"
        yield "vrrp_version 3"
        yield f"vrrp_garp_master_refresh {REFRESH_S}"
        yield f"vrrp_notify_fifo {word(seat.fifo)}"
        yield f"vrrp_notify_fifo_script {words((*topology.program, 'vip', 'fifo', '--node', topology.node))}"
        yield "vrrp_notify_priority_changes true"

    return _block("global_defs", lines())


def _tracked(topology: Topology, seat: Seat, instance: Instance) -> list[str]:
    out = []
    for prefix, file in (("tf", "weight"), ("hf", "health")):
        path = f"{seat.folder}/{file}-{instance.name}"
        out += _block(f"track_file {prefix}_{word(instance.name)}", iter((f"file {word(path)}", "weight -1", "init_file 0")))
    if instance.probe is not None:
        script = topology.script
        body = (
            f"script {words(instance.probe)}",
            f"interval {script.interval}",
            f"timeout {script.timeout:g}",
            f"fall {script.fall}",
            f"rise {script.rise}",
            "weight 0",
        )
        out += _block(f"vrrp_script chk_{word(instance.name)}", iter(body))
    return out


def _instance(seat: Seat, instance: Instance) -> list[str]:
    del seat

    def lines() -> Iterator[str]:
        yield "state BACKUP"
        yield f"interface {word(instance.interface)}"
        yield f"virtual_router_id {instance.vrid}"
        yield f"priority {instance.priority}"
        yield f"advert_int {instance.advert_s:g}"
        if instance.preempt is False:
            yield "nopreempt"
        elif instance.preempt is not True:
            yield f"preempt_delay {instance.preempt:g}"
        yield f"unicast_src_ip {word(instance.source)}"
        yield from _block("unicast_peer", iter(word(peer) for peer in instance.peers))
        yield "unicast_fault_no_peer"
        yield "check_unicast_src"
        if instance.hmac_key_file is not None:
            yield from _block("auth_hmac", iter((f"key 1 {word(f'file:{instance.hmac_key_file}')}", "active_key 1", "anti_replay monotonic")))
        yield from _block("virtual_ipaddress", iter((f"{word(instance.address)} dev {word(instance.interface)}",)))
        yield from _block("track_file", iter((f"tf_{word(instance.name)}", f"hf_{word(instance.name)}")))
        if instance.checked_by is not None:
            yield from _block("track_script", iter((f"chk_{word(instance.checked_by)}",)))

    return _block(f"vrrp_instance VI_{word(instance.name)}", lines())
