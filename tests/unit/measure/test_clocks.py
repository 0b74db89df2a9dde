"""Clocks brought together: the true offset is inside the interval, a clock that moved is never passed over."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.clocks import Bound, drift_of, pair, solve


def probes(rng: random.Random, count: int, theta: float, coarse: float = 0.0, drift: float = 0.0, node: str = "edge-1", other: str = "n1") -> list[Bound]:
    """Questions from ``other`` to ``node`` whose clock runs ``theta`` seconds ahead, every second; the log of ``node`` cuts to ``coarse``."""
    found = []
    for number in range(count):
        sent = 1e9 + number + rng.random()
        there, back = rng.expovariate(100), rng.expovariate(100)
        stamp = sent + there + theta + drift * (sent + there - 1e9)
        stamp = math.floor(stamp / coarse) * coarse if coarse else stamp
        found.append(Bound(node, other, sent - (stamp + coarse), sent + there + back - stamp, stamp, "ids"))
    return found


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), theta=st.floats(-1000, 1000), count=st.integers(1, 40), coarse=st.sampled_from([0.0, 0.001, 1.0]))
def test_the_true_offset_is_inside(seed: int, theta: float, count: int, coarse: float) -> None:
    found = pair(probes(random.Random(seed), count, theta, coarse))
    assert not found.moved
    assert found.low <= -theta + 1e-6
    assert -theta - 1e-6 <= found.high


def test_183_seconds_are_found_within_half_a_second() -> None:
    for coarse, width in ((0.0, 0.05), (1.0, 0.5)):
        found = solve(probes(random.Random(7), 10, -183.4, coarse), "n1")["edge-1"]
        assert found.high - found.low < width * 2
        assert found.shift == pytest.approx(183.4, abs=width)


@given(seed=st.integers(0, 2**32), drift=st.floats(100e-6, 400e-6), sign=st.sampled_from([1, -1]))
@settings(max_examples=15)
def test_a_clock_that_drifts_is_told_with_its_drift(seed: int, drift: float, sign: int) -> None:
    found = pair(probes(random.Random(seed), 300, 3.0, drift=sign * drift))
    assert found.moved
    assert found.drift is not None
    low, high = found.drift
    gain = -sign * drift / (1 + sign * drift)  # by the second of the clock that drifts
    assert low <= gain + 1e-9
    assert gain - 1e-9 <= high
    ends = (-3.0 - sign * drift, -3.0 - sign * drift * 299)
    assert found.low <= min(ends) + 1e-6
    assert max(ends) - 1e-6 <= found.high
    assert found.high - found.low < abs(drift * 300) + 0.02, "and not much wider than it moved"


def test_a_clock_that_was_set_is_cut_there_and_both_values_are_inside() -> None:
    rng = random.Random(3)
    before = probes(rng, 50, -183.4)
    after = [b._replace(at=b.at + 100) for b in probes(rng, 50, 0.0)]
    found = pair(before + after)
    assert found.moved
    assert found.drift is None
    (step,) = found.steps
    assert max(b.at for b in before) <= step[0] < step[1] <= min(b.at for b in after)
    assert found.low <= 0
    assert found.high >= 183.4 - 1e-6


def test_cause_and_effect_bound_one_side_and_both_directions_two() -> None:
    one = [Bound("b", "a", -3.0, math.inf, 0.0, "notification")]
    assert (solve(one, "a")["b"].low, solve(one, "a")["b"].high) == (-3.0, math.inf)
    assert solve(one, "a")["b"].shift == 0, "what may be right is left alone"
    both = [*one, Bound("a", "b", 2.5, math.inf, 0.0, "notification")]
    found = solve(both, "a")["b"]
    assert (found.low, found.high) == (-3.0, -2.5)
    assert found.shift == -2.75


def test_bounds_reach_through_others() -> None:
    found = solve([Bound("b", "a", 1.0, 2.0, 0), Bound("c", "b", 10.0, 11.0, 0), Bound("d", "e", 0, 0, 0)], "a")
    assert (found["c"].low, found["c"].high) == (11.0, 13.0)
    assert found["c"].methods == ("through others",)
    assert (found["d"].low, found["d"].high) == (-math.inf, math.inf)


def test_a_round_trip_that_contradicts_itself_is_told_and_covered() -> None:
    found = solve([Bound("b", "a", 1.0, 1.1, 0), Bound("c", "b", 1.0, 1.1, 0), Bound("c", "a", 5.0, 5.1, 0)], "a")
    assert found["c"].moved
    assert found["c"].low <= 2.0
    assert found["c"].high >= 5.1


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 6))
def test_a_graph_of_clocks_holds_the_truth(seed: int, count: int) -> None:
    rng = random.Random(seed)
    ahead = {"c0": 0.0} | {f"c{n}": rng.uniform(-300, 300) for n in range(1, count)}
    bounds = []
    for number in range(1, count):
        other = f"c{rng.randrange(number)}"
        node = f"c{number}"
        bounds += probes(rng, 3, ahead[node] - ahead[other], rng.choice([0.0, 1.0]), node=node, other=other)
    rng.shuffle(bounds)
    found = solve([b.turned() if rng.random() < 0.5 else b for b in bounds], "c0")
    for node, offset in found.items():
        assert offset.low <= -ahead[node] + 1e-6
        assert -ahead[node] - 1e-6 <= offset.high
        assert not offset.moved


def test_an_absurd_drift_is_none() -> None:
    assert drift_of([Bound("b", "a", 0, 0.1, 0), Bound("b", "a", 10, 10.1, 5)]) is None
    assert drift_of([Bound("b", "a", 1, 2, 0), Bound("b", "a", 3, 4, 0)]) is None
