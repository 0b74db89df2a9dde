"""What a haproxy.cfg says, as frozen values: every setting with the line that it came from. Pure.

The values are those in force: ``defaults`` and ``default-server`` are worked in, so that a server's ``inter`` may have been
said many lines before it, and its ``place`` says where. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from edgekeeper.model.finding import Place

INTER_S = 2.0
FALL = 3
RISE = 2
"""What HAProxy takes where nothing is said (2.6, 3.0, 3.2: ``show servers state`` and measured detection)."""

Ports = tuple[int, int]
"""First and last port."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting: its words without its name, and where it was said. ``off``: said with ``no-`` before it."""

    words: tuple[str, ...]
    place: Place
    off: bool = False

    @property
    def value(self) -> str:
        """The first word, or nothing."""
        return self.words[0] if self.words else ""


@dataclass(frozen=True, slots=True)
class Address:
    """An address as it is written; ``ports`` None: not said, or by a variable. ``shift``: a server's ``+1000`` of the client's port."""

    text: str
    host: str
    ports: Ports | None = None
    shift: int | None = None
    family: str = "ip"

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it: loopback, a UNIX socket, an inherited file descriptor."""
        return self.family != "ip" or self.host in {"localhost", "::1"} or self.host.startswith(("127.", "::ffff:127."))

    @property
    def is_unresolved(self) -> bool:
        """Whether a variable or a template's mark stands in it."""
        return "$" in self.text or "{{" in self.text or "%" in self.text

    @property
    def is_remote(self) -> bool | None:
        """Whether other machines reach it; None when a variable stands in the place of the host."""
        if "$" in self.host or "{{" in self.host or "%" in self.host:
            return None
        return not self.is_local


@dataclass(frozen=True, slots=True)
class Bind:
    """A listener: one ``bind`` line may have several addresses."""

    addresses: tuple[Address, ...]
    options: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Server:
    """A server with the options in force for it, ``default-server`` worked in."""

    name: str
    address: Address
    place: Place
    options: Mapping[str, Option] = field(hash=False)
    count: int = 1

    def flag(self, name: str) -> bool:
        """Whether a flag is set (``check``, ``backup``) and not taken back (``no-check``)."""
        option = self.options.get(name)
        return option is not None and not option.off

    def text(self, name: str) -> str | None:
        """The first word of an option's value."""
        option = self.options.get(name)
        return option.value if option is not None and not option.off else None

    @property
    def check(self) -> bool:
        """Whether HAProxy checks it itself."""
        return self.flag("check")

    @property
    def is_watched(self) -> bool:
        """Whether anything can mark it DOWN: a check, an agent, another server's check."""
        return self.check or self.flag("agent-check") or self.text("track") is not None

    @property
    def check_ssl(self) -> bool:
        """Whether the check speaks TLS: said, or taken from ``ssl`` where the check goes to the same place (no ``port``, no ``addr``)."""
        said = self.options.get("check-ssl")
        if said is not None:
            return not said.off
        return self.flag("ssl") and self.text("port") is None and self.text("addr") is None

    @property
    def is_disabled(self) -> bool:
        """Whether it starts in maintenance."""
        return self.flag("disabled")

    @property
    def inter_s(self) -> float:
        """Seconds between checks while nothing is wrong."""
        return self._seconds("inter") or INTER_S

    @property
    def fastinter_s(self) -> float:
        """Seconds between checks between the first failure and the verdict (``inter`` where it is not said)."""
        return self._seconds("fastinter") or self.inter_s

    @property
    def downinter_s(self) -> float:
        """Seconds between checks of a server that is DOWN (``inter`` where it is not said)."""
        return self._seconds("downinter") or self.inter_s

    @property
    def fall(self) -> int:
        """Failures in a row until it is DOWN."""
        return self._number("fall") or FALL

    @property
    def rise(self) -> int:
        """Successes in a row until it is UP again."""
        return self._number("rise") or RISE

    @property
    def cuts_sessions(self) -> bool:
        """Whether its sessions are ended when it is marked DOWN."""
        return self.text("on-marked-down") == "shutdown-sessions"

    def _seconds(self, name: str) -> float | None:
        return parse_time(self.text(name) or "")

    def _number(self, name: str) -> int | None:
        text = self.text(name) or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


_UNITS = {"us": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "": 0.001}


def parse_time(text: str) -> float | None:
    """Seconds of ``2s``, ``500ms``, ``1h`` or a bare number of milliseconds; None for what is none of these (a variable)."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text[len(number) :]
    if not (number.isascii() and number.isdigit() and len(number) < 16) or unit not in _UNITS:
        return None
    return int(number) * _UNITS[unit]


@dataclass(frozen=True, slots=True)
class Step:
    """One ``http-check`` or ``tcp-check`` line: what it does (``connect``, ``send``, ``expect``), and its words."""

    action: str
    words: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Probe:
    """How the servers of a backend are asked. ``kind``: ``tcp`` (a connection, nothing more), ``http``, ``tcp-check``, ``ssl-hello-chk``, ``mysql-check``..."""

    kind: str = "tcp"
    place: Place | None = None
    method: str = ""
    uri: str = ""
    uri_place: Place | None = None
    steps: tuple[Step, ...] = ()

    @property
    def connects(self) -> tuple[Step, ...]:
        """The connections that it is told to open, in place of what the server's line says."""
        return tuple(step for step in self.steps if step.action == "connect")


