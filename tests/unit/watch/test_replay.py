"""What a watch would have done over a record: the field's incident, forged lines, and what holds whatever the record says."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.budget import Bucket, Budget, Window
from edgekeeper.model.sample import Sample
from edgekeeper.watch.decide import due
from edgekeeper.watch.fingerprint import Burst
from edgekeeper.watch.replay import Outcome, _Replay, as_it_happened, simulate
from edgekeeper.watch.state import Policy
from edgekeeper.watch.world import Kind, Record, Sign, World, from_lines, from_probes

TEXT = "couldn't fetch peer state: KEY"
USUAL = (Bucket(3, 60.0), Window(6, 3600.0))


def burst(begin: float, end: float, every: float = 2.0) -> list[Sign]:
    """A wedge floods the log from its begin to its end."""
    return [Sign(begin + n * every, Kind.HIT, f"WARN {TEXT}", TEXT) for n in range(math.ceil((end - begin) / every))]


def started(at: float) -> Sign:
    return Sign(at, Kind.STARTED)


def with_cooldown(seconds: float) -> Budget:
    return Budget((*USUAL, *((Window(1, seconds),) if seconds else ())), pause_s=60)


def incident() -> list[Sign]:
    """Three wedges 280 s apart. The restart of the second was held back by a cooldown; a slow look at a URL ended it 211 s after its begin."""
    first, second, third = 1000.0, 1280.0, 1560.0
    return [*burst(first, first + 4), started(first + 4), *burst(second, second + 211), started(second + 211), *burst(third, third + 3), started(third + 3)]


def play(signs: list[Sign], cooldown: float = 0, world: World | None = None, **policy: object) -> Outcome:
    world = world or from_lines(signs, signs[-1].at + 400)
    return simulate(Policy(**policy), with_cooldown(cooldown), signs, world)


def kinds(outcome: Outcome) -> list[str]:
    return [told.kind for told in outcome.told]


def probed(seconds: int, dead: list[tuple[int, int]]) -> Record:
    """A probe each second, that fails in these times."""
    record = Record()
    for at in range(seconds):
        ok = not any(begin <= at < end for begin, end in dead)
        record.add(Sample(float(at), "tls://192.0.2.1:443", "fresh", float(at), at + (0.01 if ok else 1.0), ok))
    return record


def test_the_incident_with_600_s_was_dark_for_three_and_a_half_minutes() -> None:
    outcome = play(incident(), 600)
    assert outcome.longest is not None
    assert outcome.longest.brief() == "3 min 30 s to 3 min 31 s"
    assert [round(cure.at, 1) for cure in outcome.cures] == [1001.5]
    assert outcome.suppressed == 2
    assert outcome.healed == 2


@pytest.mark.parametrize("cooldown", [60, 0])
def test_with_60_s_or_the_budget_alone_it_is_4_s(cooldown: float) -> None:
    outcome = play(incident(), cooldown)
    assert [dark.span.brief() for dark in outcome.dark] == ["3 s to 4 s"] * 3
    assert [dark.by for dark in outcome.dark] == ["cure"] * 3
    assert (outcome.dark[0].span.min_s, outcome.dark[0].span.max_s) == pytest.approx((3.5, 3.75)), "known to one question of the proof"
    assert all(cure.helped and not cure.needless for cure in outcome.cures)
    assert kinds(outcome) == ["arm", "confirm", "act", "prove"] * 3


def test_what_is_held_back_is_done_when_the_cooldown_is_over() -> None:
    signs = [*burst(1000, 1004), started(1004), *burst(1280, 2500)]
    outcome = play(signs, 600)
    assert [round(cure.at, 1) for cure in outcome.cures] == [1001.5, 1601.5]
    assert outcome.dark[-1].span.brief() == "5 min 23 s to 5 min 24 s"


def test_one_that_healed_while_it_was_held_back_is_counted_once() -> None:
    outcome = play([*burst(1000, 1004), started(1004), *burst(1100, 1130), Sign(1130, Kind.RECOVERED)], 600)
    assert kinds(outcome)[-3:] == ["suppress", "cancel", "disarm"]
    assert (outcome.healed, outcome.false_alarms) == (1, 0)


def test_a_line_alone_acts_at_once_when_nothing_confirms() -> None:
    (cure, *_) = play(incident(), confirm=False).cures
    assert cure.at == 1000


def test_forged_lines_of_a_healthy_service_restart_nothing_that_is_confirmed() -> None:
    signs = [Sign(float(at), Kind.HIT, "GET /couldn't fetch peer state: x", "couldn't fetch peer state: x") for at in range(60, 360)]
    world = from_probes(probed(600, []), signs, 0)
    assert play(signs, world=world).cures == ()
    assert play(signs, world=world).false_alarms == 1
    script = play(signs, world=world, confirm=False)
    assert len(script.cures) == script.needless == 6, "all that the budget of an hour allows"
    assert script.dark, "and each of them was a restart of a service that was well"
    assert as_it_happened(world) == ()


def test_recorded_answers_count_until_a_cure_makes_another_world() -> None:
    signs = burst(100, 300)
    world = from_probes(probed(1000, [(100, 300), (500, 502)]), signs, 0)
    outcome = play(signs, world=world)
    assert [(round(d.at), d.by) for d in outcome.dark] == [(100, "cure"), (500, "probe")], "the second was over before a third round could fail"
    assert outcome.dark[0].span.brief() == "2 s to 5 s", "it began between the last good answer and the first bad one"
    assert outcome.left_out > 90


def test_a_wedge_without_a_line_is_found_by_three_failed_rounds() -> None:
    outcome = play([Sign(1.0, Kind.RECOVERED)], world=from_probes(probed(400, [(100, 400)]), [], 0))
    assert kinds(outcome) == ["confirm", "act", "prove"]
    assert 102 <= outcome.cures[0].at <= 104


def test_where_a_recorded_start_did_not_help_a_simulated_cure_does_not_either() -> None:
    signs = [*burst(1000, 1010), started(1010), *burst(1013, 1100), started(1100)]
    outcome = play(signs)
    first, second = outcome.cures
    assert (first.helped, second.helped) == (False, True)
    assert second.at == pytest.approx(1061.5, abs=1), "after one that did not help the pause is a minute"
    assert [d.span.brief() for d in outcome.dark] == ["1 min 3 s to 1 min 4 s"]
    assert any("did not help" in note for note in outcome.notes)


def test_a_record_that_ends_while_a_cure_is_wanted_says_so() -> None:
    signs = [*burst(1000, 1004), started(1004), *burst(1100, 1200)]
    outcome = simulate(Policy(), with_cooldown(600), signs, from_lines(signs, 1200))
    assert "600 s are spent" in outcome.still_wanted
    assert outcome.dark[-1].span.max_s == math.inf
    assert outcome.dark[-1].by == "nothing"


def test_a_line_at_the_very_end_of_the_record_is_still_followed() -> None:
    assert len(simulate(Policy(), with_cooldown(0), burst(1000, 1001), from_lines(burst(1000, 1001), 1000)).cures) == 1


def test_lines_that_stand_as_one_keep_it_armed_until_the_last_of_them() -> None:
    signs = [Sign(100.0, Kind.HIT, TEXT, TEXT, count=50, last=108.0)]
    told = {one.kind: one.at for one in play(signs, world=from_probes(probed(400, []), signs, 0)).told}
    assert told["arm"] == 100.0
    assert told["disarm"] >= 118.0


def test_a_wedge_that_begins_while_the_watch_is_armed_for_another_reason_is_seen_at_once() -> None:
    signs = burst(100, 101)
    outcome = play(signs, world=from_probes(probed(400, [(105, 300)]), signs, 0))
    assert 106 <= outcome.cures[0].at <= 107.5
    assert not outcome.needless


def test_days_of_a_service_past_helping_are_run_through_too() -> None:
    day = 86400.0
    signs = [Sign(1000.0, Kind.HIT, TEXT, TEXT), Sign(3 * day, Kind.STARTED), Sign(3 * day + 3, Kind.HIT, TEXT, TEXT)]
    outcome = simulate(Policy(), with_cooldown(0), signs, from_lines(signs, 4 * day, quiet_s=9 * day))
    assert 3 * 20 < len(outcome.cures) < 3 * 30, "once an hour, as the pause has grown to that"
    assert {cure.helped for cure in outcome.cures[:-1]} == {False}


def test_every_assumption_is_said() -> None:
    notes = " ".join(play(incident()).notes)
    assert "assumed that the probe fails" in notes
    assert "assumed to help after 2 s" in notes
    assert "left out" in notes


def test_an_empty_record_is_no_trouble() -> None:
    outcome = simulate(Policy(), with_cooldown(0), [], from_lines([], -math.inf))
    assert outcome.told == outcome.cures == outcome.dark == ()
    assert outcome.longest is None
    assert outcome.total.text() == "0 s"


def test_fourteen_days_are_run_through_in_a_moment() -> None:
    days = [Sign(n * 3600.0, Kind.HIT, TEXT, TEXT) for n in range(1, 24 * 7 * 2)]
    assert len(play(days).cures) == len(days)


signs_ = st.lists(
    st.tuples(st.floats(0, 3000), st.sampled_from([Kind.HIT, Kind.HIT, Kind.HIT, Kind.RECOVERED, Kind.STARTED]), st.sampled_from("ab"), st.integers(1, 50)),
    max_size=25,
)
policies = st.builds(
    Policy,
    confirm=st.booleans(),
    probed=st.booleans(),
    rounds=st.integers(1, 4),
    failures=st.integers(1, 3),
    grace_s=st.sampled_from([0.0, 10.0]),
    burst=st.builds(Burst, lines=st.integers(1, 4), distinct=st.just(1)),
    steps=st.integers(1, 2),
    proof_within_s=st.sampled_from([1.0, 15.0]),
    shadow=st.booleans(),
)


@settings(max_examples=12, deadline=None)
@given(signs_, policies, st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 300)), max_size=3), st.booleans(), st.sampled_from([0.0, 60.0, 600.0]))
def test_whatever_is_recorded(lines: list[tuple[float, Kind, str, int]], policy: Policy, dead: list[tuple[int, int]], recorded: bool, cooldown: float) -> None:
    signs = [Sign(at, kind, rest, rest, count) for at, kind, rest, count in sorted(lines)]
    if recorded:
        record = Record()
        for at in range(0, 3300, 25):
            ok = not any(begin <= at < begin + long for begin, long in dead)
            record.add(Sample(float(at), "t", "fresh", float(at), at + 0.5, ok))
        world = from_probes(record, signs, 3000)
    else:
        world = from_lines(signs, 3000, policy.burst)
    outcome = simulate(policy, with_cooldown(cooldown), signs, world)
    times = [cure.at for cure in outcome.cures]
    for at in times:
        assert sum(at - 3599.9 < other <= at for other in times) <= 6, "never above the budget"
        assert sum(at - 59.9 < other <= at for other in times) <= 4
        if cooldown:
            assert sum(at - cooldown + 0.1 < other <= at for other in times) == 1
    assert not (policy.shadow and times)
    if policy.confirm and world.recorded:
        assert outcome.needless == 0 or dead, "what never failed is never cured when it has to be confirmed"
    assert all(told.why for told in outcome.told)
    assert [t.at for t in outcome.told] == sorted(t.at for t in outcome.told)
    for dark in outcome.dark:
        assert 0 <= dark.span.min_s <= dark.span.max_s
    assert [d.at for d in outcome.dark] == sorted(d.at for d in outcome.dark)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(list(Kind))), max_size=6), st.booleans(), st.sampled_from([0.0, 100.0]))
def test_rounds_that_are_left_out_change_nothing(lines: list[tuple[int, Kind]], confirm: bool, cooldown: float) -> None:
    signs = [Sign(float(at), kind, "x", "x") for at, kind in sorted(lines)]
    world = from_lines(signs, 500, quiet_s=30)
    policy, budget = Policy(confirm=confirm), with_cooldown(cooldown)
    quick = simulate(policy, budget, signs, world)
    every = _EveryRound(policy, budget, signs, world, 2.0, 1.0).run()
    assert kinds(quick) == kinds(every)
    assert [told.at for told in quick.told] == pytest.approx([told.at for told in every.told], abs=1.6)
    assert [(dark.at, dark.by) for dark in quick.dark] == [(dark.at, dark.by) for dark in every.dark]


class _EveryRound(_Replay):
    """A replay that asks every round, also where nothing changes."""

    def _tick_at(self) -> float:
        return max(due(self._state, self._policy), self._now)


def test_a_moment_that_a_double_cannot_hit_ends_the_calm_nevertheless() -> None:
    """``last_hit + 10 - last_hit`` is a little less than ten for this one: the clock of a replay stands still until somebody acts."""
    signs = [Sign(30.952623345417155, Kind.HIT, "x", "x")]
    outcome = simulate(Policy(probed=False), with_cooldown(0.0), signs, from_lines([], 3000, quiet_s=30))
    assert outcome.told
