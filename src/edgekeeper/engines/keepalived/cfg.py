"""keepalived.conf as keepalived reads it, to the values in force: what is watched, how, and what moves which VIP. Pure.

It is a reader, not a judge: a keyword that it does not know passes, a number out of range becomes the default that keepalived
takes, and nothing in a file raises. A file with ``@NAME`` lines describes several hosts, and is read once as each of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from edgekeeper.engines.keepalived.cfg_section import entries, ids
from edgekeeper.engines.keepalived.cfg_values import (
    DOWN_ADVERTS,
    OWNER,
    PRIORITY,
    Address,
    Entry,
    Globals,
    Group,
    Host,
    Instance,
    Problem,
    Script,
    Source,
    Tracked,
    Watch,
)
from edgekeeper.model.finding import Place

MOST_HOSTS = 20
"""Hosts that one file with ``@NAME`` lines may describe."""
MOST_INSTANCES = 1000
"""Instances of one host that are judged: a segment has 255 VRIDs."""
_KEYWORDS = re.compile(
    r"^\s*(vrrp_instance|vrrp_script|vrrp_sync_group|global_defs|virtual_server|vrrp_track_process|track_file|vrrp_track_file)\b", re.MULTILINE
)
_TRACKS = {"track_script": "script", "track_file": "file", "track_process": "process", "track_bfd": "bfd", "track_interface": "interface"}
_FLAGS = frozenset(["nopreempt", "unicast_fault_no_peer", "check_unicast_src", "dont_track_primary", "use_vmac", "use_ipvlan", "native_ipv6"])
_LARGEST_S = 10_000_000.0


def looks_like(text: str) -> bool:
    """Whether a text has a block of keepalived."""
    return "{" in text and _KEYWORDS.search(text) is not None


def hosts(source: Source) -> tuple[Host, ...]:
    """What a file says: one host, or as many as its ``@NAME`` lines tell apart."""
    wanted = ids(source)
    if not wanted:
        return (read(source),)
    as_named = [read(source, config_id=name) for name in wanted[:MOST_HOSTS]]
    return tuple(as_named) if len(wanted) > 1 else (*as_named, read(source, config_id=None, name=f"{source.name} (others)"))


def read(source: Source, *, config_id: str | None = None, name: str | None = None) -> Host:
    """One host's configuration, as keepalived reads it with ``--config-id=CONFIG_ID``."""
    tree, problems = entries(source, config_id)
    settings = _globals(tree)
    blocks = _blocks(tree, "vrrp_instance")
    many = tuple(
        Problem(block.place, f"more than {MOST_INSTANCES} instances; those from here on are not judged", severe=True) for block in blocks[MOST_INSTANCES:][:1]
    )
    scripts = {found.name: found for found in map(_script, _blocks(tree, "vrrp_script"))}
    watches = {(w.kind, w.name): w for e in tree for w in _watch(e)}
    return Host(
        name=name or (f"{source.name} (@{config_id})" if config_id else source.name),
        files=_files(source),
        settings=settings,
        scripts=scripts,
        watches=watches,
        instances=tuple(_instance(entry, settings) for entry in blocks[:MOST_INSTANCES]),
        groups=tuple(_group(entry) for entry in _blocks(tree, "vrrp_sync_group")),
        balanced=frozenset(ip for entry in tree if entry.name == "virtual_server" and (ip := Address(entry.value, entry.place).ip)),
        problems=(*many, *problems, *(Problem(e.place, f"a {e.name} without a name") for e in tree if e.name.startswith("vrrp_") and e.block and not e.value)),
        config_id=config_id,
    )


def _files(source: Source) -> tuple[str, ...]:
    inner = [name for included in source.includes.values() for one in included.sources for name in _files(one)]
    return tuple(dict.fromkeys((source.name, *inner)))


def _blocks(tree: Iterable[Entry], name: str) -> list[Entry]:
    return [entry for entry in tree if entry.name == name and entry.block is not None]


