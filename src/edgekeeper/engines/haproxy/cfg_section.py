"""One section of haproxy.cfg while it is read: what each line sets, and what a section has from its ``defaults``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from edgekeeper.engines.haproxy.cfg_server import address, options, servers
from edgekeeper.engines.haproxy.cfg_values import Bind, Global, Option, Probe, Proxy, Server, Socket, Stats, Step
from edgekeeper.engines.haproxy.cfg_words import expand
from edgekeeper.model.finding import Place

_CHECK_OPTIONS = "httpchk tcp-check ssl-hello-chk smtpchk ldap-check mysql-check pgsql-check redis-check spop-check external-check"
_CHECKS = frozenset(_CHECK_OPTIONS.split())
_OLD_TIMEOUTS = {"contimeout": "connect", "clitimeout": "client", "srvtimeout": "server"}
_REFUSING = frozenset({"deny", "auth", "reject", "tarpit", "silent-drop", "block"})


@dataclass(slots=True)
class Section:
    """A ``defaults``, ``frontend``, ``backend`` or ``listen`` section in the making."""

    kind: str = ""
    name: str = ""
    place: Place = Place("", 0)  # noqa: RUF009 - a frozen value
    base: str = ""
    mode: str = "tcp"
    mode_place: Place | None = None
    timeouts: dict[str, Option] = field(default_factory=dict)
    options: dict[str, Option] = field(default_factory=dict)
    default_server: dict[str, Option] = field(default_factory=dict)
    default_place: Place | None = None
    probe: Probe = Probe()  # noqa: RUF009 - a frozen value
    http_steps: tuple[Step, ...] = ()
    tcp_steps: tuple[Step, ...] = ()
    inherited_steps: frozenset[str] = frozenset()
    balance: Option | None = None
    maxconn: Option | None = None
    stats: Stats | None = None
    binds: list[Bind] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    resorts: list[str] = field(default_factory=list)
    counting: set[str] = field(default_factory=set)
    guarded: bool = False
    disabled: bool = False

    def child(self, kind: str, name: str, place: Place) -> Section:
        """A section that begins with the settings of this one (a ``defaults``), as they are now."""
        return replace(
            self,
            kind=kind,
            name=name,
            place=place,
            base=self.name,
            timeouts=dict(self.timeouts),
            options=dict(self.options),
            default_server=dict(self.default_server),
            default_place=None,
            inherited_steps=frozenset({"http-check", "tcp-check"}),
            binds=[],
            servers=[],
            uses=list(self.uses),
            resorts=[],
            counting=set(self.counting),
        )

    def line(self, said: Sequence[str], place: Place, env: Mapping[str, str]) -> None:
        """Take a line; what is not known here changes nothing."""
        head, *rest = said
        if _refuses(said):
            self.guarded = True
        elif head in {"server", "server-template"}:
            self._servers(said, place, env)
        elif head == "bind" and rest:
            self._bind(rest, place, env)
        elif head in {"disabled", "enabled"}:
            self.disabled = head == "disabled"
        elif rest:
            self._setting(head, rest, place)

    def _setting(self, head: str, rest: Sequence[str], place: Place) -> None:
        """A line with a value that stands for the whole section."""
        match head:
            case "mode":
                self.mode, self.mode_place = rest[0], place
            case "balance":
                self.balance = Option(tuple(rest), place)
            case "maxconn":
                self.maxconn = Option(tuple(rest), place)
            case "timeout" if len(rest) > 1:
                self.timeouts[rest[0]] = Option(tuple(rest[1:]), place)
            case "use_backend" | "default_backend":
                self._use(head, rest)
            case "acl" if any(_counts_servers(word) for word in rest[1:]):
                self.counting.add(rest[0])
            case "stats":
                self._stats(rest, place)
            case "default-server":
                self.default_server = options(rest, place, self.default_server)
                self.default_place = place
            case "http-check" | "tcp-check":
                self._step(head, rest, place)
            case _:
                self._option(head, rest, place)

    def _bind(self, rest: Sequence[str], place: Place, env: Mapping[str, str]) -> None:
        many = tuple(address(expand(part, env)) for part in rest[0].split(",") if part)
        self.binds.append(Bind(many, tuple(rest[1:]), place))

    def _servers(self, said: Sequence[str], place: Place, env: Mapping[str, str]) -> None:
        where = 3 if said[0] == "server-template" else 2
        expanded = [expand(word, env) if at == where else word for at, word in enumerate(said)]
        self.servers += servers(expanded, place, self.default_server)

    def _use(self, head: str, rest: Sequence[str]) -> None:
        """A backend that is used only when another has too few servers is a last resort (``use_backend open if { nbsrv(api) eq 0 }``)."""
        last_resort = head == "use_backend" and any(_counts_servers(word) or word in self.counting for word in rest[2:])
        (self.resorts if last_resort else self.uses).append(rest[0])

    def _option(self, head: str, rest: Sequence[str], place: Place) -> None:
        """``option``, ``no option``, and the timeouts as files of long ago write them."""
        if head in _OLD_TIMEOUTS:
            self.timeouts[_OLD_TIMEOUTS[head]] = Option(tuple(rest), place)
            return
        if head == "no" and len(rest) > 1 and rest[0] == "option":
            self.options[rest[1]] = Option(tuple(rest[2:]), place, off=True)
        if head != "option":
            return
        name, *more = rest
        self.options[name] = Option(tuple(more), place)
        if name not in _CHECKS:
            return
        method, uri = "", ""
        if name == "httpchk":  # nothing, URI, or METHOD URI [VERSION]
            method, uri = ("OPTIONS", "/") if not more else ("OPTIONS", more[0]) if len(more) == 1 else (more[0], more[1])
        self.probe = Probe("http" if name == "httpchk" else name, place, method, uri, place if uri else None)

    def _step(self, head: str, rest: Sequence[str], place: Place) -> None:
        step = Step(rest[0], tuple(rest[1:]), place)
        fresh = head in self.inherited_steps  # a section's own rules stand in place of those of its defaults
        self.inherited_steps -= {head}
        if head == "http-check":
            self.http_steps = (step,) if fresh else (*self.http_steps, step)
        else:
            self.tcp_steps = (step,) if fresh else (*self.tcp_steps, step)

    def _stats(self, rest: Sequence[str], place: Place) -> None:
        """Every ``stats`` line of a section turns the page on."""
        word, *more = rest
        now = self.stats or Stats(place)
        match word:
            case "auth":
                now = replace(now, auth=True)
            case "http-request":
                now = replace(now, auth=now.auth or bool({"auth", "deny"}.intersection(more[:1])))
            case "admin":
                now = replace(now, admin=tuple(more), admin_place=place)
            case "uri" if more:
                now = replace(now, uri=more[0])
            case _:
                pass
        self.stats = now


def build(section: Section) -> Proxy:
    """The finished section as a frozen value."""
    return Proxy(
        kind=section.kind,
        name=section.name,
        place=section.place,
        mode=section.mode,
        mode_place=section.mode_place,
        binds=tuple(section.binds),
        servers=tuple(section.servers),
        default_server=section.default_place,
        timeouts=section.timeouts,
        probe=_probe(section),
        balance=section.balance,
        maxconn=section.maxconn,
        stats=section.stats,
        options=section.options,
        uses=tuple(section.uses),
        resorts=tuple(section.resorts),
        guarded=section.guarded,
        disabled=section.disabled,
        defaults=section.base,
    )


def _probe(section: Section) -> Probe:
    """How the servers are asked, once all lines are known: ``http-check send`` overrides what ``option httpchk`` says."""
    probe = section.probe
    if probe.kind == "tcp-check":
        return replace(probe, steps=section.tcp_steps)
    if probe.kind != "http":
        return probe
    probe = replace(probe, steps=section.http_steps)
    for step in section.http_steps:
        if step.action == "send":
            said = dict(_send_words(step.words))
            probe = replace(
                probe,
                method=said.get("meth", probe.method),
                uri=said.get("uri", said.get("uri-lf", probe.uri)),
                uri_place=step.place if {"uri", "uri-lf"} & said.keys() else probe.uri_place,
            )
    return probe


def _send_words(words: Sequence[str]) -> list[tuple[str, str]]:
    """Each known name of an ``http-check send`` line with the word after it."""
    return [(name, words[at + 1]) for at, name in enumerate(words[:-1]) if name in {"meth", "uri", "uri-lf", "ver"}]


def _counts_servers(word: str) -> bool:
    return word.startswith(("nbsrv(", "srv_is_up("))


def _refuses(said: Sequence[str]) -> bool:
    """Whether a line keeps somebody out: then who reaches a page cannot be told from the listeners alone."""
    if said[0] in {"http-request", "tcp-request"}:
        return any(word in _REFUSING for word in said[1:5])
    return said[0] in {"block", "reqdeny"}


def settings_line(now: Global, said: Sequence[str], place: Place, env: MutableMapping[str, str]) -> Global:
    """A line of ``global``; ``setenv`` and ``presetenv`` go to ``env``."""
    head, *rest = said
    match head:
        case "setenv" | "presetenv" if len(rest) > 1:
            env[rest[0]] = rest[1]
        case "unsetenv" | "resetenv":
            for name in rest:
                env.pop(name, None)
        case "stats" if len(rest) > 1 and rest[0] == "socket":
            return replace(now, sockets=(*now.sockets, _socket(rest[1], rest[2:], place, env)))
        case "spread-checks" if rest and rest[0].isdigit():
            return replace(now, spread_checks=min(int(rest[0][:4]), 50))
        case "maxconn" if rest and rest[0].isascii() and rest[0].isdigit():
            return replace(now, maxconn=int(rest[0][:12]))
        case "server-state-file" if rest:
            return replace(now, server_state_file=rest[0])
        case _:
            pass
    return now


def _socket(where: str, rest: Sequence[str], place: Place, env: Mapping[str, str]) -> Socket:
    said = {name: rest[at + 1] for at, name in enumerate(rest[:-1]) if name in {"level", "mode"}}
    return Socket(address(expand(where, env)), said.get("level", "operator"), said.get("mode", ""), place, guarded="verify" in rest and "required" in rest)
