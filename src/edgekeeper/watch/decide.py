"""The mind of a watch: (state, event, now) -> (state, what to do, why). Pure.

A log line arms; the probe confirms; guard, turn and budget permit; a cure is applied step by step and proved by the probe. What is
wanted and not permitted stays wanted: it is carried out the moment it is permitted, or cancelled by a good answer, and never
forgotten. Without any line, failed rounds of the probe confirm by themselves.

Invariants, checked over random streams of events: a cure is begun only out of WANTED, with a guard and a turn that say nothing
against it and a budget that allows it; while one is under way no other begins; every decision has its sentence.

``now`` are seconds that never jump; budgets have times of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from edgekeeper.model.budget import spend
from edgekeeper.watch.fingerprint import add
from edgekeeper.watch.state import (
    Answered,
    Apply,
    Ask,
    Cured,
    Decision,
    Event,
    Former,
    Hindrance,
    Hit,
    Look,
    Outlook,
    Phase,
    Policy,
    Refused,
    Started,
    State,
    Tick,
)

CALM_S = 10.0
"""An armed watch whose probe answers well is disarmed when no line has come for so long."""

LOOK_S = 0.5
"""How often guard, turn and budget are looked at while a cure is wanted."""

FAILED_S = 2.0
"""After a cure that could not be carried out, the next one is not looked at for so long."""

TURN_S = 0.2
"""The same while only another member's proof is waited for: it may come at any moment."""


def begin(now: float, policy: Policy, former: Former | None = None) -> State:
    """A watch that begins. What an earlier process knew to be wrong is armed again; a cure that it had begun is proved before there is another."""
    if former is None:
        return State(since=now, next_ask=now)
    state = State(phase=Phase.ARMED, since=now, sign=min(former.sign, now), line=former.line, last_hit=now, next_ask=now, next_look=now)
    if not policy.probed:
        return state if policy.confirm else replace(state, phase=Phase.WANTED)
    if former.curing:
        return replace(state, phase=Phase.PROVING, step=min(former.step, policy.steps - 1), cured_at=now, proof_until=now + policy.proof_within_s)
    return state


def due(state: State, policy: Policy) -> float:
    """When the next ``Tick`` is due."""
    times = [state.next_ask] if policy.probed and state.phase is not Phase.CURING else []
    if state.phase is Phase.WANTED:
        times.append(state.next_look)
    if state.phase is Phase.PROVING:
        times.append(state.proof_until)
    if state.phase is Phase.ARMED and not policy.probed:
        times.append(state.last_hit + CALM_S)
    return min(times, default=float("inf"))


def decide(state: State, event: Event, now: float, policy: Policy) -> Decision:
    """What follows from an event."""
    match event:
        case Hit():
            return _hit(state, event, now, policy)
        case Answered():
            return _answered(state, event, now, policy)
        case Outlook():
            return _outlook(state, event, now, policy)
        case Refused():
            return _refused(state, event, now)
        case Cured():
            return _cured(state, event, now, policy)
        case Started():
            return _started(state, event, now, policy)
        case Tick():
            return _tick(state, now, policy)
        case _:
            assert_never(event)


def _hit(state: State, hit: Hit, now: float, policy: Policy) -> Decision:
    burst, reached = add(policy.burst, state.burst, hit.rest, now)
    state = replace(state, burst=burst)
    if not reached:
        return Decision(
            state,
            "hold",
            f"a line came, but {policy.burst.lines} lines within {policy.burst.within_s:g} s are needed, {policy.burst.distinct} of them distinct",
        )
    state = replace(state, last_hit=now)
    if state.phase is not Phase.QUIET and (policy.confirm or state.phase is not Phase.ARMED):
        return Decision(state, "hold", f"another line while it is {state.phase}")
    if not policy.confirm and now < state.grace_until and not policy.probed:
        return Decision(state, "hold", f"a line within {policy.grace_s:g} s of the service's start does not count")
    signed = replace(state, since=now, sign=now, line=hit.text, failed=(), bad=0, held="", until=None)
    if not policy.confirm:
        wanted = replace(signed, phase=Phase.WANTED, next_look=now, next_ask=now)
        return _look(wanted, now, "confirm", "a line came, and nothing has to confirm it (confirm: none)")
    armed = replace(signed, phase=Phase.ARMED)
    if not policy.probed:
        return Decision(armed, "arm", "a line came, but there is no probe to confirm it: nothing will be cured; name a probe")
    return _ask(armed, now, policy, "arm", "a line came; the probe is asked whether it is true")


