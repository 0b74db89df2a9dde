"""What the checks judge: everything that was read, as frozen values, and why something could not be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgekeeper.engines.haproxy.cfg_values import Config
from edgekeeper.engines.haproxy.sess import Session
from edgekeeper.engines.haproxy.stats import Info, Stats
from edgekeeper.engines.keepalived.cfg_values import Host, Script


@dataclass(frozen=True, slots=True)
class Unknown:
    """What could not be read, and why, as a sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class HaproxyRuntime:
    """What a running HAProxy says. ``sessions``: by the pid of the worker, old ones too; ``blind``: what could not be seen."""

    socket: str
    info: Info
    stats: Stats
    sessions: Mapping[int, tuple[Session, ...]] | Unknown = field(hash=False)
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFact:
    """A node of the cluster. ``ready``: None where the cluster does not know; ``lease_age_s``: since its Lease was renewed, None without one."""

    name: str
    addresses: frozenset[str]
    ready: bool | None
    lease_age_s: float | None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What only a cluster or a config of several hosts tells: the real API servers, the load balancers in front of them, and the nodes."""

    api_servers: frozenset[str] | Unknown = Unknown("no cluster was given")
    nodes: tuple[NodeFact, ...] | Unknown = Unknown("no cluster was given")
    balancers: tuple[str, ...] | Unknown = Unknown("no inventory was given")
    has_vip: bool = False


@dataclass(frozen=True, slots=True)
class HaproxyFacts:
    """One HAProxy. ``runtime`` None: nobody asked for it; ``mtimes``: when each file was last written (seconds since 1970)."""

    readings: tuple[Config, ...] = ()
    runtime: HaproxyRuntime | Unknown | None = None
    mtimes: Mapping[str, float] = field(default_factory=dict, hash=False)
    api_backends: frozenset[str] = frozenset()
    inventory: Inventory = Inventory()
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class ScriptFile:
    """A check script that is at hand. ``writers``: who else than root may change it, as a word (``its group``), or None."""

    text: str
    writers: str | None = None


@dataclass(frozen=True, slots=True)
class KeepalivedFacts:
    """The configurations of several hosts, together. ``scripts``: check scripts that are here, by the file that names one and its path."""

    hosts: tuple[Host, ...] = ()
    scripts: Mapping[tuple[str, str], ScriptFile] = field(default_factory=dict, hash=False)

    def file_of(self, script: Script) -> ScriptFile | None:
        """A check script, when it is here."""
        return self.scripts.get((script.place.file, script.argv[0])) if script.argv else None

    def text_of(self, script: Script) -> str | None:
        """Its text."""
        found = self.file_of(script)
        return None if found is None else found.text
