"""The minds of guard and sweep: (state, what is seen, now) -> (state, acts and what is held back, each with its reason). Pure.

``decide`` is guard's, for a HAProxy that is not ours: it frees the sessions of servers that stay DOWN or in MAINT, and puts a server
that passes its shallow check but is a black hole to our own probe into MAINT. What it never does: touch sessions of a server that is
up, take the last usable server of a backend, take more than one of three, act more often than the budget allows, act on what it
cannot see, or give back a server that somebody else has put into MAINT.

Times: ``now`` are seconds that never jump (for holds and the budget), ``wall`` is Unix time (for marks, which outlive a restart).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from edgekeeper.model.budget import Budget, spend
from edgekeeper.model.reach import Reach

T = TypeVar("T")
Key = tuple[str, str]
"""A server: the name of its backend, and its own."""

LONGEST_PAUSE_S = 60.0
"""Between two attempts to free the same server: what does not go at once must not use up the budget."""

PROMPT_S = 5.0
"""A MAINT that began within this time of a mark's intent is that mark (the status has whole seconds)."""


class Condition(StrEnum):
    """What a server's status means for its sessions."""

    UP = "up"
    DOWN = "down"
    MAINT = "maint"
    OUT = "out"
    """Gets no new sessions, but those that it has are served: draining, or its name is not resolved any more."""


def condition(status: str) -> Condition:
    """The meaning of the column ``status`` of ``show stat``: ``UP 1/3``, ``DOWN (agent)``, ``MAINT (via be/srv)``, ``no check``.

    ``MAINT (resolution)`` is not MAINT here: DNS does not name the server, which says nothing about the sessions that it serves.
    """
    if status.startswith("MAINT"):
        return Condition.OUT if "resolution" in status else Condition.MAINT
    if status.startswith("DOWN"):
        return Condition.DOWN
    return Condition.OUT if status.startswith(("NOLB", "DRAIN")) else Condition.UP


@dataclass(frozen=True, slots=True)
class Seen:
    """One server as the running HAProxy tells it.

    ``sessions`` are pairs of a worker's pid and how many sessions it has on the server; ``since_s`` are the seconds since the
    condition last changed, where that is known; ``probed`` is whether our own probe asks the server.
    """

    backend: str
    server: str
    condition: Condition
    sessions: tuple[tuple[int, int], ...] = ()
    since_s: int | None = None
    probed: bool = False

    @property
    def key(self) -> Key:
        """Backend and server."""
        return (self.backend, self.server)

    @property
    def total(self) -> int:
        """Sessions in all workers."""
        return sum(number for _, number in self.sessions)


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is seen at one moment; with ``blind`` nothing is, and it says why.

    ``worker`` is the pid of the current worker, ``started`` the Unix time at which it began, where that is known; ``round`` are the verdicts of one round of our probe, all asked at the same
    moment, or None when no round has ended since the picture before.
    """

    servers: tuple[Seen, ...] = ()
    worker: int = 0
    blind: str = ""
    round: Mapping[Key, Reach] | None = None
    started: float | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A server that guard has put, or is about to put, into MAINT: when (Unix time), in which worker, and whether it was done."""

    at: float
    worker: int
    done: bool
    why: str


@dataclass(frozen=True, slots=True)
class Rules:
    """How long a server must be DOWN, and how many rounds of the probe in a row it takes to mark and to release."""

    hold_s: float = 2.0
    confirm: int = 3
    rise: int = 3


@dataclass(frozen=True, slots=True)
class FreeSessions:
    """End the sessions of a server in the workers that have some."""

    backend: str
    server: str
    workers: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class MarkServer:
    """Put a server into MAINT, then end its sessions."""

    backend: str
    server: str
    why: str


@dataclass(frozen=True, slots=True)
class ReleaseServer:
    """Take a server that guard marked out of MAINT."""

    backend: str
    server: str
    why: str


Act = FreeSessions | MarkServer | ReleaseServer


