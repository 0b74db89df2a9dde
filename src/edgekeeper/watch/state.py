"""What a watch knows, what can happen to it, and what it can be told to do: the words that ``decide`` is written in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from edgekeeper.model.budget import Budget
from edgekeeper.watch.fingerprint import Burst, BurstState


class Phase(StrEnum):
    """Where a watch stands."""

    QUIET = "quiet"
    ARMED = "armed"
    """A line came; the probe is asked whether it is true."""
    WANTED = "wanted"
    """The service is known to be down; a cure waits for its permission."""
    CURING = "curing"
    PROVING = "proving"
    """A cure was applied; the probe is asked whether it helped."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How one watch decides. ``confirm`` off acts on a line alone; ``probed`` is whether there is a probe; ``steps`` is the number of cures.

    Times in seconds: between rounds, until a round is answered at the latest, between those of an armed watch, without a verdict
    after a start, between those of the proof, and until a cure counts as having failed. ``rounds`` failed ones in a row confirm
    without a line, ``failures`` with one.
    """

    confirm: bool = True
    probed: bool = True
    every_s: float = 1.0
    timeout_s: float = 1.0
    confirm_every_s: float = 0.5
    rounds: int = 3
    failures: int = 2
    grace_s: float = 10.0
    burst: Burst = field(default_factory=Burst)
    steps: int = 1
    proof_every_s: float = 0.25
    proof_within_s: float = 15.0
    shadow: bool = False


@dataclass(frozen=True, slots=True)
class Former:
    """What an earlier process knew to be wrong: since when, by which line (empty: by failed rounds), and whether this step of a cure was begun."""

    sign: float
    line: str = ""
    curing: bool = False
    step: int = 0


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matched a fingerprint, and what follows from the match on (for telling lines apart)."""

    text: str
    rest: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A round of the probe ended: whether the service is well, why, and when it was asked."""

    well: bool
    why: str
    asked: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """What was found at a ``Look``: why guard or turn forbid a cure (None: they do not), and the budget, with the time in its own terms."""

    guard: str | None
    turn: str | None
    budget: Budget
    at: float


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What holds a wanted cure back: its kind (grace, guard, budget, shadow, turn), the sentence, and until when, where that is known."""

    kind: str
    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The permission came to nothing after all (the shared store said no, or could not be written); ``until`` is when to try again."""

    why: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Cured:
    """The step that was applied has ended; ``failed`` is why it could not be carried out, or None."""

    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The service was started, by whomever, at this time (``now``'s clock)."""

    at: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Hit | Answered | Outlook | Refused | Cured | Started | Tick


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the probe a round now, whatever rounds are still under way."""


@dataclass(frozen=True, slots=True)
class Look:
    """Find out about guard, turn and budget, and report as ``Outlook``."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Spend the budget (only for the first step of a cure) and apply this step."""

    step: int


Do = Ask | Look | Apply | None


@dataclass(frozen=True, slots=True)
class State:
    """Where a watch stands, and what it remembers.

    ``sign`` is when the first sign of the present trouble came, ``line`` which. ``failed`` are the times at which the rounds were
    asked that failed since the last good one. ``held`` says by what a wanted cure is held back. ``step`` is the next step of the
    cure, and beyond the first only after others were applied in vain.
    """

    phase: Phase = Phase.QUIET
    since: float = 0.0
    sign: float = 0.0
    line: str = ""
    last_hit: float = 0.0
    burst: BurstState = field(default_factory=BurstState)
    failed: tuple[float, ...] = ()
    bad: int = 0
    """Rounds that failed since the first sign."""
    well_asked: float = float("-inf")
    bad_asked: float = float("-inf")
    next_ask: float = 0.0
    next_look: float = 0.0
    grace_until: float = 0.0
    step: int = 0
    held: str = ""
    until: float | None = None
    cured_at: float = 0.0
    proof_until: float = 0.0
    recovered: tuple[float, float] | None = None
    """Seconds from the first sign to the last answer that failed and to the first good one, of the cure that was proved last."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The state afterwards, what kind of decision it is, its sentence, and what is to be done.

    Kinds: hold, arm, disarm, confirm, suppress, cancel, act, prove, fail.
    """

    state: State
    kind: str
    why: str
    do: Do = None
