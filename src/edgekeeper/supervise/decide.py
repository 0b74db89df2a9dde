"""The supervisor's mind: (state, event, now) -> (state, commands, why).

No clock, no files, no processes: ``loop`` feeds events in and carries the commands out, in their
order; the last of them reports back with an event. Invariants, checked over random event streams:

* the engine never runs a configuration that its own validator has not accepted;
* a refused configuration never stops a running engine;
* at most one engine serves at a time (a replacement is one command);
* a configuration that was started but not proven makes room for the last proven one.

A digest stands for an intent: the same intent in another seat (other credentials and private
ports, new at each start) has the same digest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from edgekeeper.ports import Cost

RETRY_REFUSED_S = 30.0
"""A refusal may come from the surroundings (a taken port), so the same intent is asked again; later each time."""

RETRY_AT_MOST_S = 600.0

STEADY_S = 60.0
"""An engine that ran this long starts again at once; one that fails sooner waits longer each time."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """An intent was rendered; ``cost`` is what bringing it into force costs the clients."""

    digest: str
    cost: Cost
    why: str = ""
    otherwise: Cost = Cost.RESTART
    """What is done when a live change fails: RELOAD for an engine that reads its files again, else RESTART."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Pre-flight and the engine's validator have spoken; ``refusal`` is None when they accepted."""

    digest: str
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Proved:
    """A change was carried out and looked at. ``running`` says whether an engine serves now."""

    digest: str
    refusal: str | None = None
    running: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """An accepted generation could not be made current (a full disk, say); the engine was not touched."""

    digest: str
    why: str


@dataclass(frozen=True, slots=True)
class Exited:
    """The serving engine ended by itself."""

    code: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nothing can be rendered: the source has never been read, or said nothing usable."""

    why: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = Rendered | Checked | Proved | Failed | Exited | Unreadable | Tick


@dataclass(frozen=True, slots=True)
class Check:
    """Write the candidate generation and ask pre-flight and the validator."""

    digest: str


@dataclass(frozen=True, slots=True)
class Swap:
    """Make the accepted generation the current one."""

    digest: str


@dataclass(frozen=True, slots=True)
class Live:
    """Bring the difference into the running engine."""

    digest: str


@dataclass(frozen=True, slots=True)
class Reload:
    """Tell the running engine to read its files again."""

    digest: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Exchange the running engine for one with the current generation."""

    digest: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start the engine on the current generation."""

    digest: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Make the last proven generation the current one again."""

    digest: str


Command = Check | Swap | Live | Reload | Replace | Start | Rollback


@dataclass(frozen=True, slots=True)
class Refused:
    """What was refused, and when it is asked again."""

    rendered: Rendered
    why: str
    retry_at: float
    wait: float = RETRY_REFUSED_S


@dataclass(frozen=True, slots=True)
class State:
    """``live`` is the current generation, ``good`` the last one that an engine was seen to run."""

    live: str | None = None
    good: str | None = None
    pending: Rendered | None = None
    changing: Rendered | None = None
    refused: Refused | None = None
    asked_again: Refused | None = None
    running: bool = False
    restart_at: float | None = None
    failures: int = 0
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """The state afterwards, what to do, and the sentence that is logged, tested and shown."""

    state: State
    commands: tuple[Command, ...]
    why: str


def backoff(failures: int) -> float:
    """Seconds until the next start: 0.5, 1, 2 ... 30."""
    return float(min(30.0, 0.5 * 2 ** min(failures, 10)))


