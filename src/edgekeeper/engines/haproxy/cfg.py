"""haproxy.cfg as HAProxy reads it, to the values in force: ``defaults`` and ``default-server`` worked in, every setting with its line. Pure.

It is a reader, not a judge: a directive, a section or an option that it does not know passes, and nothing in a file raises.
Conditional blocks whose condition the file does not decide are read both ways (``readings``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edgekeeper.engines.haproxy.cfg_conditions import judge
from edgekeeper.engines.haproxy.cfg_section import Section, build, settings_line
from edgekeeper.engines.haproxy.cfg_values import Config, Global
from edgekeeper.engines.haproxy.cfg_words import words
from edgekeeper.model.finding import Place

PROXIES = frozenset({"defaults", "frontend", "backend", "listen"})
_OTHERS = """
global userlist peers resolvers mailers ring cache program http-errors fcgi-app log-forward log-profile crt-store traces
namespace_list dynamic-update acme healthcheck haterm
"""
OTHER_SECTIONS = frozenset(_OTHERS.split())
_NAMELESS = frozenset({"global", "traces"})
SECTIONS = PROXIES | OTHER_SECTIONS
_CONDITIONS = frozenset({".if", ".elif", ".else", ".endif"})
_MOST_READINGS = 32


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its name as it is to be shown, and its text."""

    name: str
    text: str


def read(sources: Sequence[Source], *, version: tuple[int, ...] | None = None) -> Config:
    """The configuration of some files, read in their order as ``haproxy -f A -f B`` does; undecided conditions are taken as true."""
    return _read(sources, {}, version)


def readings(sources: Sequence[Source], *, version: tuple[int, ...] | None = None) -> tuple[Config, ...]:
    """Every way in which undecided conditions may fall (each way alike wherever the same condition stands), at most 32 of them.

    One reading is the usual case. With more than five undecided conditions: all true, all false, and each one alone turned.
    """
    first = _read(sources, {}, version)
    if not first.conditions:
        return (first,)
    found = dict(first.conditions) | dict(_read(sources, dict.fromkeys(first.conditions, False), version).conditions)
    names = list(found)
    if 2 ** len(names) <= _MOST_READINGS:
        ways = [dict(zip(names, values, strict=True)) for values in itertools.product((True, False), repeat=len(names))]
    else:
        ways = [dict.fromkeys(names, True), dict.fromkeys(names, False)]
        ways += [{name: name != turned for name in names} for turned in names[: _MOST_READINGS - 2]]
    out: list[Config] = []
    for way in ways:
        config = _read(sources, way, version)
        if not any(config.proxies == kept.proxies and config.settings == kept.settings for kept in out):
            out.append(config)
    return tuple(out)


def looks_like(text: str) -> bool:
    """Whether a text has the head of a section of HAProxy."""
    for _, line in _lines(text):
        head, *rest = line.partition("#")[0].split()[:3] or [""]
        if head in PROXIES or (head in OTHER_SECTIONS and len(rest) == (0 if head in _NAMELESS else 1)):
            return True
    return False


@dataclass(slots=True)
class _Reader:
    """The state while lines go by."""

    assumed: Mapping[str, bool]
    version: tuple[int, ...] | None
    env: dict[str, str] = field(default_factory=dict)
    settings: Global = field(default_factory=Global)
    defaults: dict[str, Section] = field(default_factory=dict)
    last: Section = field(default_factory=Section)
    now: Section | None = None
    in_global: bool = False
    is_part: bool = True
    sections: list[Section] = field(default_factory=list)
    conditions: dict[str, Place] = field(default_factory=dict)
    blocks: list[tuple[bool, bool]] = field(default_factory=list)
    """Open ``.if`` blocks: whether this branch is read, whether one of its branches was."""

    def condition(self, said: Sequence[str], text: str, place: Place) -> None:
        """Take a ``.if``, ``.elif``, ``.else`` or ``.endif`` line."""
        match said[0]:
            case ".if":
                taken = self.reads and self._holds(text, place)
                self.blocks.append((taken, taken or not self.reads))
            case ".elif" if self.blocks:
                _, done = self.blocks.pop()
                taken = not done and self._holds(text, place)
                self.blocks.append((taken, done or taken))
            case ".else" if self.blocks:
                _, done = self.blocks.pop()
                self.blocks.append((not done, True))
            case ".endif" if self.blocks:
                self.blocks.pop()
            case _:
                pass

    @property
    def reads(self) -> bool:
        """Whether the lines here count."""
        return all(taken for taken, _ in self.blocks)

    def _holds(self, text: str, place: Place) -> bool:
        known = judge(text, self.env, self.version)
        if known is not None:
            return known
        name = " ".join(text.split())
        self.conditions.setdefault(name, place)
        return self.assumed.get(name, True)

    def line(self, said: tuple[str, ...], place: Place) -> None:
        """Take any other line."""
        if said[0] in SECTIONS:
            self._section(said, place)
        elif self.in_global:
            self.settings = settings_line(self.settings, said, place, self.env)
        elif self.now is not None:
            self.now.line(said, place, self.env)

    def _section(self, said: tuple[str, ...], place: Place) -> None:
        kind, *rest = said
        self.in_global, self.now = kind == "global", None
        self.is_part = self.is_part and kind not in {"global", "defaults"}
        if kind == "global":
            self.settings = replace(self.settings, place=self.settings.place or place)
        if kind not in PROXIES:
            return
        name = "" if not rest or rest[0] == "from" else rest.pop(0)
        base = self.defaults.get(rest[1]) if len(rest) > 1 and rest[0] == "from" else None
        if kind == "defaults":  # begins from HAProxy's own values unless it says from which it takes them
            self.now = self.last = (base or Section()).child(kind, name, place)
            if name:
                self.defaults[name] = self.now
            return
        self.now = (base or self.last).child(kind, name, place)
        if kind == "listen" and rest and rest[0] != "from":  # as in old files: listen NAME ADDRESS
            self.now.line(("bind", *rest), place, self.env)
        self.sections.append(self.now)


def _read(sources: Sequence[Source], assumed: Mapping[str, bool], version: tuple[int, ...] | None) -> Config:
    reader = _Reader(assumed, version)
    for source in sources:
        reader.now, reader.in_global, reader.blocks = None, False, []
        for number, line in _lines(source.text):
            said = words(line, reader.env)
            if not said:
                continue
            place = Place(source.name, number)
            if said[0] in _CONDITIONS:
                reader.condition(said, line.strip().removeprefix(said[0]).strip(), place)
            elif reader.reads:
                reader.line(said, place)
    return Config(
        files=tuple(source.name for source in sources),
        settings=reader.settings,
        proxies=tuple(build(section) for section in reader.sections),
        assumed={name: assumed.get(name, True) for name in reader.conditions},
        conditions=reader.conditions,
        is_part=reader.is_part,
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines by their number; only a line feed ends one."""
    return enumerate(text.removeprefix("\ufeff").split("\n"), 1)
