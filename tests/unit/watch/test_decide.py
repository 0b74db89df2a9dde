"""The mind of a watch: conversations, and properties over random streams of lines, answers, restarts, refusals and crashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.watch.watched import LINE, USUAL, World

from edgekeeper.model.budget import Budget, Window, spend
from edgekeeper.watch.decide import CALM_S, LOOK_S, begin, decide, hindrance
from edgekeeper.watch.fingerprint import Burst
from edgekeeper.watch.state import Answered, Cured, Former, Hit, Outlook, Phase, Policy, Refused, Started


def test_a_line_arms_two_failed_rounds_confirm_and_the_cure_is_proved():
    world = World()
    world.go_on(5)
    began = world.now
    world.wedge()
    assert world.kinds == ["arm"]
    world.go_on(10)
    assert world.kinds == ["arm", "confirm", "act", "prove"]
    assert world.acts[0][0] - began <= 0.5 + 1e-6
    low, high = world.state.recovered
    assert 0.4 <= low <= high <= 3.0
    assert world.state.phase is Phase.QUIET


def test_lines_while_the_service_is_well_never_act_however_many_come():
    world = World()
    world.go_on(600, lines_every=0.6)
    assert world.acts == []
    assert world.kinds == ["arm"]
    world.go_on(30)
    assert world.kinds == ["arm", "disarm"]


def test_without_any_line_three_failed_rounds_confirm():
    world = World()
    world.go_on(5)
    world.well = False
    began = world.now
    world.go_on(20)
    assert world.kinds == ["confirm", "act", "prove"]
    assert world.acts[0][0] - began <= 3.0 + 1e-6


def test_a_start_that_is_told_of_late_gives_no_grace_to_a_service_that_has_answered_since():
    world = World()
    world.go_on(5)
    world.feed(Started(world.now - 3))
    began = world.now
    world.wedge()
    world.go_on(10)
    assert world.acts[0][0] - began <= 0.5 + 1e-6


@pytest.mark.parametrize(("cooldown", "dark"), [(600.0, 600.0), (60.0, 60.0), (0.0, 3.0)])
def test_a_second_wedge_in_the_cooldown_is_cured_the_moment_it_ends(cooldown, dark):
    world = World(rules=(*USUAL, Window(1, cooldown)) if cooldown else USUAL)
    world.wedge()
    world.go_on(30)
    assert len(world.acts) == 1
    world.wedge()
    began = world.now
    world.go_on(dark + 30)
    assert len(world.acts) == 2
    assert world.acts[1][0] - began <= dark
    assert world.acts[1][0] - world.acts[0][0] >= cooldown
    assert world.kinds.count("suppress") == (1 if cooldown else 0)


def test_a_suppressed_cure_is_cancelled_by_a_good_answer():
    world = World(guard="the management is unreachable")
    world.wedge()
    world.go_on(60)
    assert world.kinds == ["arm", "confirm", "suppress"]
    world.well = True
    world.go_on(60)
    assert world.kinds == ["arm", "confirm", "suppress", "cancel", "disarm"]
    assert world.acts == []


def test_a_guard_that_gives_way_lets_the_cure_happen_within_a_look():
    world = World(guard="the management is unreachable")
    world.wedge()
    world.go_on(300)
    world.guard = None
    freed = world.now
    world.go_on(10)
    assert world.acts[0][0] - freed <= LOOK_S + 1e-6


def test_what_holds_back_is_told_once_for_each_reason():
    world = World(guard="the management is unreachable")
    world.wedge()
    world.go_on(60)
    world.guard, world.turn = None, "edge-a goes first"
    world.go_on(60)
    assert world.kinds == ["arm", "confirm", "suppress", "suppress"]
    assert "the management is unreachable" in "".join(world.said)


def test_within_the_grace_of_a_start_nothing_counts_until_the_service_answers():
    world = World()
    world.go_on(3)
    world.well = False
    world.feed(Started(world.now))
    began = world.now
    world.go_on(9.9, lines_every=1.0)
    assert world.acts == []
    world.go_on(10)
    assert began + 10 <= world.acts[0][0] <= began + 12
    other = World()
    other.feed(Started(other.now))
    other.go_on(2)
    other.wedge()
    other.go_on(5)
    assert other.acts, "it had answered since its start"


def test_a_restart_by_somebody_else_has_to_be_confirmed_again_and_is_not_forgotten():
    world = World(guard="the management is unreachable")
    world.wedge()
    world.go_on(20)
    world.feed(Started(world.now))
    assert world.state.phase is Phase.ARMED
    world.guard = None
    restarted = world.now
    world.go_on(30)
    assert restarted + 10 <= world.acts[0][0] <= restarted + 12


def test_a_lighter_step_that_does_not_help_is_followed_by_the_next_on_the_same_budget():
    world = World(policy=Policy(steps=2), cure_helps=False, rules=(Window(1, 600.0),))
    world.wedge()
    world.go_on(10)
    assert world.cure is None
    assert world.state.phase is Phase.PROVING
    world.cure_helps = True
    world.go_on(20)
    assert world.kinds == ["arm", "confirm", "act", "act", "prove"]
    assert len(world.acts) == 1


def test_the_next_step_asks_the_guard_again():
    world = World(policy=Policy(steps=2), cure_helps=False)
    world.wedge()
    world.go_on(10)
    world.guard = "the management is unreachable"
    world.go_on(20)
    assert world.kinds[-1] == "suppress"
    world.well = True
    world.go_on(2)
    assert world.kinds[-1] == "prove", "the first step helped after all"


def test_a_cure_that_does_not_help_stays_wanted_and_comes_again_under_the_budget():
    world = World(cure_helps=False)
    world.wedge()
    world.go_on(3600)
    assert len(world.acts) == 6
    assert world.kinds.count("fail") == 6
    assert world.state.phase is Phase.WANTED


def test_a_cure_that_cannot_be_carried_out_does_not_use_up_the_burst_in_a_moment():
    world = World()
    world.wedge()
    world.go_on(0.6)
    began = world.acts[0][0]
    world.cure = None
    world.feed(Cured("there is no container mesh-proxy"))
    world.go_on(10)
    assert world.kinds[:4] == ["arm", "confirm", "act", "fail"]
    assert world.acts[1][0] - began >= 2.0


def test_answers_that_come_late_or_out_of_order_do_not_confirm():
    world = World()
    world.go_on(2)
    asked = world.now - 0.5
    world.feed(LINE)
    world.feed(Answered(False, "no answer", asked))
    world.feed(Answered(False, "no answer", asked - 1))
    assert world.state.failed == ()
    world.feed(Answered(True, "it answers", world.now + 0.5))
    world.feed(Answered(False, "no answer", world.now + 0.2))
    assert world.state.failed == ()


def test_one_failed_round_between_good_ones_confirms_nothing():
    world = World()
    world.feed(LINE)
    for i in range(100):
        world.now += 0.5
        world.feed(Answered(i % 2 == 0, "so", world.now))
    assert "confirm" not in world.kinds


def test_confirm_none_acts_on_the_line_alone():
    world = World(policy=Policy(confirm=False))
    world.feed(LINE)
    assert world.kinds == ["confirm", "act"]


def test_confirm_none_acts_on_a_line_that_comes_after_a_restart_by_somebody_else_too():
    world = World(policy=Policy(confirm=False), guard="the management is unreachable")
    world.feed(LINE)
    world.feed(Started(world.now - 60))
    assert world.state.phase is Phase.ARMED
    world.guard = None
    world.feed(LINE)
    assert world.kinds[-2:] == ["confirm", "act"]


def test_confirm_none_without_a_probe_cannot_prove_and_says_so():
    world = World(policy=Policy(confirm=False, probed=False))
    world.feed(LINE)
    world.go_on(5)
    assert world.kinds == ["confirm", "act"]
    assert "nothing can prove it" in "".join(world.said)
    world.feed(LINE)
    assert world.kinds == ["confirm", "act"], "a line within the grace of its own cure"


def test_without_a_probe_a_line_that_must_be_confirmed_only_tells():
    world = World(policy=Policy(probed=False))
    world.feed(LINE)
    world.go_on(60)
    assert world.kinds == ["arm", "disarm"]
    assert world.acts == []


def test_a_burst_needs_its_lines_and_their_variety():
    world = World(policy=Policy(burst=Burst(3, 2, 10.0)))
    world.well = False
    for text in ("a", "a", "a"):
        world.feed(Hit(text, text))
    assert world.kinds == []
    world.feed(Hit("b", "b"))
    assert world.kinds == ["arm"]


def test_shadow_decides_and_does_nothing():
    world = World(policy=Policy(shadow=True))
    world.wedge()
    world.go_on(600)
    assert world.acts == []
    assert world.kinds == ["arm", "confirm", "suppress"]
    world.well = True
    world.go_on(60)
    assert world.kinds[3:] == ["cancel", "disarm"]


def test_what_an_earlier_process_was_armed_by_is_asked_about_again():
    policy = Policy()
    world = World(well=False)
    world.state = begin(world.now, policy, Former(world.now, "a line"))
    world.go_on(5)
    assert world.acts
    quiet = World()
    quiet.state = begin(quiet.now, policy, Former(quiet.now, "a line"))
    quiet.go_on(CALM_S + 2)
    assert quiet.acts == []
    assert quiet.state.phase is Phase.QUIET


def test_a_refused_spending_leaves_the_cure_wanted():
    state = replace(begin(0.0, Policy()), phase=Phase.CURING)
    decision = decide(state, Refused("another process has spent it", 40.0), 10.0, Policy())
    assert decision.kind == "suppress"
    assert decision.state.phase is Phase.WANTED
    assert decision.state.until == 40.0


def _crash(world: World, _: object) -> None:
    """kill -9: what a cure had not done yet is never done."""
    state = world.state
    former = None if state.phase is Phase.QUIET else Former(state.sign, state.line, world.cure is not None or state.phase is Phase.PROVING, state.step)
    world.state, world.cure = begin(world.now, world.policy, former), None


def _sleep(world: World, seconds: float) -> None:
    """The machine was suspended, or this process was stopped."""
    world.now += seconds


def _other(world: World, _: object) -> None:
    """Another watch of the group spends of the same budget."""
    world.spent = spend(world.budget, world.now).budget.spent


HAPPENS: dict[str, Callable[[World, Any], object]] = {
    "wait": lambda world, seconds: world.go_on(seconds),
    "sleep": _sleep,
    "line": lambda world, _: world.feed(LINE),
    "well": lambda world, well: setattr(world, "well", well),
    "helps": lambda world, helps: setattr(world, "cure_helps", helps),
    "guard": lambda world, forbids: setattr(world, "guard", "the management is unreachable" if forbids else None),
    "turn": lambda world, forbids: setattr(world, "turn", "edge-a goes first" if forbids else None),
    "started": lambda world, ago: world.feed(Started(world.now - ago)),
    "crash": _crash,
    "other": _other,
    "stale": lambda world, late: world.feed(Answered(late > 0, "late", world.now - abs(late))),
}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({}, None),
        ({"grace_until": 200.0}, "grace"),
        ({"grace_until": 200.0, "guard": "away"}, "grace"),
        ({"guard": "away", "spent": (99.0,)}, "guard"),
        ({"spent": (99.0,)}, "budget"),
        ({"spent": (99.0,), "step": 1}, None),
        ({"shadow": True}, "shadow"),
    ],
)
def test_what_holds_a_node_back_by_itself_is_told_apart_and_a_later_step_needs_no_budget(said, kind):
    state = replace(begin(0.0, Policy()), phase=Phase.WANTED, grace_until=said.get("grace_until", 0.0), step=said.get("step", 0))
    seen = Outlook(said.get("guard"), "edge-a goes first", Budget((Window(1, 60.0),), said.get("spent", ())), 100.0)
    found = hindrance(state, seen, 100.0, Policy(shadow=said.get("shadow", False)))
    assert (found.kind if found is not None else None) == kind


_steps = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.01, 30.0)),
    st.tuples(st.just("sleep"), st.floats(30.0, 4000.0)),
    st.tuples(st.just("line"), st.floats(0.0, 1.0)),
    st.tuples(st.just("well"), st.booleans()),
    st.tuples(st.just("helps"), st.booleans()),
    st.tuples(st.just("guard"), st.booleans()),
    st.tuples(st.just("turn"), st.booleans()),
    st.tuples(st.just("started"), st.floats(-5.0, 20.0)),
    st.tuples(st.just("crash"), st.booleans()),
    st.tuples(st.just("other"), st.floats(0.0, 1.0)),
    st.tuples(st.just("stale"), st.floats(-100.0, 100.0)),
)
_policies = st.builds(
    Policy,
    confirm=st.sampled_from((True, True, False)),
    probed=st.sampled_from((True, True, True, False)),
    rounds=st.integers(1, 4),
    failures=st.integers(1, 3),
    grace_s=st.sampled_from((0.0, 10.0)),
    steps=st.integers(1, 3),
    burst=st.sampled_from((Burst(), Burst(2, 1, 5.0))),
)
_rules = st.sampled_from((USUAL, (*USUAL, Window(1, 60.0)), (*USUAL, Window(1, 600.0)), (Window(2, 100.0),)))


@settings(max_examples=60, deadline=None)
@given(policy=_policies, rules=_rules, steps=st.lists(_steps, max_size=40))
def test_whatever_happens_cures_keep_to_budget_guard_and_turn_and_nothing_wanted_is_forgotten(policy, rules, steps):
    world = World(policy=policy, rules=rules)
    for what, value in steps:
        HAPPENS[what](world, value)
    times = [at for at, _ in world.acts]
    for rule in rules:
        if isinstance(rule, Window):
            for i, at in enumerate(times):
                assert sum(1 for t in times[i:] if t < at + rule.window_s) <= rule.limit
    acts, wanted = len(world.acts), world.state.phase is Phase.WANTED and world.state.step == 0
    world.guard = world.turn = None
    if wanted and policy.probed:
        world.well = False
        world.go_on(4000)
        assert len(world.acts) > acts, "what was wanted was forgotten"
    if policy.probed:
        world.well = True
        world.go_on(100)
        assert world.state.phase is Phase.QUIET