def decide(state: State, event: Event, now: float) -> Decision:
    """What to do about ``event``; ``now`` is in monotonic seconds."""
    match event:
        case Rendered():
            return _rendered(state, event)
        case Checked():
            return _checked(state, event, now)
        case Proved():
            return _proved(state, event, now)
        case Failed():
            return _failed(state, event, now)
        case Exited(code=code):
            return _exited(state, code, now)
        case Unreadable(why=why):
            if state.running or state.changing is not None or state.restart_at is not None:
                return Decision(state, (), f"{why}; the running configuration stays")
            if state.live is None:
                return Decision(state, (), f"{why}; nothing to run yet")
            begun = replace(state, changing=Rendered(state.live, Cost.RESTART))
            return Decision(begun, (Start(state.live),), f"{why}; starting the last accepted configuration {state.live}")
        case Tick():
            return _tick(state, now)
        case _:
            assert_never(event)


def _rendered(state: State, event: Rendered) -> Decision:
    if state.changing is not None:
        return Decision(state, (), "a change is under way; this one is looked at afterwards")
    if state.refused is not None and state.refused.rendered.digest == event.digest:
        return Decision(state, (), f"{event.digest} was refused ({state.refused.why}); {_keep(state)}")
    # The same digest at a price: what the engine holds is not certain (an interrupted live change), so it is brought into force again.
    certain = state.restart_at is not None or (state.running and event.cost is Cost.NOTHING)
    if event.digest == state.live and certain:
        why = "rendered files are unchanged"
        if state.refused is not None:
            why += "; the refused change was taken back"
        return Decision(replace(state, refused=None, pending=None), (), why)
    asked = replace(state, pending=event, refused=None)
    return Decision(asked, (Check(event.digest),), f"{event.why or 'the configuration changed'}; asking the engine's own validator")


def _checked(state: State, event: Checked, now: float) -> Decision:
    pending = state.pending
    if pending is None or pending.digest != event.digest:
        return Decision(state, (), "the verdict is about an older rendering; ignored")
    if event.refusal is not None:
        refused = _refuse(state, pending, event.refusal, now)
        after = replace(state, pending=None, refused=refused)
        if not state.running and state.live is not None and state.restart_at is None:
            begun = replace(after, changing=Rendered(state.live, Cost.RESTART))
            why = f"{event.digest} refused: {event.refusal}; starting the last accepted configuration {state.live}"
            return Decision(begun, (Start(state.live),), why)
        return Decision(after, (), f"{event.digest} refused: {event.refusal}; {_keep(state)}")
    return _adopt(replace(state, pending=None, refused=None), pending)


def _adopt(state: State, accepted: Rendered) -> Decision:
    digest = accepted.digest
    swap = Swap(digest)
    if not state.running:
        begun = replace(state, live=digest, changing=accepted, restart_at=None)
        return Decision(begun, (swap, Start(digest)), f"{digest} accepted; starting the engine")
    begun = replace(state, live=digest, changing=accepted)
    match accepted.cost:
        case Cost.NOTHING:
            return Decision(begun, (swap,), f"{digest} accepted; the engine does it already")
        case Cost.LIVE:
            return Decision(begun, (swap, Live(digest)), f"{digest} accepted; changing the running engine")
        case Cost.RELOAD:
            return Decision(begun, (swap, Reload(digest)), f"{digest} accepted; reloading")
        case Cost.RESTART:
            return Decision(begun, (swap, Replace(digest)), f"{digest} accepted; replacing the engine")
        case _:
            assert_never(accepted.cost)