def _number(text: str, least: float, most: float) -> float | None:
    """A decimal number in its range, as keepalived takes one."""
    if not re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}", text):
        return None
    value = float(text)
    return value if least <= value <= most else None


def _whole(text: str, least: int, most: int) -> int | None:
    found = _number(text, least, most)
    return int(found) if found is not None and found == int(found) else None


def _globals(tree: Sequence[Entry]) -> Globals:
    out = Globals()
    for block in _blocks(tree, "global_defs"):
        out = replace(out, place=out.place or block.place)
        for entry in block.block or ():
            match entry.name:
                case "script_user":
                    out = replace(out, script_user=entry.value)
                case "enable_script_security":
                    out = replace(out, script_security=True)
                case "vrrp_version":
                    out = replace(out, version=_whole(entry.value, 2, 3) or out.version)
                case "vrrp_strict":
                    out = replace(out, strict=True)
                case _:
                    pass
    return out


def _script(block: Entry) -> Script:
    said: dict[str, Any] = {}
    places: dict[str, Place] = {}
    for entry in block.block or ():
        places[entry.name] = entry.place
        match entry.name:
            case "script":
                said["argv"] = _argv(entry.words[1:])
            case "interval":
                said["interval_s"] = _number(entry.value, 0, _LARGEST_S) or 1.0  # what cannot be read, and 0, become 1
            case "timeout":
                found = _number(entry.value, 0, _LARGEST_S)
                said["timeout_s"] = None if found is None else found or 1.0
            case "weight":
                said["weight"] = _whole(entry.value, -254, 254) or 0
                said["reverse"] = "reverse" in entry.words[2:]
            case "fall" | "rise":
                said[entry.name] = _whole(entry.value, 1, 1_000_000) or 1
            case "user":
                said["user"] = " ".join(entry.words[1:])
            case "init_fail":
                said["init_fail"] = True
            case _:
                pass
    return Script(name=block.value, place=block.place, places=places, **said)


def _argv(words: Sequence[str]) -> tuple[str, ...]:
    """A command line: in quotes it is one word here, and keepalived parts it at its spaces."""
    return tuple(part for word in words[:1] for part in word.split()) + tuple(words[1:])


def _watch(entry: Entry) -> list[Watch]:
    kind = {"vrrp_track_file": "file", "track_file": "file", "vrrp_track_process": "process"}.get(entry.name)
    if kind is None or entry.block is None:
        return []
    out = Watch(entry.value, kind, entry.place, weight=1 if kind == "file" else 0)
    for inner in entry.block:
        if inner.name == kind:
            out = replace(out, words=inner.words[1:])
        elif inner.name == "weight":
            weight = _whole(inner.value, -254, 254)
            out = replace(out, weight=out.weight if weight is None else weight, reverse="reverse" in inner.words[2:])
    return [out]


def _tracked(kind: str, block: Entry) -> list[Tracked]:
    out = []
    for entry in block.block or ():
        weight, reverse = None, None
        if entry.words[1:2] == ("weight",) and len(entry.words) > 2:
            weight = _whole(entry.words[2], -254, 254)
            reverse = {"reverse": True, "noreverse": False}.get(entry.words[3]) if len(entry.words) > 3 else None
        out.append(Tracked(kind, entry.name, entry.place, weight, reverse))
    return out


def _group(block: Entry) -> Group:
    out = Group(block.value, block.place)
    for entry in block.block or ():
        if entry.name == "group":
            out = replace(out, members=(*out.members, *(word for inner in entry.block or () for word in inner.words)))
        elif entry.name in _TRACKS:
            out = replace(out, tracked=(*out.tracked, *_tracked(_TRACKS[entry.name], entry)))
        elif entry.name == "sync_group_tracking_weight":
            out = replace(out, weights=True)
    return out


def _addresses(block: Entry) -> tuple[Address, ...]:
    out = []
    for entry in block.block or ():
        dev = next((entry.words[i + 1] for i, word in enumerate(entry.words[:-1]) if word == "dev" and i > 0), None)
        out.append(Address(entry.name, entry.place, dev))
    return tuple(out)


