"""A watch with its service, its budget and whatever holds a cure back, in a time that is a number."""

from __future__ import annotations

from dataclasses import dataclass, field

from edgekeeper.model.budget import Bucket, Budget, Window, spend
from edgekeeper.watch.decide import begin, decide, due
from edgekeeper.watch.state import Answered, Apply, Ask, Cured, Decision, Event, Hit, Look, Outlook, Phase, Policy, Refused, State, Tick

USUAL = (Bucket(3, 60.0), Window(6, 3600.0))
LINE = Hit("couldn't fetch peer state: KEY", "couldn't fetch peer state: KEY")


@dataclass
class World:
    """A watch with a service that is well or not, and everything that may hold a cure back; time is a number."""

    policy: Policy = field(default_factory=Policy)
    rules: tuple[Window | Bucket, ...] = USUAL
    cure_helps: bool = True
    now: float = 1000.0
    well: bool = True
    guard: str | None = None
    turn: str | None = None
    spent: tuple[float, ...] = ()
    kinds: list[str] = field(default_factory=list)
    acts: list[tuple[float, int]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    state: State = field(init=False)
    cure: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        self.state = begin(self.now, self.policy)

    @property
    def budget(self) -> Budget:
        return Budget(self.rules, self.spent)

    def feed(self, event: Event) -> Decision:
        decision = decide(self.state, event, self.now, self.policy)
        assert decision.why
        before, self.state = self.state, decision.state
        if decision.kind != "hold":
            self.kinds.append(decision.kind)
        self.said.append(decision.why)
        if before.phase is Phase.WANTED and self.state.phase is Phase.QUIET:
            assert decision.kind in {"cancel", "prove"}, "a wanted cure was forgotten"
        match decision.do:
            case Ask():
                self.feed(Answered(self.well, "it answers" if self.well else "no answer within 1 s", self.now))
            case Look():
                self.feed(Outlook(self.guard, self.turn, self.budget, self.now))
            case Apply(step):
                self._apply(step)
            case None:
                pass
        return decision

    def _apply(self, step: int) -> None:
        assert self.cure is None, "two cures at once"
        assert self.guard is None
        assert self.turn is None
        if step == 0:
            answer = spend(self.budget, self.now)
            if not answer.allowed:
                self.feed(Refused(answer.why, self.now + answer.again_s))
                return
            self.spent = answer.budget.spent
            self.acts.append((self.now, step))
        self.cure = (self.now + 2.0, step)

    def cured(self) -> None:
        self.cure = None
        self.well = self.well or self.cure_helps
        self.feed(Cured())

    def go_on(self, seconds: float, lines_every: float | None = None) -> None:
        """Let time pass as the loop of a watch does: tick when something is due."""
        end = self.now + seconds
        line = self.now
        while self.now < end:
            times = [end, due(self.state, self.policy)]
            if self.cure is not None:
                times.append(self.cure[0])
            if lines_every is not None:
                times.append(line)
            self.now = max(self.now, min(times))
            if lines_every is not None and self.now >= line:
                self.feed(LINE)
                line += lines_every
            if self.cure is not None and self.now >= self.cure[0]:
                self.cured()
            if due(self.state, self.policy) <= self.now:
                self.feed(Tick())
            elif self.now >= end:
                break

    def wedge(self) -> None:
        self.well = False
        self.feed(LINE)