@dataclass(frozen=True, slots=True)
class Note:
    """What was held back, or changed by itself, told once: the object, a word for the kind, and a sentence."""

    object: str
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Tried:
    """How often in a row a server's sessions were freed, and when last."""

    times: int
    at: float


@dataclass(frozen=True, slots=True)
class State:
    """What guard remembers from picture to picture."""

    budget: Budget
    marks: Mapping[Key, Mark] = field(default_factory=dict)
    since: Mapping[Key, tuple[Condition, float]] = field(default_factory=dict)
    tried: Mapping[Key, Tried] = field(default_factory=dict)
    silent: Mapping[Key, int] = field(default_factory=dict)
    well: Mapping[Key, int] = field(default_factory=dict)
    hands_off: frozenset[Key] = frozenset()
    """Servers whose mark a person has undone: not marked again until they have answered."""
    said: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """The state afterwards, what to do in this order, and what to tell."""

    state: State
    acts: tuple[Act, ...] = ()
    notes: tuple[Note, ...] = ()


def decide(state: State, seen: Picture, rules: Rules, now: float, wall: float) -> Decision:
    """What to do about this picture. ``done`` and ``undone`` tell the state what became of each act."""
    if seen.blind:
        return _Turn(replace(state, since={}, silent={}, well={}), seen, rules, now, wall).blind()
    return _Turn(state, seen, rules, now, wall).all()


def done(state: State, act: Act, worker: int, wall: float) -> State:
    """An act was carried out, and seen to be."""
    key = (act.backend, act.server)
    match act:
        case MarkServer():
            return replace(state, marks={**state.marks, key: Mark(wall, worker, True, act.why)})
        case ReleaseServer():
            return replace(state, marks=_without(state.marks, key), well=_without(state.well, key), silent=_without(state.silent, key))
        case FreeSessions():
            return state


def unsure(state: State, act: Act, worker: int, wall: float) -> State:
    """Whether an act was carried out is not known (no answer came): the pictures to come will tell."""
    state = undone(state, act)
    if not isinstance(act, MarkServer):
        return state
    return replace(state, marks={**state.marks, (act.backend, act.server): Mark(wall, worker, False, act.why)})


def undone(state: State, act: Act) -> State:
    """An act could not be carried out: what it rests on must be seen anew before it is tried again."""
    key = (act.backend, act.server)
    return replace(state, since=_without(state.since, key), silent=_without(state.silent, key), well=_without(state.well, key))


def _without(pairs: Mapping[Key, T], key: Key) -> dict[Key, T]:
    return {k: v for k, v in pairs.items() if k != key}


