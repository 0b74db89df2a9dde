"""What is wanted of keepalived: instances with their peers, scripts and files. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgekeeper.config.vip import Vip, VipProbe, Vips
from edgekeeper.config.viprules import SCRIPT_TIMEOUT_S
from edgekeeper.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Instance:
    """One VRRP instance. ``preempt`` is False, True or the delay in seconds.

    ``probe`` are the words of its own track script, ``checked_by`` names the instance whose script it follows: its own, or that of another one
    that asks the same (a start of the script costs 35 ms of processor each second: for twenty VIPs of one service that would be most of a core).
    """

    name: str
    address: str
    vrid: int
    interface: str
    priority: int
    advert_s: float
    preempt: bool | float
    source: str
    peers: tuple[str, ...]
    probe: tuple[str, ...] | None = None
    hmac_key_file: str | None = None
    checked_by: str | None = None

    @property
    def ip(self) -> str:
        """The address without its length."""
        return self.address.partition("/")[0]

    @property
    def prefix(self) -> int:
        """The length of the address's prefix."""
        return int(self.address.partition("/")[2])


@dataclass(frozen=True, slots=True)
class Script:
    """How the track scripts are run: seconds, looks."""

    interval: int
    timeout: float
    fall: int
    rise: int


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that a keepalived is told. ``program`` are the words that start this edgekeeper."""

    node: str
    instances: tuple[Instance, ...]
    script: Script
    script_user: str
    program: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A node among all that share the VIPs: its index, how many there are, and the addresses by family (4, 6)."""

    index: int
    count: int
    sources: Mapping[int, str]
    peers: Mapping[int, tuple[str, ...]]


def priority(base: int, step: int, place: Place, position: int) -> int:
    """``base - step * idx``: the order of the nodes for even positions of a VIP, the reverse for odd ones, so that two VIPs rest on different nodes."""
    idx = place.index if position % 2 == 0 else place.count - 1 - place.index
    return base - step * idx


def build(vips: Vips, node: str, place: Place, folder: str, program: Sequence[str], script_user: str, *, hmac: bool) -> Topology:
    """The topology of a config at a place; RefusedError when a VIP could never move, or has nowhere to be."""
    instances: list[Instance] = []
    checks: dict[tuple[str, ...], str] = {}
    for position, vip in enumerate(vips.vips):
        version = ipaddress.ip_interface(vip.address).version
        source, interface = place.sources.get(version), vips.interface_of(vip)
        if source is None or interface is None:
            family = f"an IPv{version} address" if source is None else "an interface"
            msg = f"VIP {vip.name} needs {family} of this node ({node}); nothing is changed"
            raise RefusedError(msg)
        peers = tuple(peer for peer in place.peers.get(version, ()) if peer != source)
        if not peers:
            msg = f"VIP {vip.name} has no peer with an IPv{version} address, so nobody could take it over; nothing is changed"
            raise RefusedError(msg)
        asked = _asked(vip.probe) if vip.probe is not None else None
        by = checks.setdefault(asked, vip.name) if asked is not None else None
        instances.append(
            Instance(
                vip.name,
                vip.address,
                vip.vrid,
                interface,
                priority(vips.base, vips.step, place, position),
                round(vips.advert, 2),
                vips.preempt,
                source,
                peers,
                probe_words(vip, folder, program) if by == vip.name else None,
                vips.hmac_key_file.replace("{vrid}", str(vip.vrid)) if hmac and vips.hmac_key_file and not vips.legacy else None,
                by,
            )
        )
    script = Script(vips.script.interval, SCRIPT_TIMEOUT_S, vips.script.fall, vips.script.rise)
    return Topology(node, tuple(instances), script, script_user, tuple(program))


def probe_words(vip: Vip, folder: str, program: Sequence[str]) -> tuple[str, ...] | None:
    """The command line of a VIP's track script; None when there is nothing to ask."""
    probe = vip.probe
    if probe is None:
        return None
    return (*program, "vip", "probe", "--vip", vip.name, *_asked(probe), "--peers", f"{folder}/peers.json")


def _asked(probe: VipProbe) -> tuple[str, ...]:
    if probe.dns is not None:
        words: tuple[str, ...] = ("--dns", probe.server, "--qname", probe.dns, "--qtype", probe.type)
        if probe.dnsdist_api is not None and probe.dnsdist_api_key_file is not None:
            words += ("--dnsdist-api", probe.dnsdist_api, "--dnsdist-api-key-file", probe.dnsdist_api_key_file)
            words += ("--require-backends", str(probe.require_backends))
        return words
    return ("--tcp", probe.tcp) if probe.tcp is not None else ("--http", str(probe.http))
