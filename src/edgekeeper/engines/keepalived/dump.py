"""What a running keepalived holds, read from the text that it writes when it is sent SIGUSR1. Pure.

Measured with 2.2.7, 2.3.3 and 2.3.4: the same keys, indented, one section after another; the interfaces come last.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekeeper.engines.keepalived.topology import Instance, Topology

_SECTION = re.compile(r"^------< (.+) >------$")
_PACE = ("Interval", "Fall", "Rise")
_PAIR = re.compile(r"^\s+([A-Za-z0-9 _()./-]+?)\s*[=:]\s*(.*)$")


@dataclass(frozen=True, slots=True)
class Held:
    """One instance as the process holds it. ``state`` is MASTER, BACKUP, FAULT or INIT; ``effective`` the priority after its track files."""

    name: str
    state: str
    priority: int
    effective: int
    vrid: int
    interface: str
    advert_s: float
    preempt: bool
    source: str
    addresses: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


@dataclass(slots=True)
class _Block:
    name: str
    pairs: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dump:
    """All instances by name without ``VI_``, the command lines of the track scripts, and their paces: interval in seconds, fall, rise."""

    instances: Mapping[str, Held]
    commands: Mapping[str, str]
    paces: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def parse(text: str) -> Dump | None:
    """The dump; None for a text that is torn or is none."""
    if "------< VRRP Topology >------" not in text or "------< Interfaces >------" not in text:
        return None
    section, open_list = "", ""
    blocks: list[_Block] = []
    scripts: dict[str, dict[str, str]] = {}
    script = ""
    for line in text.splitlines():
        head = _SECTION.match(line)
        if head:
            section, open_list = head[1], ""
            continue
        pair = _PAIR.match(line)
        if section == "VRRP Topology":
            if pair and pair[1] == "VRRP Instance":
                blocks.append(_Block(pair[2]))
                open_list = ""
            elif blocks:
                open_list = _into(blocks[-1], line, pair, open_list)
        elif section == "VRRP Scripts" and pair:
            if pair[1] == "VRRP Script":
                script = pair[2].removeprefix("chk_")
            scripts.setdefault(script, {}).setdefault(pair[1], pair[2])
    commands = {name: pairs["Command"].replace("'", "") for name, pairs in scripts.items() if "Command" in pairs}
    paces = {name: {key: _number(pairs[key]) for key in _PACE if key in pairs} for name, pairs in scripts.items()}
    return Dump({held.name: held for held in map(_held, blocks)}, commands, paces)


def _into(block: _Block, line: str, pair: re.Match[str] | None, open_list: str) -> str:
    """Sort a line into a block; which list the next lines belong to."""
    if line.startswith("     ") and open_list:
        block.lists.setdefault(open_list, []).append(line.strip())
        return open_list
    if pair is None:
        return ""
    key, value = pair[1], pair[2]
    block.pairs.setdefault(key, value)
    if value in ("", "(none)"):
        return key.split(" (")[0]
    return ""


def _held(block: _Block) -> Held:
    pairs, lists = block.pairs, block.lists
    return Held(
        block.name.removeprefix("VI_"),
        pairs.get("State", ""),
        _number(pairs.get("Priority")),
        _number(pairs.get("Effective priority")),
        _number(pairs.get("Virtual Router ID")),
        pairs.get("Interface", ""),
        _seconds(pairs.get("Advert interval", "")),
        pairs.get("Preempt", "") != "disabled",
        pairs.get("Using src_ip", "").partition(" ")[0],
        tuple(_whole(entry.split()[0]) for entry in lists.get("Virtual IP", []) if entry),
        tuple(entry.split()[0] for entry in lists.get("Unicast Peer", []) if entry),
        tuple(entry.split(",")[0].split()[0].removeprefix("chk_") for entry in lists.get("Tracked scripts", []) if entry),
    )


def _whole(address: str) -> str:
    """An address with its prefix length; keepalived leaves that of a host out."""
    try:
        return str(ipaddress.ip_interface(address))
    except ValueError:
        return address


def _number(text: str | None) -> int:
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else 0


def _seconds(text: str) -> float:
    """``1000 milli-sec`` or ``1 sec`` in seconds."""
    found = re.match(r"([\d.]+)\s*(milli-)?sec", text)
    return float(found[1]) / (1000 if found[2] else 1) if found else 0.0


def difference(wanted: Topology, dump: Dump) -> str | None:
    """The first thing in which the process differs from what is wanted of it, or None."""
    gone = [name for name in dump.instances if name not in {i.name for i in wanted.instances}]
    if gone:
        return f"it still holds the instance {gone[0]}"
    for instance in wanted.instances:
        held = dump.instances.get(instance.name)
        if held is None:
            return f"it has no instance {instance.name}"
        told = _differs(instance, held, dump.commands.get(instance.name))
        if told is not None:
            return f"its instance {instance.name} has {told}"
    pace = dict(zip(_PACE, (wanted.script.interval, wanted.script.fall, wanted.script.rise), strict=True))
    other = [name for name, told in dump.paces.items() if any(pace[key] != value for key, value in told.items())]
    return f"its track script chk_{other[0]} is run at another pace" if other else None


def _differs(instance: Instance, held: Held, command: str | None) -> str | None:
    for what, is_so, should in (
        ("priority", held.priority, instance.priority),
        ("VRID", held.vrid, instance.vrid),
        ("interface", held.interface, instance.interface),
        ("advert interval", held.advert_s, instance.advert_s),
        ("source", held.source, instance.source),
        ("preempt", held.preempt, instance.preempt is not False),
        ("address", held.addresses, (instance.address,)),
        ("peers", sorted(held.peers), sorted(instance.peers)),
    ):
        if is_so != should:
            return f"the {what} {is_so}, not {should}"
    if instance.probe is not None and command is not None and command != " ".join(instance.probe):
        return "another track script"
    return None