@dataclass(frozen=True, slots=True)
class Stats:
    """The statistics page of a section. ``admin``: the condition under which it may write, as it is said (``if TRUE``)."""

    place: Place
    uri: str = "/haproxy?stats"
    auth: bool = False
    admin: tuple[str, ...] | None = None
    admin_place: Place | None = None


@dataclass(frozen=True, slots=True)
class Proxy:
    """A ``frontend``, ``backend`` or ``listen`` section, with what it has from its ``defaults`` worked in."""

    kind: str
    name: str
    place: Place
    mode: str = "tcp"
    mode_place: Place | None = None
    binds: tuple[Bind, ...] = ()
    servers: tuple[Server, ...] = ()
    default_server: Place | None = None
    timeouts: Mapping[str, Option] = field(default_factory=dict, hash=False)
    probe: Probe = Probe()
    balance: Option | None = None
    maxconn: Option | None = None
    stats: Stats | None = None
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)
    uses: tuple[str, ...] = ()
    resorts: tuple[str, ...] = ()
    """Backends that it uses only when another has too few servers left."""
    guarded: bool = False
    disabled: bool = False
    defaults: str = ""

    @property
    def has_servers(self) -> bool:
        """Whether sections of this kind have servers (``backend``, ``listen``)."""
        return self.kind in {"backend", "listen"}

    @property
    def has_clients(self) -> bool:
        """Whether sections of this kind have listeners (``frontend``, ``listen``)."""
        return self.kind in {"frontend", "listen"}

    def timeout_s(self, name: str) -> float | None:
        """A timeout in force, in seconds; None when it is not set or cannot be read."""
        option = self.timeouts.get(name)
        return parse_time(option.value) if option else None


@dataclass(frozen=True, slots=True)
class Socket:
    """A ``stats socket``: where it is, what it may do (HAProxy's own default is operator), who may open it."""

    address: Address
    level: str
    mode: str
    place: Place
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Global:
    """The ``global`` section. ``place`` None: the files have none (a part of a configuration)."""

    place: Place | None = None
    sockets: tuple[Socket, ...] = ()
    spread_checks: int = 0
    maxconn: int | None = None
    server_state_file: str = ""


@dataclass(frozen=True)
class Config:
    """One reading of a configuration. ``assumed``: conditions that the files do not decide, and how this reading took them."""

    files: tuple[str, ...]
    settings: Global
    proxies: tuple[Proxy, ...]
    assumed: Mapping[str, bool] = field(default_factory=dict, hash=False)
    conditions: Mapping[str, Place] = field(default_factory=dict, hash=False)
    is_part: bool = False
    """Neither ``global`` nor ``defaults`` stands in the files: what a section does not say may be said elsewhere."""

    def mode(self, proxy: Proxy) -> str:
        """``tcp`` or ``http`` (HAProxy's own default is tcp); nothing when it may be said in a file that was not given."""
        return "" if self.is_part and proxy.mode_place is None else proxy.mode

    def backends(self) -> tuple[Proxy, ...]:
        """The sections with servers that are in use, in the order of the file."""
        return tuple(proxy for proxy in self.proxies if proxy.has_servers and not proxy.disabled)

    def feeding(self, backend: Proxy) -> tuple[Proxy, ...]:
        """The sections whose listeners send clients to this backend (``listen`` feeds itself)."""
        own = (backend,) if backend.kind == "listen" else ()
        return own + tuple(proxy for proxy in self._fed_by.get(backend.name, ()) if proxy is not backend)

    def is_last_resort(self, backend: Proxy) -> bool:
        """Whether clients come here only when another backend has too few servers, and that one checks all that stand here."""
        fronts = [front for front in self.feeding(backend) if front is not backend]
        if backend.kind == "listen" or not fronts or any(backend.name in front.uses for front in fronts):
            return False
        checked = {s.address.text for p in self.backends() if p is not backend for s in p.servers if s.is_watched}
        return all(server.address.text in checked for server in backend.servers)

    @cached_property
    def _fed_by(self) -> Mapping[str, tuple[Proxy, ...]]:
        """Who sends clients to a backend, by its name: files of thousands of backends are read too."""
        found: dict[str, tuple[Proxy, ...]] = {}
        for proxy in self.proxies:
            if proxy.has_clients and not proxy.disabled:
                for name in dict.fromkeys((*proxy.uses, *proxy.resorts)):
                    found[name] = (*found.get(name, ()), proxy)
        return found

    def server(self, backend: str, name: str) -> Server | None:
        """A server by its backend's name and its own."""
        return next((s for p in self.proxies if p.has_servers and p.name == backend for s in p.servers if s.name == name), None)
