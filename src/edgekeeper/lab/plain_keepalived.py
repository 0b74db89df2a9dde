"""The baseline: the ``keepalived.conf`` that a user would write without edgekeeper, in three manners. Pure.

``FIELD`` is what field report A ran: unicast, priorities 200 and 190, ``nopreempt``, a check each second that fails a node
after three, and a track file for maintenance. ``PREEMPT`` is the same with the higher priority taking its VIP back, and the
track file written with 60 to step aside. ``KUBEADM`` has the values of kubeadm's guide to high availability: a check each 3 s
with weight -2, ten failures, priorities 101 and 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vip:
    """One VIP: its name, its address with prefix length, its VRID."""

    name: str
    address: str
    vrid: int


@dataclass(frozen=True, slots=True)
class Check:
    """A track script: how often it is run, its numbers. ``weight`` 0: a failure is FAULT. Seconds."""

    script: str
    interval: int = 1
    timeout: int = 1
    fall: int = 3
    rise: int = 2
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Manner:
    """How a user sets it up: priorities by node, whether the state is said, how drains are written."""

    priorities: tuple[int, ...] = (200, 190, 180)
    nopreempt: bool = True
    states: bool = False
    """The first node is said to be MASTER, as guides do; else all begin as BACKUP."""
    drain: int | None = 300
    """What is written to the track file to drain a node; None: there is no track file."""


FIELD = Manner()
PREEMPT = Manner(nopreempt=False, drain=60)
KUBEADM = Manner(priorities=(101, 100, 100), nopreempt=False, states=True, drain=None)
KUBEADM_CHECK = Check("", interval=3, timeout=0, fall=10, rise=2, weight=-2)
"""The numbers of the guide's check; its script is the drill's."""


@dataclass(frozen=True, slots=True)
class Plain:
    """One node's keepalived. ``own`` and ``peers`` are (IPv4, IPv6) addresses; ``folder`` holds its files."""

    node: int
    own: tuple[str, str]
    peers: tuple[tuple[str, str], ...]
    vips: tuple[Vip, ...]
    folder: str
    advert_s: float = 1.0
    check: Check | None = None
    manner: Manner = FIELD


def config(plain: Plain) -> str:
    """The text of ``keepalived.conf``."""
    lines = ["global_defs {", "    vrrp_version 3", "    script_user root", "}"]
    if plain.check is not None:
        check = plain.check
        lines += ["vrrp_script chk {", f'    script "{_word(check.script)}"', f"    interval {check.interval}"]
        lines += [f"    timeout {check.timeout}"] if check.timeout else []
        lines += [f"    fall {check.fall}", f"    rise {check.rise}", f"    weight {check.weight}", "}"]
    for vip in plain.vips:
        lines += _instance(plain, vip)
    return "\n".join(lines) + "\n"


def _instance(plain: Plain, vip: Vip) -> Sequence[str]:
    manner, six = plain.manner, int(":" in vip.address)
    lines: list[str] = []
    if manner.drain is not None:
        lines += [f"vrrp_track_file tf_{_word(vip.name)} {{", f"    file {_word(weight_file(plain, vip))}", "    weight -1", "    init_file 0", "}"]
    lines += [
        f"vrrp_instance VI_{_word(vip.name)} {{",
        f"    state {'MASTER' if manner.states and plain.node == 0 else 'BACKUP'}",
        "    interface eth0",
        f"    virtual_router_id {vip.vrid}",
        f"    priority {manner.priorities[plain.node]}",
        f"    advert_int {plain.advert_s:g}",
        *(["    nopreempt"] if manner.nopreempt else []),
        f"    unicast_src_ip {plain.own[six]}",
        "    unicast_peer {",
        *(f"        {peer[six]}" for peer in plain.peers),
        "    }",
        "    virtual_ipaddress {",
        f"        {_word(vip.address)} dev eth0",
        "    }",
        *(["    track_script {", "        chk", "    }"] if plain.check is not None else []),
        *(["    track_file {", f"        tf_{_word(vip.name)}", "    }"] if manner.drain is not None else []),
        "}",
    ]
    return lines


def weight_file(plain: Plain, vip: Vip) -> str:
    """Where a VIP's track file lies."""
    return f"{plain.folder}/weight-{vip.name}"


def _word(text: str) -> str:
    """A word as it is; ValueError for what keepalived would read as more than one, or as something else."""
    if not text or any(c.isspace() or c in "\"'\\#!{}$;" for c in text):
        msg = f"{text!r} is no word for keepalived.conf; use letters, digits, dots, dashes and slashes"
        raise ValueError(msg)
    return text