def _answered(state: State, answer: Answered, now: float, policy: Policy) -> Decision:
    if answer.well:
        if answer.asked < state.well_asked:
            return Decision(state, "hold", "an older answer than the last")
        state = replace(state, well_asked=answer.asked, failed=tuple(t for t in state.failed if t > answer.asked))
        if state.phase is not Phase.CURING and (state.phase is not Phase.PROVING or answer.asked >= state.cured_at):
            state = replace(state, grace_until=min(state.grace_until, now))  # what answers has started
        return _well(state, answer, now, policy)
    if answer.asked < state.well_asked or answer.asked in state.failed:
        return Decision(state, "hold", "a later question was answered well")
    if now < state.grace_until and state.phase is not Phase.PROVING:
        return Decision(state, "hold", f"{answer.why}; no verdict within {policy.grace_s:g} s of the service's start")
    if state.phase is Phase.ARMED and answer.asked < state.since:
        return Decision(state, "hold", f"{answer.why}, but it was asked before the line came")
    failed = (*state.failed, answer.asked)[-max(policy.rounds, policy.failures, 2) :]
    state = replace(state, failed=failed, bad_asked=max(state.bad_asked, answer.asked), bad=len(failed) if state.phase is Phase.QUIET else state.bad + 1)
    needed = policy.failures if state.phase is Phase.ARMED else policy.rounds
    if state.phase not in {Phase.QUIET, Phase.ARMED}:
        return Decision(state, "hold", f"{answer.why}; it is {state.phase} already")
    if len(state.failed) < needed:
        return Decision(state, "hold", f"{answer.why}; {len(state.failed)} of {needed} failed rounds in a row")
    by = "the line is true" if state.phase is Phase.ARMED else "no line told of it"
    sign = state.sign if state.phase is Phase.ARMED and state.well_asked < state.sign else min(state.failed)
    soon = min(state.next_ask, now + policy.confirm_every_s)
    line = state.line if state.phase is Phase.ARMED else ""
    wanted = replace(state, phase=Phase.WANTED, since=now, sign=sign, line=line, held="", until=None, next_ask=soon)
    return _look(wanted, now, "confirm", f"{answer.why}; {needed} failed rounds in a row: {by}")


def _well(state: State, answer: Answered, now: float, policy: Policy) -> Decision:
    match state.phase:
        case Phase.QUIET:
            return Decision(state, "hold", answer.why)
        case Phase.ARMED:
            if now - state.last_hit < CALM_S or now - state.since < CALM_S:
                return Decision(state, "hold", f"{answer.why}; it stays armed until no line has come for {CALM_S:g} s")
            quiet = replace(state, phase=Phase.QUIET, since=now, line="", step=0)
            return Decision(quiet, "disarm", f"{answer.why}, and no line came for {CALM_S:g} s: there was no wedge, or it healed by itself")
        case Phase.WANTED:
            if state.step:  # an earlier step helped after all
                return _proved(state, answer, now)
            phase = Phase.ARMED if policy.confirm else Phase.QUIET
            armed = replace(state, phase=phase, since=now, last_hit=max(state.last_hit, now), held="", until=None, next_ask=now + policy.confirm_every_s)
            return Decision(armed, "cancel", f"{answer.why}: the cure that was wanted is cancelled, the service healed by itself")
        case Phase.CURING:
            return Decision(state, "hold", f"{answer.why}, while the cure is being applied")
        case Phase.PROVING:
            if answer.asked < state.cured_at:
                return Decision(state, "hold", f"{answer.why}, but it was asked before the cure ended")
            return _proved(state, answer, now)
        case _:
            assert_never(state.phase)


def _proved(state: State, answer: Answered, now: float) -> Decision:
    low = max(0.0, state.bad_asked - state.sign)
    high = max(low, now - state.sign)
    quiet = replace(state, phase=Phase.QUIET, since=now, failed=(), step=0, held="", until=None, recovered=(low, high), line="")
    return Decision(quiet, "prove", f"{answer.why}: it is cured, {low:.2f} to {high:.2f} s after the first sign")


def _outlook(state: State, seen: Outlook, now: float, policy: Policy) -> Decision:
    if state.phase is not Phase.WANTED:
        return Decision(state, "hold", f"it is {state.phase}; nothing is to be permitted")
    if policy.probed and policy.confirm and (not state.failed or now - state.bad_asked > _fresh_s(policy)):
        return Decision(state, "hold", "no failed answer is known any more, or it is an old one; the probe is asked again")
    held = hindrance(state, seen, now, policy)
    if held is not None:
        return _suppress(state, held, now)
    if seen.turn is not None:
        return _suppress(state, Hindrance("turn", seen.turn), now)
    curing = replace(state, phase=Phase.CURING, since=now, until=None)  # what held it back is known until the store has said yes too
    return Decision(curing, "act", _reason(state, now), Apply(state.step))


def hindrance(state: State, seen: Outlook, now: float, policy: Policy) -> Hindrance | None:
    """What of this node's own holds a wanted cure back: whoever is held back by it must not claim a turn either. None: nothing does."""
    if now < state.grace_until:
        ago = policy.grace_s - (state.grace_until - now)
        return Hindrance("grace", f"the service was started {ago:.1f} s ago and has {policy.grace_s:g} s of grace", state.grace_until)
    if seen.guard is not None:
        return Hindrance("guard", seen.guard)
    if state.step == 0:  # the steps that follow belong to the same cure
        spending = spend(seen.budget, seen.at)
        if not spending.allowed:
            return Hindrance("budget", spending.why, now + spending.again_s)
    return Hindrance("shadow", "it would be cured now, but the watch only looks on (shadow)") if policy.shadow else None