def _vrid(said: dict[str, Any], entry: Entry) -> None:
    said["vrid"] = _whole(entry.value, 1, 255)


def _priority(said: dict[str, Any], entry: Entry) -> None:
    said["priority"] = _whole(entry.value, 1, OWNER) or PRIORITY


def _state(said: dict[str, Any], entry: Entry) -> None:
    if said.get("state") != "MASTER":  # a later BACKUP does not take it back
        said["state"] = "MASTER" if entry.value == "MASTER" else "BACKUP"


def _advert(said: dict[str, Any], entry: Entry) -> None:
    found = _number(entry.value, 0.01, 255)
    if found is not None:
        said["advert_said_s"] = found


def _authentication(said: dict[str, Any], entry: Entry) -> None:
    """Which kind, and how long the password is: the password itself is not kept, so that no output can tell it."""
    for inner in entry.block or ():
        if inner.name == "auth_type":
            said["auth"] = inner.value.upper()
        elif inner.name == "auth_pass":
            said["pass_length"] = len(inner.value)
            said.setdefault("auth", "PASS")


_SETTERS: Mapping[str, Callable[[dict[str, Any], Entry], None]] = {
    "state": _state,
    "interface": lambda said, e: said.update(interface=e.value or None),
    "virtual_router_id": _vrid,
    "priority": _priority,
    "advert_int": _advert,
    "version": lambda said, e: said.update(version=_whole(e.value, 2, 3)),
    "nopreempt": lambda said, _: said.update(nopreempt=True),
    "preempt": lambda said, _: said.update(nopreempt=False),
    "preempt_delay": lambda said, e: said.update(preempt_delay_s=_number(e.value, 0, _LARGEST_S) or 0.0),
    "down_timer_adverts": lambda said, e: said.update(down_adverts=_whole(e.value, 1, 100) or DOWN_ADVERTS),
    "unicast_src_ip": lambda said, e: said.update(source=Address(e.value, e.place), unicast=True),
    "mcast_src_ip": lambda said, e: said.update(source=Address(e.value, e.place)),
    "unicast_peer": lambda said, e: said.update(peers=(*said.get("peers", ()), *_addresses(e)), unicast=True),
    "virtual_ipaddress": lambda said, e: said.update(vips=(*said.get("vips", ()), *_addresses(e))),
    "virtual_ipaddress_excluded": lambda said, e: said.update(excluded=(*said.get("excluded", ()), *_addresses(e))),
    "virtual_routes": lambda said, _: said.update(routes=True),
    "authentication": _authentication,
    "auth_hmac": lambda said, _: said.update(hmac=True),
}


def _instance(block: Entry, settings: Globals) -> Instance:
    said: dict[str, Any] = {}
    places: dict[str, Place] = {}
    tracked: list[Tracked] = []
    flags: set[str] = set()
    notify: list[str] = []
    for entry in block.block or ():
        places[entry.name] = entry.place
        if entry.name in _SETTERS:
            _SETTERS[entry.name](said, entry)
        if entry.name in _TRACKS:
            tracked += _tracked(_TRACKS[entry.name], entry)
        elif entry.name in _FLAGS:
            flags.add(entry.name)
        elif entry.name.startswith("notify"):
            notify.append(" ".join(entry.words[1:]))
        elif entry.name == "authentication":
            places.update({inner.name: inner.place for inner in entry.block or ()})
    if said.pop("routes", False):
        flags.add("virtual_routes")
    version = said.pop("version", None)
    said.setdefault("priority", OWNER if said.get("state") == "MASTER" else PRIORITY)
    said.setdefault("state", "MASTER" if said["priority"] == OWNER else "BACKUP")
    out = Instance(
        name=block.value,
        place=block.place,
        tracked=tuple(tracked),
        flags=frozenset(flags),
        notify=tuple(notify),
        places=places,
        **said,
    )
    version = version or (3 if out.family == 6 else settings.version)
    step = 1.0 if version == 2 else 0.01
    return replace(out, version=version, advert_s=round(max(math.floor(out.advert_said_s / step + 0.5), 1) * step, 2))
