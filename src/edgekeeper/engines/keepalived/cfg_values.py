"""What a keepalived.conf says, as frozen values: every setting with the line that it came from. Pure.

Times are seconds. Defaults are those of keepalived 2.2.7 to 2.3.4 (its manual, and what it was seen to do).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from edgekeeper.model.finding import Place

PRIORITY = 100
OWNER = 255
"""The priority of an address owner; also what ``state MASTER`` without a priority means (2.2.7)."""
ADVERT_S = 1.0
DOWN_ADVERTS = 3
INTERVAL_S = 1.0
PASS_LENGTH = 8
"""Characters of ``auth_pass`` that count."""


@dataclass(frozen=True, slots=True)
class Included:
    """What an ``include`` line stands for: the files in their order, or why there are none."""

    sources: tuple[Source, ...] = ()
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its name as it is to be shown, its text, and what its ``include`` lines stand for, by their number."""

    name: str
    text: str
    includes: Mapping[int, Included] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, and the block that follows it when one does (None: none)."""

    words: tuple[str, ...]
    place: Place
    block: tuple[Entry, ...] | None = None

    @property
    def name(self) -> str:
        """Its first word."""
        return self.words[0] if self.words else ""

    @property
    def value(self) -> str:
        """Its second word, or nothing."""
        return self.words[1] if len(self.words) > 1 else ""


@lru_cache(maxsize=4096)
def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a VIP, a peer or a source. ``ip`` is its usual form, None where a variable or a mistake stands."""

    text: str
    place: Place
    dev: str | None = None

    @property
    def ip(self) -> str | None:
        """Without its length."""
        found = self.interface
        return None if found is None else str(found.ip)

    @property
    def interface(self) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface | None:
        """With its length; keepalived takes a host's where none is said."""
        return _interface(self.text)

    @property
    def family(self) -> int | None:
        """4 or 6."""
        found = self.interface
        return None if found is None else found.version


@dataclass(frozen=True, slots=True)
class Script:
    """A ``vrrp_script``. ``timeout_s`` None: not said, then it is the interval."""

    name: str
    place: Place
    argv: tuple[str, ...] = ()
    interval_s: float = INTERVAL_S
    timeout_s: float | None = None
    weight: int = 0
    reverse: bool = False
    fall: int = 1
    rise: int = 1
    user: str | None = None
    init_fail: bool = False
    places: Mapping[str, Place] = field(default_factory=dict, hash=False)

    @property
    def limit_s(self) -> float:
        """After how long keepalived ends it."""
        return self.interval_s if self.timeout_s is None else self.timeout_s

    @property
    def command(self) -> str:
        """What is run, as one line."""
        return " ".join(self.argv)

    def at(self, name: str) -> Place:
        """Where a setting was said, else where the script begins."""
        return self.places.get(name, self.place)


@dataclass(frozen=True, slots=True)
class Watch:
    """A ``vrrp_track_file`` (its weight is 1 where not said) or a ``vrrp_track_process``."""

    name: str
    kind: str
    place: Place
    words: tuple[str, ...] = ()
    weight: int = 0
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Tracked:
    """A line of a track block: what, and the weight where it says its own. ``kind``: script, file, process, bfd, interface."""

    kind: str
    name: str
    place: Place
    weight: int | None = None
    reverse: bool | None = None


@dataclass(frozen=True)
class Instance:
    """A ``vrrp_instance``, with the settings in force. ``vrid`` and ``interface`` None: not said, or by a variable.

    ``advert_s`` is what is sent (whole seconds in version 2, hundredths in version 3), ``advert_said_s`` what is written.
    """

    name: str
    place: Place
    state: str = "BACKUP"
    interface: str | None = None
    vrid: int | None = None
    priority: int = PRIORITY
    advert_s: float = ADVERT_S
    advert_said_s: float = ADVERT_S
    version: int = 2
    nopreempt: bool = False
    preempt_delay_s: float = 0.0
    down_adverts: int = DOWN_ADVERTS
    source: Address | None = None
    peers: tuple[Address, ...] = ()
    unicast: bool = False
    vips: tuple[Address, ...] = ()
    excluded: tuple[Address, ...] = ()
    tracked: tuple[Tracked, ...] = ()
    auth: str | None = None
    pass_length: int = 0
    hmac: bool = False
    flags: frozenset[str] = frozenset()
    notify: tuple[str, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict, hash=False)

    def at(self, name: str) -> Place:
        """Where a setting was said, else where the instance begins."""
        return self.places.get(name, self.place)

    @cached_property
    def family(self) -> int:
        """4 or 6: of whatever names an address first (the source or the peers before the VIPs, as they usually stand), else 4."""
        named = [a for a in (self.source, *self.peers, *self.vips) if a is not None and a.family is not None]
        first = min(named, key=lambda a: a.place.line if a.place.file == self.place.file else 1 << 30, default=None)
        return 4 if first is None or first.family is None else first.family

    @cached_property
    def own_vips(self) -> frozenset[str]:
        """The addresses that its adverts name: those of its family."""
        return frozenset(a.ip for a in self.vips if a.ip is not None and a.family == self.family)


@dataclass(frozen=True, slots=True)
class Group:
    """A ``vrrp_sync_group``; ``weights``: ``sync_group_tracking_weight``, without which weights of its members are ignored."""

    name: str
    place: Place
    members: tuple[str, ...] = ()
    tracked: tuple[Tracked, ...] = ()
    weights: bool = False


@dataclass(frozen=True, slots=True)
class Globals:
    """``global_defs``, as far as it matters for VIPs."""

    place: Place | None = None
    script_user: str | None = None
    script_security: bool = False
    version: int = 2
    strict: bool = False
    multicast: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keepalived would stumble over, at its place."""

    place: Place
    text: str
    severe: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """One host's configuration. ``config_id``: as whom it was read, where the file has ``@NAME`` lines."""

    name: str
    files: tuple[str, ...] = ()
    settings: Globals = Globals()
    scripts: Mapping[str, Script] = field(default_factory=dict, hash=False)
    watches: Mapping[tuple[str, str], Watch] = field(default_factory=dict, hash=False)
    instances: tuple[Instance, ...] = ()
    groups: tuple[Group, ...] = ()
    balanced: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    config_id: str | None = None

    def groups_of(self, instance: Instance) -> tuple[Group, ...]:
        """The sync groups that an instance is in."""
        return tuple(group for group in self.groups if instance.name in group.members)

    def tracked(self, instance: Instance) -> tuple[Tracked, ...]:
        """What moves an instance: its own track blocks, and those of its sync groups."""
        return (*instance.tracked, *(tracked for group in self.groups_of(instance) for tracked in group.tracked))
