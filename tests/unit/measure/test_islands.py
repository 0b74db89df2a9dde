"""Outages out of counts by the second: the truth is always inside, whatever the traffic, the failures and the clocks."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.islands import Island, Second, Seen, added, blind_s, impaired, islands, troubles


class Ask(NamedTuple):
    start: float
    end: float
    ok: bool


def cells(asked: list[Ask], shift: float = 0.0) -> list[Second]:
    """What a source whose clock is so far off keeps of them, brought back by the same shift."""
    found: dict[int, tuple[list[Ask], list[Ask]]] = {}
    for ask in asked:
        found.setdefault(math.floor(ask.start - shift), ([], []))[not ask.ok].append(ask)
    return [Second(math.floor(at + shift), len(good), len(bad), *edges(good), *edges(bad)) for at, (good, bad) in sorted(found.items())]


def edges(asked: list[Ask]) -> tuple[float, ...]:
    if not asked:
        return (math.nan,) * 4
    return min(a.start for a in asked), max(a.start for a in asked), min(a.end for a in asked), max(a.end for a in asked)


def traffic(rng: random.Random, rate: float, until: float, began: float, ended: float, failure: str) -> list[Ask]:
    """Requests of many clients to a route that is down from ``began`` to ``ended``; what was under way when it went down is cut."""
    out = []
    at = 0.0
    while (at := at + rng.expovariate(rate)) < until:
        took = rng.choice([0.001, 0.02, 0.2, 1.5]) * rng.random()
        if began <= at < ended:
            held = {"refused": 0.0005, "slow": 3.0 * rng.random(), "timeout": 5.0}[failure]
            saved = failure == "slow" and at + held > ended  # the proxy tried again, and it was back
            out.append(Ask(at, at + held + (0.01 if saved else 0), saved))
        else:
            is_cut = at < began <= at + took
            out.append(Ask(at, began if is_cut else at + took, not is_cut))
    return out


def holds(island: Island, began: float, ended: float) -> bool:
    length = ended - began
    return island.min_s <= length + 1e-6 and length <= island.max_s + 1e-6 and island.begin <= began + 1e-6 and ended <= island.end + 1e-6


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([0.3, 2.0, 15.0]),
    length=st.floats(0.05, 40.0),
    failure=st.sampled_from(["refused", "slow", "timeout"]),
    shift=st.sampled_from([0.0, 0.4, -183.7]),
)
def test_the_truth_is_inside_the_bounds(seed: int, rate: float, length: float, failure: str, shift: float) -> None:
    rng = random.Random(seed)
    began = 10 + rng.random()
    found = islands(added([Seen(cells(traffic(rng, rate, began + length + 15, began, began + length, failure), shift))]))
    assert len(found) <= 1, "one outage is one island"
    assert all(holds(island, began, began + length) for island in found)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), rate=st.sampled_from([2.0, 15.0]), length=st.floats(0.05, 20.0), width=st.sampled_from([0.01, 0.3, 2.0]))
def test_the_truth_is_inside_when_two_sources_tell_whose_clocks_are_known_only_within_bounds(seed: int, rate: float, length: float, width: float) -> None:
    rng = random.Random(seed)
    began = 10 + rng.random()
    sources = []
    for shift in (0.0, 0.4):
        wrong = rng.uniform(-width, width)
        asked = [Ask(a.start + wrong, a.end + wrong, a.ok) for a in traffic(rng, rate, began + length + 15, began, began + length, "slow")]
        sources.append(Seen(cells(asked, shift), width, width))
    found = islands(added(sources), 4 * width)
    assert len(found) <= 1
    assert all(holds(island, began, began + length) for island in found)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32),
    rate=st.sampled_from([2.0, 15.0, 40.0]),
    lengths=st.tuples(*[st.floats(0.05, 3.0)] * 2),
    gap=st.floats(0.02, 2.0),
    shift=st.booleans(),
)
def test_two_outages_close_to_each_other_never_make_a_longer_one(seed: int, rate: float, lengths: tuple[float, float], gap: float, shift: bool) -> None:
    """Where a good answer surely lay between them, no island says "at least" more than the longer of the two."""
    rng = random.Random(seed)
    began = 5 + rng.random()
    spans = [(began, began + lengths[0]), (began + lengths[0] + gap, began + lengths[0] + gap + lengths[1])]
    asked, at = [], 0.0
    while (at := at + rng.expovariate(rate)) < spans[1][1] + 5:
        down = any(b <= at < e for b, e in spans)
        asked.append(Ask(at, at + rng.choice([0.001, 0.2]) * rng.random(), not down))
    bad = [a for a in asked if not a.ok]
    between = [g for g in asked if g.ok and any(b.end <= g.start for b in bad) and any(b.start >= g.end for b in bad)]
    found = islands(added([Seen(cells(asked, 0.4 if shift else 0.0))]))
    if between:
        assert all(i.min_s <= max(lengths) + 1e-6 for i in found)
        assert all(i.max_s >= min(lengths) - 1e-6 for i in found)


def full(began: int, ended: int, rate: int = 4, until: int = 60) -> list[Ask]:
    return [Ask(s + n / rate, s + n / rate + 0.01, not began <= s < ended) for s in range(until) for n in range(rate)]


def test_bounds_are_as_tight_as_the_requests_lie() -> None:
    (only,) = islands(cells(full(20, 50)))
    assert only.min_s == pytest.approx(29.75 - 0.01)
    assert only.max_s == pytest.approx(30.25 + 0.01)
    assert (only.first_bad, only.last_bad, only.requests) == (20, 49.75, 120)


def test_without_a_good_answer_on_a_side_there_is_no_bound() -> None:
    (only,) = islands(cells(full(0, 10)))
    assert math.isinf(only.max_s)
    assert only.begin == -math.inf
    (only,) = islands(cells(full(50, 60)))
    assert only.end == math.inf


def test_a_good_answer_that_was_under_way_proves_nothing_about_before() -> None:
    """A request that hung in the outage and was answered after it must not count as a good one before."""
    asked = [Ask(5, 5.1, True), Ask(9.9, 16.0, True), Ask(10, 10.1, False), Ask(12, 12.1, False), Ask(14, 14.1, False), Ask(17, 17.1, True)]
    (only,) = islands(cells(asked))
    assert only.begin == 5
    assert only.max_s == pytest.approx(12.1)


def test_what_cells_cannot_tell_apart_is_not_claimed_as_down() -> None:
    """A good answer lies between two errors, but the cell has a slow one too, so that its edges do not prove it."""
    asked = [Ask(9, 9.1, True), Ask(10.0, 11.5, True), Ask(10.05, 10.06, False), Ask(10.4, 10.5, True), Ask(11.2, 11.21, False), Ask(12, 12.1, True)]
    found = islands(cells(asked))
    assert all(i.min_s == 0 for i in found)
    within = [Ask(9, 9.1, True), Ask(10.0, 10.95, True), Ask(10.05, 10.06, False), Ask(10.4, 10.5, True), Ask(10.8, 10.81, False), Ask(12, 12.1, True)]
    assert all(i.min_s == 0 for i in islands(cells(within)))


def test_a_slow_error_that_began_first_does_not_stretch_the_end() -> None:
    """One question hung until a timeout; others failed at once and went well again long before it was given up."""
    asked = [Ask(4, 4.1, True), Ask(5, 35, False), Ask(6, 6.01, False), Ask(11, 11.1, True), Ask(36, 36.1, True)]
    (only,) = islands(cells(asked))
    assert only.end == 11.1


def test_single_errors_are_no_outage_and_are_counted() -> None:
    asked = full(0, 0)
    asked[100] = asked[100]._replace(ok=False)
    found, singles = troubles(cells(asked))
    assert (found, singles) == ([], 1)


def test_one_dead_server_of_two_is_one_impairment_with_bounds_of_all_of_it() -> None:
    rng = random.Random(5)
    asked = [a._replace(ok=a.ok or rng.random() < 0.5) for a in full(20, 50, rate=10)]
    (only,), _ = troubles(cells(asked))
    assert not only.full
    assert only.whole.good > 0
    assert only.whole.min_s <= 30 <= only.whole.max_s
    assert only.whole.begin < 20
    assert only.whole.end > 50
    assert only.impaired_s == 30
    assert only.longest.max_s < 5


def test_impaired_seconds_are_joined_over_short_gaps_only() -> None:
    def of(second: int, good: int, bad: int) -> Second:
        return Second(second, good, bad, *[float(second)] * 8)

    assert impaired([of(1, 0, 1), of(6, 9, 1), of(13, 1, 1), of(14, 100, 4)]) == [(1, 7), (13, 14)]


def test_what_could_not_be_seen_is_the_longest_gap_between_good_answers() -> None:
    assert blind_s(cells([Ask(1, 1.1, True), Ask(4, 4.5, True), Ask(5, 5.1, True)])) == pytest.approx(3.5)
    assert math.isinf(blind_s(cells([Ask(1, 1.1, True)])))
    assert math.isinf(blind_s([]))
