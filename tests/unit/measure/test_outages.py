"""Outages with bounds: the truth is always inside, and silence is never zero."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.measure.outages import Outage, blind_s, hole_of, longest, outages, summarize
from edgekeeper.model.sample import Sample


def sample(sent: float, *, ok: bool = True, took: float = 0.01, slow: bool = False) -> Sample:
    return Sample(sent, "t", "fresh", sent, sent + took, ok, slow=slow)


def asked(period: float, until: float, began: float, ended: float, *, refused: bool, timeout: float, rng: random.Random) -> list[Sample]:
    """What a probe sees of a service that is down from ``began`` to ``ended``, answering within 50 ms when it is up."""
    out = []
    sent = rng.random() * period
    while sent < until:
        if began <= sent < ended:
            out.append(sample(sent, ok=False, took=0.001 if refused else timeout))
        else:
            out.append(sample(sent, took=rng.random() * 0.05))
        sent += period * rng.uniform(0.95, 1.05)
    return out


@given(
    period=st.sampled_from([0.05, 0.25, 1.0, 2.0]),
    length=st.floats(0.01, 20.0),
    refused=st.booleans(),
    timeout=st.sampled_from([0.5, 1.0, 3.0]),
    seed=st.integers(0, 2**32),
)
def test_the_truth_is_inside_the_bounds(period: float, length: float, refused: bool, timeout: float, seed: int) -> None:
    rng = random.Random(seed)
    began = 10 + rng.random() * 3
    seen = asked(period, began + length + 20, began, began + length, refused=refused, timeout=timeout, rng=rng)
    found = outages(seen)
    if not found:
        assert length <= blind_s(seen) + 1e-9, "an outage that left no trace is shorter than the bound"
        return
    (only,) = found
    assert only.min_s <= length + 1e-9
    assert length <= only.max_s + 1e-9


@given(seed=st.integers(0, 2**32), lost_syn=st.floats(0.1, 0.95))
def test_an_answer_that_came_after_a_resent_syn_proves_nothing_about_before(seed: int, lost_syn: float) -> None:
    """A good answer whose first packet was lost in the outage must not shorten it."""
    rng = random.Random(seed)
    began, ended = 10.0, 10.0 + lost_syn
    seen = [s for s in asked(0.25, 20, 1e9, 1e9, refused=False, timeout=2, rng=rng) if not began <= s.sent < ended]
    hit = [began + rng.random() * lost_syn for _ in range(6)]
    seen += [sample(t, took=1.0 + rng.random() * 0.01) for t in hit[:5]] + [sample(hit[5], ok=False, took=2.0)]
    (only,) = outages(seen)
    assert only.min_s <= lost_syn <= only.max_s + 1e-9


def test_a_run_of_bad_answers_is_one_outage_with_its_arithmetic() -> None:
    seen = [sample(0), sample(1), sample(2, ok=False, took=0.5), sample(3, ok=False, took=0.5), sample(4), sample(5)]
    assert outages(seen) == (Outage(min_s=0.5, max_s=pytest.approx(3.01), first_bad=2, last_bad=3, bad=2),)


def test_an_outage_without_an_end_has_no_upper_bound() -> None:
    (only,) = outages([sample(0), sample(1, ok=False), sample(2, ok=False)])
    assert math.isinf(only.max_s)
    assert only.text() == "at least 0.99 s"
    (only,) = outages([sample(0, ok=False), sample(1)])
    assert math.isinf(only.max_s)


def test_texts_have_bounds() -> None:
    assert Outage(0, 0.5, 0, 0, 1).text() == "less than 0.50 s"
    assert Outage(0.25, 0.5, 0, 0, 1).text() == "0.25 s to 0.50 s"


def test_strict_counts_slow_answers_as_bad() -> None:
    seen = [sample(0), sample(1, slow=True, took=1.2), sample(3)]
    assert outages(seen) == ()
    assert len(outages(seen, strict=True)) == 1


def test_order_of_the_samples_does_not_matter() -> None:
    seen = [sample(t, ok=t not in {3, 4}) for t in range(8)]
    assert outages(reversed(seen)) == outages(seen)


def test_quiet_joins_what_one_dead_server_of_three_did() -> None:
    seen = [sample(t / 10, ok=t % 3 != 0 or not 10 <= t <= 30) for t in range(60)]
    assert len(outages(seen)) > 5
    (joined,) = outages(seen, quiet_s=1.0)
    assert joined.good > joined.bad > 0
    assert joined.first_bad == pytest.approx(1.2)
    assert joined.last_bad == pytest.approx(3.0)


def test_two_outages_stay_two() -> None:
    seen = [sample(t, ok=t not in {2, 6}) for t in range(10)]
    assert len(outages(seen)) == 2
    assert longest(outages(seen)) == outages(seen)[0]
    assert longest(()) is None


def test_no_failure_seen_comes_with_its_bound() -> None:
    summary = summarize([sample(0), sample(1), sample(3)])
    assert summary.text() == "no failure seen in 3 questions; an outage shorter than 2.01 s would not have been seen"
    assert summary.worst is None


def test_bad_answers_do_not_narrow_the_bound() -> None:
    assert blind_s([sample(0), sample(1, ok=False), sample(2)]) == pytest.approx(2.01)


def test_one_good_answer_bounds_nothing() -> None:
    assert math.isinf(blind_s([sample(0)]))
    assert summarize([sample(0)]).text() == "no failure seen in 1 questions"
    assert summarize([]).text() == "nothing asked"


def test_the_summary_counts() -> None:
    summary = summarize([sample(0), sample(1, ok=False), sample(2, slow=True, took=0.95), sample(3), sample(4, ok=False), sample(5)])
    assert (summary.asked, summary.unanswered, summary.slow) == (6, 2, 1)
    assert summary.text().startswith("2 of 6 questions unanswered in 2 outages, the longest less than")
    assert len(summary.strict) == 2


def test_the_time_in_which_nobody_asked_does_not_count_for_the_least() -> None:
    """A machine that slept for five minutes between two failures has not seen five minutes of outage."""
    asked = [0.0, 1.0, 2.0, 3.0, 303.0, 304.0, 305.0]
    samples = [Sample(at, "dns", "fresh", at, at + 0.1, ok=at in {0.0, 305.0}) for at in asked]
    (told,) = outages(samples, hole_s=hole_of(samples))
    assert told.min_s == pytest.approx((3.0 - 1.1) + (304.0 - 303.1))
    assert told.max_s == pytest.approx(305.1 - 0.0)
    (careless,) = outages(samples)
    assert careless.min_s == pytest.approx(304.0 - 1.1)
