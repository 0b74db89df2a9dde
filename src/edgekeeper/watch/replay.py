"""What a watch would have done: the same ``decide`` over recorded lines and answers, in virtual time. Pure.

The recorded world goes on until a simulated cure makes it another one. A cure is assumed to help once it is done, for as long as
the recorded wedge would have lasted, unless the record shows that a start of the service did not help. The lines that the record
has of a wedge that was cured earlier are then not fed in: a service that is well would not have written them. Guards and turns are
assumed to permit. What these assumptions are is part of the outcome, as sentences.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from edgekeeper.model.budget import Budget, spend
from edgekeeper.model.time import Span
from edgekeeper.watch.decide import CALM_S, begin, decide, due
from edgekeeper.watch.state import Answered, Apply, Ask, Cured, Event, Hit, Look, Outlook, Phase, Policy, Refused, Started, Tick
from edgekeeper.watch.world import Kind, Sign, Wedge, World

CURE_S: Final = 2.0
"""How long a cure is assumed to take until the service answers, when nothing else is said."""

_WELL_S: Final = 0.005
_TAIL_S: Final = 30.0
"""So long after the end of the record what was begun may still be carried out."""


@dataclass(frozen=True, slots=True)
class Told:
    """A decision that is more than holding still: when (Unix seconds), of which kind, and its sentence."""

    at: float
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class SimulatedCure:
    """A cure: when its first step began, whether the service was well just then, and whether it helped (None: it was not told any more)."""

    at: float
    needless: bool
    helped: bool | None = None


@dataclass(frozen=True, slots=True)
class Dark:
    """A time without service: when it began, for how long, and what ended it (cure, a line's kind, silence, probe, nothing)."""

    at: float
    span: Span
    by: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What would have happened.

    ``healed``: the probe had failed and answered again before a cure, because the service healed or somebody else started it; ``false_alarms``: lines came, and the probe never failed;
    ``still_wanted``: the record ends before the cure that is wanted is permitted. ``left_out``: recorded lines that would not have
    been written.
    """

    told: tuple[Told, ...]
    cures: tuple[SimulatedCure, ...]
    dark: tuple[Dark, ...]
    armed: int
    confirmed: int
    suppressed: int
    healed: int
    false_alarms: int
    still_wanted: str
    left_out: int
    notes: tuple[str, ...]

    @property
    def needless(self) -> int:
        """Cures of a service that was well."""
        return sum(cure.needless for cure in self.cures)

    @property
    def total(self) -> Span:
        """All times without service together."""
        return total(self.dark)

    @property
    def longest(self) -> Span | None:
        """The one that may have lasted longest; None when there was none."""
        return longest(self.dark)


def total(dark: Iterable[Dark]) -> Span:
    """The sum of all times without service."""
    spans = [one.span for one in dark]
    return Span(sum(span.min_s for span in spans), sum(span.max_s for span in spans))


def longest(dark: Iterable[Dark]) -> Span | None:
    """The span that may have been the longest; None when there is none."""
    return max((one.span for one in dark), key=lambda span: (span.max_s, span.min_s), default=None)


def as_it_happened(world: World) -> tuple[Dark, ...]:
    """The times without service that the record tells of, whoever ended them."""
    return _dark([_Segment(w.start, w.end, w.began, w.ended, w.by) for w in world.wedges])


def simulate(policy: Policy, budget: Budget, signs: Sequence[Sign], world: World, *, cure_s: float = CURE_S, answer_s: float = 1.0) -> Outcome:
    """Run the watch over the record. ``signs`` are in the order of time; ``answer_s`` is how long a failed answer takes when the record does not say."""
    return _Replay(policy, budget, signs, world, cure_s, answer_s).run()


@dataclass(frozen=True, slots=True)
class _Segment:
    start: float
    end: float
    began: tuple[float, float]
    ended: tuple[float, float]
    by: str


def _dark(segments: Iterable[_Segment]) -> tuple[Dark, ...]:
    """Segments that touch are one time without service."""
    merged: list[_Segment] = []
    for one in sorted(segments, key=lambda s: (s.start, s.end)):
        if merged and one.start <= merged[-1].end:
            if one.end > merged[-1].end:
                merged[-1] = replace(merged[-1], end=one.end, ended=one.ended, by=one.by)
        else:
            merged.append(one)
    out = []
    for one in merged:
        least = max(0.0, one.ended[0] - one.began[1])
        out.append(Dark(one.start, Span(least, max(least, one.ended[1] - one.began[0])), one.by))
    return tuple(out)


class _Service:
    """The service of the record, in a world in which it is cured at other times."""

    def __init__(self, wedges: Sequence[Wedge], cure_s: float, proof_every_s: float) -> None:
        self._wedges = wedges
        self._starts = [w.start for w in wedges]
        self._cure_s = cure_s
        self._proof_every_s = proof_every_s
        self._cured: dict[int, tuple[float, float]] = {}
        self._downs: list[tuple[float, float]] = []

    def _index(self, at: float) -> int | None:
        number = bisect_right(self._starts, at) - 1
        return number if number >= 0 and at < self._wedges[number].end else None

    def _wedged(self, at: float) -> int | None:
        number = self._index(at)
        return None if number is None or (number in self._cured and at >= self._cured[number][0]) else number

    def dead(self, at: float) -> bool:
        """Whether a question that is asked now fails."""
        return bool(self._downs and at < self._downs[-1][1]) or self._wedged(at) is not None

    def answer_s(self, at: float) -> float | None:
        """How long the recorded answer took, where there is one."""
        number = self._index(at)
        return None if number is None else self._wedges[number].answer_s

    def cure(self, at: float) -> None:
        """A step of a cure begins."""
        number = self._wedged(at)
        self._downs.append((at, at + self._cure_s))
        if number is not None and not self._wedges[number].vain:
            self._cured[number] = (at, at + self._cure_s)

    def silent(self, at: float) -> bool:
        """Whether a line that the record has at this time would not have been written: the wedge that it tells of is over."""
        number = self._index(at)
        return bool(self._downs and self._downs[-1][0] < at < self._downs[-1][1]) or (number in self._cured and at > self._cured[number or 0][0])

    def changes(self, at: float) -> float:
        """When, after this time, it may next be otherwise; infinite when it stays as it is."""
        times = [self._downs[-1][1]] if self._downs and at < self._downs[-1][1] else []
        number = bisect_right(self._starts, at)
        if number < len(self._starts):
            times.append(self._starts[number])
        if number and at < self._wedges[number - 1].end:
            times.append(self._wedges[number - 1].end)
        return min(times, default=math.inf)

    def dark(self) -> tuple[Dark, ...]:
        """The times without service in this world."""
        out = []
        for number, w in enumerate(self._wedges):
            cured = self._cured.get(number)
            if cured is None:
                out.append(_Segment(w.start, w.end, w.began, w.ended, w.by))
            else:
                out.append(_Segment(w.start, cured[1], w.began, (cured[1], cured[1] + self._proof_every_s), "cure"))
        out += [_Segment(at, ready, (at, at), (ready, ready + self._proof_every_s), "cure") for at, ready in self._downs]
        return _dark(out)


class _Replay:
    """One run: the clock is the next thing that happens."""

    def __init__(self, policy: Policy, budget: Budget, signs: Sequence[Sign], world: World, cure_s: float, answer_s: float) -> None:
        self._policy = policy
        self._budget = budget
        self._signs = signs
        self._world = world
        self._cure_s = cure_s
        self._answer_s = answer_s
        self._service = _Service(world.wedges, cure_s, policy.proof_every_s)
        begins = [*(sign.at for sign in signs[:1]), *(w.start for w in world.wedges[:1])]
        self._now = min(begins, default=world.last) - policy.every_s
        self._state = begin(self._now, policy)
        self._pending: list[tuple[float, int, Event]] = []
        self._number = 0
        self._told: list[Told] = []
        self._cures: list[SimulatedCure] = []
        self._counts = dict.fromkeys(("arm", "confirm", "suppress", "healed", "false"), 0)
        self._failed = False
        self._left_out = 0

    def run(self) -> Outcome:
        """Until the record ends and what was begun by then is over."""
        at = 0
        while True:
            sign = self._signs[at].at if at < len(self._signs) else math.inf
            pending = self._pending[0][0] if self._pending else math.inf
            tick = self._tick_at()
            upcoming = min(sign, pending, tick)
            if math.isinf(upcoming) or self._over(upcoming):
                break
            self._now = max(self._now, upcoming)
            if sign <= upcoming:
                self._sign(self._signs[at])
                at += 1
            elif pending <= upcoming:
                event = heapq.heappop(self._pending)[2]
                if not (isinstance(event, Hit) and self._service.silent(self._now)):
                    self._feed(event)
            else:
                self._feed(Tick())
        return self._outcome()

    def _over(self, upcoming: float) -> bool:
        if upcoming <= self._world.last or self._state.phase in {Phase.CURING, Phase.PROVING}:
            return False
        return self._state.phase is Phase.QUIET or bool(self._state.held) or upcoming > self._world.last + _TAIL_S

    def _tick_at(self) -> float:
        """When time itself is to be fed in: when it is due, or later where all that lies between would change nothing.

        Of the many rounds of a service that stays as it is only the last one before something happens is asked.
        """
        at = max(due(self._state, self._policy), self._now)
        if math.isinf(at):
            return at
        dead = self._service.dead(at)
        state = self._state
        change = self._service.changes(at)
        if state.phase is Phase.QUIET and not dead and not state.failed:
            return _later(at, min(change, max(self._world.last, at)), self._policy.every_s)
        if state.phase is Phase.ARMED and self._policy.probed and not dead and not state.failed:
            return _later(at, min(change, max(state.last_hit, state.since) + CALM_S), self._policy.confirm_every_s)
        if state.phase is Phase.WANTED and dead and state.held in {"budget", "shadow"}:
            free = state.until if state.until is not None else math.inf
            return max(at, min(change, free, self._world.last + self._policy.every_s) - 1.0)
        return at

    def _sign(self, sign: Sign) -> None:
        if self._service.silent(sign.at):
            self._left_out += sign.count if sign.kind is Kind.HIT else 0
        elif sign.kind is Kind.STARTED:
            self._feed(Started(sign.at))
        elif sign.kind is Kind.HIT:
            for _ in range(max(1, min(sign.count, self._policy.burst.lines))):
                self._feed(Hit(sign.text, sign.rest))
                if self._state.phase is not Phase.QUIET:
                    break
            if sign.until - sign.at > 1.0:
                self._later(sign.until - sign.at, Hit(sign.text, sign.rest))

    def _feed(self, event: Event) -> None:
        before = self._state
        decision = decide(before, event, self._now, self._policy)
        self._state = decision.state
        self._count(before.phase, event, decision.kind)
        if decision.kind != "hold":
            self._told.append(Told(self._now, decision.kind, decision.why))
        match decision.do:
            case None:
                pass
            case Ask():
                dead = self._service.dead(self._now)
                took = (self._service.answer_s(self._now) or self._answer_s) if dead else _WELL_S
                why = "the probe fails" if dead else "the probe answers well"
                self._later(took, Answered(not dead, why, self._now))
            case Look():
                self._feed(Outlook(None, None, self._budget, self._now))
            case Apply(step=step):
                self._apply(step)

    def _apply(self, step: int) -> None:
        if step == 0:
            spending = spend(self._budget, self._now)
            if not spending.allowed:
                self._feed(Refused(spending.why, self._now + spending.again_s))
                return
            self._budget = spending.budget
            self._cures.append(SimulatedCure(self._now, needless=not self._service.dead(self._now)))
        self._service.cure(self._now)
        self._later(self._cure_s, Cured())

    def _later(self, seconds: float, event: Event) -> None:
        self._number += 1
        heapq.heappush(self._pending, (self._now + seconds, self._number, event))

    def _count(self, phase: Phase, event: Event, kind: str) -> None:
        """What the totals are made of."""
        if kind in self._counts:
            self._counts[kind] += 1
        match kind:
            case "arm":
                self._failed = False
            case "disarm":
                self._counts["healed" if self._failed else "false"] += not self._cancelled
            case "cancel":
                self._counts["healed"] += 1
            case "prove" | "fail":
                self._budget = replace(self._budget, poor=0 if kind == "prove" else self._budget.poor + 1)
                if self._cures:
                    self._cures[-1] = replace(self._cures[-1], helped=kind == "prove")
            case _:
                if phase is Phase.ARMED and isinstance(event, Answered) and not event.well:
                    self._failed = True
        if kind in {"arm", "cancel", "disarm"}:
            self._cancelled = kind == "cancel"

    _cancelled = False

    def _outcome(self) -> Outcome:
        world = self._world
        notes = [*world.notes, f"a cure is assumed to help after {self._cure_s:g} s; guards and turns are assumed to permit it"]
        vain = sum(w.vain for w in world.wedges)
        if vain:
            notes.append(
                f"in {vain} of {len(world.wedges)} wedges the record has a start of the service that did not help; a simulated cure does not help there either"
            )
        if self._left_out:
            notes.append(f"{self._left_out} recorded lines are left out: a simulated cure had ended by then what they tell of")
        wanted = self._state.phase is Phase.WANTED
        return Outcome(
            told=tuple(self._told),
            cures=tuple(self._cures),
            dark=self._service.dark(),
            armed=self._counts["arm"],
            confirmed=self._counts["confirm"],
            suppressed=self._counts["suppress"],
            healed=self._counts["healed"],
            false_alarms=self._counts["false"],
            still_wanted=(self._told[-1].why if self._told else "a cure is wanted") if wanted else "",
            left_out=self._left_out,
            notes=tuple(notes),
        )


def _later(at: float, until: float, every_s: float) -> float:
    """The last of the rounds that begin at ``at`` before ``until``."""
    if until <= at + every_s:
        return at
    return at + math.floor((until - at - 1e-6) / every_s) * every_s