def _proved(state: State, event: Proved, now: float) -> Decision:
    changing = state.changing
    if changing is None or changing.digest != event.digest:
        return Decision(state, (), "the proof is about an older change; ignored")
    if event.refusal is None:
        after = replace(state, live=event.digest, good=event.digest, changing=None, running=True, restart_at=None, since=now, asked_again=None)
        return Decision(after, (), f"{event.digest} is in force and answers")
    if event.running and changing.cost is Cost.LIVE:
        again = replace(state, changing=replace(changing, cost=changing.otherwise))
        if changing.otherwise is Cost.RELOAD:
            return Decision(again, (Reload(event.digest),), f"the live change failed: {event.refusal}; reloading instead")
        return Decision(again, (Replace(event.digest),), f"the live change failed: {event.refusal}; replacing the engine instead")
    refused = _refuse(state, changing, event.refusal, now)
    if state.good is not None and state.good != event.digest:
        back = Rollback(state.good)
        if event.running and changing.cost is Cost.RELOAD:
            # Nobody knows how much of the new files a reload that was not proven has brought in.
            after = replace(state, live=state.good, changing=Rendered(state.good, Cost.RELOAD), refused=refused, running=True)
            return Decision(after, (back, Reload(state.good)), f"{event.digest} was not proven: {event.refusal}; reloading {state.good}")
        if event.running:
            after = replace(state, live=state.good, changing=None, refused=refused, running=True)
            return Decision(after, (back,), f"{event.digest} was not proven: {event.refusal}; the engine before it goes on with {state.good}")
        after = replace(state, live=state.good, changing=Rendered(state.good, Cost.RESTART), refused=refused, running=False)
        return Decision(after, (back, Start(state.good)), f"{event.digest} was not proven: {event.refusal}; back to {state.good}")
    if event.running:
        after = replace(state, changing=None, refused=refused, running=True, since=now)
        return Decision(after, (), f"{event.digest} was not proven: {event.refusal}; the running engine stays")
    wait = backoff(state.failures)
    after = replace(state, changing=None, running=False, restart_at=now + wait, failures=state.failures + 1)
    return Decision(after, (), f"{event.digest} was not proven: {event.refusal}; trying again in {wait:g} s")


def _failed(state: State, event: Failed, now: float) -> Decision:
    changing = state.changing
    if changing is None or changing.digest != event.digest:
        return Decision(state, (), "the failure is about an older change; ignored")
    if state.running:
        refused = _refuse(state, changing, event.why, now)
        after = replace(state, live=state.good, changing=None, refused=refused)
        return Decision(after, (), f"{event.digest} could not be made current: {event.why}; {_keep(after)}")
    wait = backoff(state.failures)
    after = replace(state, live=state.good, changing=None, restart_at=now + wait if state.good else None, failures=state.failures + 1)
    after = replace(after, refused=Refused(changing, event.why, now + wait))
    return Decision(after, (), f"{event.digest} could not be made current: {event.why}; trying again in {wait:g} s")


def _exited(state: State, code: int | None, now: float) -> Decision:
    failures = 0 if state.running and now - state.since >= STEADY_S else state.failures
    wait = backoff(failures)
    how = "ended" if code is None else f"ended with {code}" if code >= 0 else f"was killed by signal {-code}"
    after = replace(state, running=False, changing=None, restart_at=now + wait, failures=failures + 1)
    return Decision(after, (), f"the engine {how}; starting again in {wait:g} s")


def _tick(state: State, now: float) -> Decision:
    if state.changing is not None or state.pending is not None:
        return Decision(state, (), "a change is under way")
    if state.restart_at is not None and now >= state.restart_at and state.live is not None:
        begun = replace(state, restart_at=None, changing=Rendered(state.live, Cost.RESTART))
        return Decision(begun, (Start(state.live),), "starting the engine again")
    if state.refused is not None and now >= state.refused.retry_at and state.restart_at is None:
        again = state.refused.rendered
        asked = replace(state, pending=again, refused=None, asked_again=state.refused)
        return Decision(asked, (Check(again.digest),), f"asking again about {again.digest}")
    return Decision(state, (), "nothing to do")


def _refuse(state: State, rendered: Rendered, why: str, now: float) -> Refused:
    """Refused again after asking again: the pause doubles, up to its limit."""
    last = state.asked_again
    wait = min(RETRY_AT_MOST_S, last.wait * 2) if last is not None and last.rendered.digest == rendered.digest else RETRY_REFUSED_S
    return Refused(rendered, why, now + wait, wait)


def _keep(state: State) -> str:
    return f"keeping {state.live}" if state.running else "nothing to run yet"
