"""The running form says the same as the whole form, whatever the order in which answers arrive, and keeps little."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.measure.outages import outages, summarize
from edgekeeper.measure.running import KEPT, Running, Times
from edgekeeper.model.sample import Sample
from edgekeeper.model.time import Span


def sample(sent: float, took: float, *, ok: bool, slow: bool = False) -> Sample:
    return Sample(sent, "dns://192.0.2.53/a.example", "fresh", sent, sent + took, ok, slow=ok and slow)


SAMPLES = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30), st.booleans(), st.booleans()), max_size=60, unique_by=lambda s: s[0])


@settings(max_examples=150)
@given(SAMPLES, st.integers(0, 5), st.sampled_from([0.5, 3.0, math.inf]))
def test_it_says_the_same_as_the_whole_form(drawn: list[tuple[int, int, bool, bool]], every: int, hole_s: float) -> None:
    samples = [sample(at / 10, took / 10, ok=ok, slow=slow) for at, took, ok, slow in drawn]
    running = Running(hole_s)
    arriving = sorted(samples, key=lambda s: s.done)
    for number, one in enumerate(arriving):
        running.add(one)
        if every and number % every == 0:
            running.settle(min((later.sent for later in arriving[number + 1 :]), default=math.inf))
    running.settle()
    said = running.summary()
    assert said.lenient == outages(samples, hole_s=hole_s)
    assert said.strict == outages(samples, hole_s=hole_s, strict=True)
    assert replace(said, lenient=(), strict=()) == replace(summarize(samples), lenient=(), strict=())


def test_an_outage_under_way_is_open_and_ends_with_the_next_good_answer() -> None:
    running = Running()
    for at, ok in ((0, True), (1, False), (2, False)):
        running.add(sample(at, 0.1, ok=ok))
    assert running.settle() == []
    assert (under_way := running.current()) is not None
    assert (under_way.min_s, under_way.max_s, running.outages) == (2 - 1.1, math.inf, 1)
    running.add(sample(3, 0.1, ok=True))
    (ended,) = running.settle()
    assert (ended.min_s, ended.max_s, running.current(), running.outages) == (2 - 1.1, 3.1, None, 1)


def test_a_question_under_way_holds_back_what_was_sent_after_it() -> None:
    running = Running()
    running.add(sample(0, 0.1, ok=True))
    running.add(sample(2, 0.1, ok=False))
    running.settle(1.0)  # one that was sent at 1.0 has not been answered yet
    assert running.current() is None
    running.add(sample(1, 1.5, ok=True))
    running.settle()
    assert running.summary() == summarize([sample(0, 0.1, ok=True), sample(2, 0.1, ok=False), sample(1, 1.5, ok=True)])


def test_a_day_of_flapping_keeps_the_longest_and_not_all() -> None:
    running = Running()
    running.add(sample(0, 0.1, ok=True))
    running.add(sample(1, 0.1, ok=False))
    for number in range(5, 2 * KEPT + 200):
        running.add(sample(number, 0.1, ok=number % 2 == 1))
    running.settle()
    said = running.summary()
    assert len(said.lenient) == KEPT + 1
    assert running.outages == KEPT + 98
    assert said.worst is not None
    assert said.worst.max_s > 4


def test_quantiles_are_right_to_four_percent() -> None:
    times = Times()
    assert times.quantile(0.5) is None
    for number in range(1, 1001):
        times.add(number / 1000)
    for share in (0.5, 0.95, 0.99):
        found = times.quantile(share)
        assert found is not None
        assert share <= found <= share * 1.04


def test_totals_count_from_the_first_question_on_and_up_to_now() -> None:
    running = Running()
    assert running.total(5.0) == Span(0.0, 0.0)
    for at, ok in ((0, False), (1, False), (2, True), (3, True), (4, False), (5, False)):
        running.add(sample(at, 0.1, ok=ok))
    running.settle()
    first, second = Span(1 - 0.1, 2.1 - 0), Span(5 - 4.1, 6 - 3)
    total = running.total(6.0)
    assert math.isclose(total.min_s, first.min_s + second.min_s)
    assert math.isclose(total.max_s, first.max_s + second.max_s)