def _fresh_s(policy: Policy) -> float:
    """How old the failed answer may be on which a cure is begun: after a freeze, or a cure that took long, the service may be well by now."""
    return 2 * (policy.timeout_s + policy.confirm_every_s) + 1.0


def _reason(state: State, now: float) -> str:
    if state.step:
        return f"step {state.step} did not help; the next one is applied"
    sign = f"after the line: {state.line}" if state.line else "without any line"
    return f"the service has been down for {now - state.sign:.2f} s {sign}"


def _suppress(state: State, by: Hindrance, now: float) -> Decision:
    """What holds back is told when it begins, not each time that it is looked at."""
    pause = TURN_S if by.kind == "turn" else LOOK_S
    look = min(now + pause, by.until) if by.until is not None and by.until > now else now + pause
    known = state.held == by.kind
    held = replace(state, held=by.kind, until=by.until, next_look=look)
    return Decision(held, "hold" if known else "suppress", f"not now: {by.why}; it stays wanted")


def _refused(state: State, refused: Refused, now: float) -> Decision:
    if state.phase is not Phase.CURING:
        return Decision(state, "hold", f"{refused.why}; nothing was under way")
    wanted = replace(state, phase=Phase.WANTED, since=now)
    return _suppress(wanted, Hindrance("budget", refused.why, refused.until), now)


def _cured(state: State, cured: Cured, now: float, policy: Policy) -> Decision:
    if state.phase is not Phase.CURING:
        return Decision(state, "hold", "a cure ended that nobody waits for")
    if cured.failed is not None:
        return _in_vain(state, now, policy, f"the cure could not be carried out: {cured.failed}")
    if not policy.probed:
        quiet = replace(state, phase=Phase.QUIET, since=now, failed=(), step=0, line="", held="", grace_until=now + policy.grace_s)
        return Decision(quiet, "hold", "the cure was carried out; without a probe nothing can prove it")
    proving = replace(state, phase=Phase.PROVING, since=now, cured_at=now, proof_until=now + policy.proof_within_s, held="")
    return _ask(proving, now, policy, "hold", "the cure was carried out; the probe is asked until it answers")


def _in_vain(state: State, now: float, policy: Policy, why: str) -> Decision:
    """A step did not help: the next one is wanted, or, after the last, a new cure."""
    more = state.step + 1 < policy.steps
    wanted = replace(state, phase=Phase.WANTED, since=now, step=state.step + 1 if more else 0, held="", until=None)
    then = "the next step is wanted" if more else "it stays wanted, and is tried again when the budget allows"
    if state.phase is Phase.CURING and not more:  # what fails at once would else use up a burst within a moment
        return Decision(replace(wanted, next_look=now + FAILED_S), "fail", f"{why}; {then}")
    return _look(wanted, now, "hold" if more else "fail", f"{why}; {then}")


def _started(state: State, started: Started, now: float, policy: Policy) -> Decision:
    grace = min(started.at, now) + policy.grace_s
    if state.phase in {Phase.CURING, Phase.PROVING}:
        return Decision(state, "hold", "the service was started by the cure")
    if state.well_asked > started.at:
        return Decision(state, "hold", "the service was started, and has answered since")
    state = replace(state, grace_until=max(state.grace_until, grace), failed=())
    if state.phase is Phase.WANTED and policy.probed:
        armed = replace(state, phase=Phase.ARMED, since=now, last_hit=now, held="", until=None, next_ask=now, step=0)
        return Decision(armed, "cancel", "somebody else started the service anew; the probe has to confirm again that it is down")
    return Decision(state, "hold", f"the service was started; no verdict for {policy.grace_s:g} s, or until it answers")


def _tick(state: State, now: float, policy: Policy) -> Decision:
    if state.phase is Phase.PROVING and now >= state.proof_until:
        return _in_vain(state, now, policy, f"no good answer within {policy.proof_within_s:g} s of the cure")
    if state.phase is Phase.WANTED and now >= state.next_look:
        return _look(state, now, "hold", "guard, turn and budget are looked at")
    if policy.probed and state.phase is not Phase.CURING and now >= state.next_ask:
        return _ask(state, now, policy, "hold", "the next round is due")
    if state.phase is Phase.ARMED and not policy.probed and now >= state.last_hit + CALM_S:
        return Decision(replace(state, phase=Phase.QUIET, since=now, line=""), "disarm", f"no line came for {CALM_S:g} s, and nothing could confirm it")
    return Decision(state, "hold", "nothing is due")


def _ask(state: State, now: float, policy: Policy, kind: str, why: str) -> Decision:
    pause = {Phase.QUIET: policy.every_s, Phase.PROVING: policy.proof_every_s}.get(state.phase, policy.confirm_every_s)
    return Decision(replace(state, next_ask=now + pause), kind, why, Ask())


def _look(state: State, now: float, kind: str, why: str) -> Decision:
    return Decision(replace(state, next_look=now + LOOK_S), kind, why, Look())