class _Turn:
    """One decision under way: what is known, and what has come of it so far."""

    def __init__(self, state: State, seen: Picture, rules: Rules, now: float, wall: float) -> None:
        self.state, self.seen, self.rules, self.now, self.wall = state, seen, rules, now, wall
        self.servers = {server.key: server for server in seen.servers}
        self.budget = state.budget
        self.marks = dict(state.marks)
        self.hands_off = set(state.hands_off)
        self.silent, self.well, self.tried = dict(state.silent), dict(state.well), dict(state.tried)
        self.acts: list[Act] = []
        self.told: list[Note] = []
        self.held: dict[str, Note] = {}

    def blind(self) -> Decision:
        self.hold("guard", "blind", f"blind: {self.seen.blind}; nothing is done until HAProxy can be seen again")
        # A command that was sent to a frozen HAProxy may be carried out when it wakes.
        self.marks = {key: mark if mark.done else replace(mark, at=self.wall) for key, mark in self.marks.items()}
        return self._decision(keep=self.state.said, since={})

    def all(self) -> Decision:
        if self.state.said.get("guard"):
            self.told.append(Note("guard", "sighted", "HAProxy can be seen again; every hold begins anew"))
        since = {key: self._since(server) for key, server in self.servers.items()}
        self._gone_marks()
        keep: dict[str, str] = {}
        if self.seen.round is None:  # what is about rounds stands until the next
            keep = {name: kind for name, kind in self.state.said.items() if name.startswith(("mark ", "probe "))}
        else:
            for backend in sorted({server.backend for server in self.seen.servers if server.probed}):
                self._round(backend, self.seen.round)
        self._free(since)
        return self._decision(keep=keep, since=since)

    def _decision(self, keep: Mapping[str, str], since: Mapping[Key, tuple[Condition, float]]) -> Decision:
        news = [note for name, note in self.held.items() if self.state.said.get(name) != note.kind]
        said = {**keep, **{name: note.kind for name, note in self.held.items()}}
        if not self.seen.blind:
            self.silent, self.well = ({k: n for k, n in counts.items() if k in self.servers and n} for counts in (self.silent, self.well))
        state = State(self.budget, self.marks, since, self.tried, self.silent, self.well, frozenset(self.hands_off), said)
        return Decision(state, tuple(self.acts), (*self.told, *news))

    def hold(self, name: str, kind: str, why: str) -> None:
        self.held[name] = Note(name.removeprefix("mark ").removeprefix("probe ").removeprefix("free "), kind, why)

    def may(self, name: str, what: str) -> bool:
        """Whether the budget has one act left; it is taken."""
        answer = spend(self.budget, self.now)
        self.budget = answer.budget
        if not answer.allowed:
            self.hold(name, "budget", f"{what}, but the budget is spent: {answer.why}")
        return answer.allowed

    def _since(self, server: Seen) -> tuple[Condition, float]:
        before = self.state.since.get(server.key)
        return before if before is not None and before[0] is server.condition else (server.condition, self.now)

    def _beside(self, server: Seen) -> Iterator[Seen]:
        """The other servers of its backend that are up."""
        return (o for o in self.seen.servers if o.backend == server.backend and o.key != server.key and o.condition is Condition.UP)

    # marks --------------------------------------------------------------------------------

    def _gone_marks(self) -> None:
        """Marks that are not there: never set, lost in a reload, or undone by a person; and those that turn out to be there."""
        for key, mark in self.state.marks.items():
            server, name = self.servers.get(key), "/".join(key)
            if server is None:
                why = f"{name} is not there any more; its mark is forgotten"
            elif server.condition is Condition.MAINT:
                why = self._in_maint(server, mark, name)
            elif not mark.done and abs(self.wall - mark.at) <= PROMPT_S:
                continue  # the command may be on its way
            elif not mark.done:
                why = f"{name} was about to be marked and is not in MAINT; it is judged anew"
            elif mark.worker == self.seen.worker and (self.seen.started or 0.0) <= mark.at:
                self.hands_off.add(key)
                why = f"{name} was taken out of MAINT by somebody else; it is left alone until it has answered the probe"
            else:
                why = f"{name} is not in MAINT any more since HAProxy was reloaded; it is judged anew"
            if why:
                del self.marks[key]
                self.silent.pop(key, None)
                self.told.append(Note(name, "forgotten", why))

    def _in_maint(self, server: Seen, mark: Mark, name: str) -> str:
        """Why a server's MAINT is not by the mark that guard has of it; nothing when it is."""
        began = self.wall - server.since_s if server.since_s is not None else mark.at
        if not mark.done and abs(began - mark.at) <= PROMPT_S:
            self.marks[server.key] = replace(mark, done=True)
            self.told.append(Note(name, "adopted", f"{name} is in MAINT since guard was about to mark it: the mark is guard's ({mark.why})"))
        elif not mark.done:
            return f"{name} is in MAINT, but not since guard was about to mark it; it is somebody else's and stays"
        elif mark.worker != self.seen.worker:
            # A reload that keeps the servers' state keeps its age too (measured on 2.6, 3.0 and 3.2); `disabled` in the file begins anew.
            if began > mark.at + PROMPT_S:
                return f"{name} is in MAINT since HAProxy was reloaded, not since guard marked it; it is somebody else's and stays"
            self.marks[server.key] = replace(mark, worker=self.seen.worker)
        return ""

    # rounds of the probe ------------------------------------------------------------------

    def _round(self, backend: str, verdicts: Mapping[Key, Reach]) -> None:
        mine = {s.key: verdicts.get(s.key, Reach.UNKNOWN) for s in self.seen.servers if s.backend == backend and s.probed}
        up = [key for key in mine if self.servers[key].condition is Condition.UP]
        if len(up) > 1 and not any(reach in (Reach.OK, Reach.UNREADY) for reach in mine.values()):
            found = ", ".join(f"{number} {reach}" for reach, number in sorted(Counter(mine.values()).items()))
            why = f"blind: HAProxy holds {len(up)} servers of {backend} up and none answers the probe ({found}); the probe's own way is doubted, nothing is marked"
            self.hold(f"probe {backend}", "blind", why)
            for key in mine:  # what was counted on a broken way is no evidence
                self.silent.pop(key, None)
                self.well.pop(key, None)
            return
        for key, reach in mine.items():
            self.silent[key] = self.silent.get(key, 0) + 1 if reach is Reach.BLACK_HOLE else 0
            self.well[key] = self.well.get(key, 0) + 1 if reach is Reach.OK else 0
            if reach is Reach.OK:
                self.hands_off.discard(key)
            if self.marks.get(key) and self.well[key] >= self.rules.rise:
                self.acts.append(ReleaseServer(*key, f"answers the probe again, {self.well[key]} times in a row"))
        worst_first = sorted(up, key=lambda key: (-self.silent.get(key, 0), key))
        for key in worst_first:
            if self.silent.get(key, 0) >= self.rules.confirm:
                self._mark(key, mine)

    def _mark(self, key: Key, verdicts: Mapping[Key, Reach]) -> None:
        backend, name = key[0], "/".join(key)
        siblings = [s for s in self.seen.servers if s.backend == backend]
        marked = [k for k in self.marks if k[0] == backend] + [a for a in self.acts if isinstance(a, MarkServer) and a.backend == backend]
        limit = max(1, len(siblings) // 3)
        what = f"{name} passes its check and gave the probe no byte {self.silent[key]} times in a row"
        going = {(a.backend, a.server) for a in self.acts if isinstance(a, MarkServer)}
        awake = [o for o in self._beside(self.servers[key]) if verdicts.get(o.key) is Reach.OK and o.key not in going]
        if key in self.hands_off:
            self.hold(f"mark {name}", "hands off", f"{what}, but somebody else has undone guard's mark; it is left alone until it has answered")
        elif not awake:
            self.hold(f"mark {name}", "last usable", f"{what}, but no other server of {backend} is up and answers the probe; it is not marked")
        elif len(marked) >= limit:
            self.hold(f"mark {name}", "one of three", f"{what}, but {len(marked)} of {len(siblings)} servers of {backend} are marked already; it is not marked")
        elif self.may(f"mark {name}", what):
            self.acts.append(MarkServer(*key, f"{what}; {len(awake)} other of {backend} answer"))

    # sessions -----------------------------------------------------------------------------

    def _free(self, since: Mapping[Key, tuple[Condition, float]]) -> None:
        for key, server in self.servers.items():
            if server.condition not in (Condition.DOWN, Condition.MAINT) or not server.total:
                self.tried.pop(key, None)
                continue
            name, for_s, tried = "/".join(key), self.now - since[key][1], self.tried.get(key)
            pause_s = min(self.rules.hold_s * 2**tried.times, LONGEST_PAUSE_S) if tried is not None else 0.0
            if for_s < self.rules.hold_s or (tried is not None and self.now - tried.at < pause_s):
                if f"free {name}" in self.state.said:
                    self.held[f"free {name}"] = Note(name, self.state.said[f"free {name}"], "")
                continue
            what = f"{name} is {server.condition.upper()} for {for_s:.1f} s and has {server.total} sessions"
            if not any(True for _ in self._beside(server)):
                self.hold(f"free {name}", "nowhere to go", f"{what}, but no other server of {server.backend} is up: they are not cut")
            elif self.may(f"free {name}", what):
                self.tried[key] = Tried((tried.times if tried is not None else 0) + 1, self.now)
                self.acts.append(FreeSessions(*key, tuple(pid for pid, number in server.sessions if number), what))
