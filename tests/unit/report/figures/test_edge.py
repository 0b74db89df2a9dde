"""F5 and the smoke of probes: each way in, any dark, all dark; how long answers took."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import T0, skewed, study

from edgekeeper.model.sample import Sample
from edgekeeper.report.figures.answered import answered
from edgekeeper.report.figures.edge import alike, all_dark, any_dark, common, f5, length, united, ways
from edgekeeper.report.figures.probes import quantile, slots, smoke
from edgekeeper.report.study import Study


def probe(made: Study, target: str, *dark: tuple[float, float], source: str = "prober", conn: str = "fresh", every: float = 1.0, phase: float = 0.0) -> None:
    found = []
    for n in range(int(300 / every)):
        at = n * every + phase
        bad = any(begin <= at < end for begin, end in dark)
        found.append(Sample(T0 + at, target, conn, T0 + at, T0 + at + (0.5 if bad else 0.02), not bad))
    made.book.samples[source, target, conn] = found


def test_one_member_dark_is_any_and_both_at_once_is_all() -> None:
    made = study(window=(0.0, 300.0))
    probe(made, "https://192.0.2.1/ready", (100, 130))
    probe(made, "https://192.0.2.2/ready", (120, 150), phase=0.5)
    (group,) = alike(ways(made)).values()
    both, either = all_dark(group), any_dark(group)
    assert both.min_s <= 10 <= both.max_s
    assert either.min_s <= 50 <= either.max_s
    assert either.max_s - either.min_s < 3
    figure = f5(made)
    assert "ways that are alike were all dark at once" in figure.answer
    assert figure.timeline is not None
    assert [len(row.bars) for row in figure.timeline.rows] == [1, 1]
    assert figure.data["alike"][0]["ways"] == "https://*/ready (fresh)"


def test_clocks_that_are_known_only_roughly_make_all_dark_uncertain() -> None:
    made = study(window=(0.0, 300.0))
    probe(made, "https://192.0.2.1/", (100, 110), source="a")
    probe(made, "https://192.0.2.1/", (100, 110), source="b")
    sharp = all_dark(next(iter(alike(ways(made)).values())))
    skewed(made, "b", -3.0, 3.0, 0.0)
    rough = all_dark(next(iter(alike(ways(made)).values())))
    assert sharp.min_s > 8
    assert rough.min_s == pytest.approx(sharp.min_s - 6)
    assert any_dark(ways(made)[1:]).min_s == pytest.approx(8.5), "its own length is none of the other clock's business"


def test_no_failure_seen_comes_with_its_bound() -> None:
    made = study(window=(0.0, 300.0))
    probe(made, "tcp://192.0.2.1:443", every=2.0)
    figure = f5(made)
    assert figure.answer == "no probe failed in 150 questions; what was shorter than 2.02 s would not have been seen"
    assert figure.timeline is None
    assert not f5(study()).measured
    assert not smoke(study()).measured


def test_two_kinds_of_connection_and_two_services_are_not_alike() -> None:
    made = study(window=(0.0, 300.0))
    probe(made, "https://192.0.2.1/")
    probe(made, "https://192.0.2.1/", conn="warm")
    probe(made, "https://192.0.2.1:8443/")
    probe(made, "https://[2001:db8::1]/")
    assert {key: len(group) for key, group in alike(ways(made)).items()} == {"https://*/ (fresh)": 2}


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


@settings(max_examples=20)
@given(SPANS, SPANS)
def test_spans_are_united_and_cut_as_sets_of_moments_are(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> None:
    def moments(spans: list[tuple[int, int]]) -> set[int]:
        return {m for begin, end in spans for m in range(begin, end)}

    assert length(united(one)) == len(moments(one))
    assert length(common(united(one), united(two))) == len(moments(one) & moments(two))


@settings(max_examples=8)
@given(st.integers(0, 2**32))
def test_the_truth_of_all_dark_and_any_dark_is_inside(seed: int) -> None:
    rng = random.Random(seed)
    spans = [(b := rng.uniform(50, 150), b + rng.uniform(2, 60)) for _ in range(3)]
    made = study(window=(0.0, 300.0))
    for n, span in enumerate(spans):
        probe(made, f"https://192.0.2.{n}/", span, phase=rng.random())
    (group,) = alike(ways(made)).values()
    assert all_dark(group).min_s <= max(0.0, min(e for _, e in spans) - max(b for b, _ in spans)) <= all_dark(group).max_s
    truth = length(united(spans))
    assert any_dark(group).min_s <= truth <= any_dark(group).max_s


def test_smoke_shows_what_failed_and_how_long_others_waited() -> None:
    made = study(window=(0.0, 300.0))
    probe(made, "dns://192.0.2.53/a.example", (100, 110))
    figure = smoke(made)
    assert figure.answer == "10 of 300 questions to 1 target failed (3.3 %)"
    (chart,) = figure.smoke
    failed = {at - T0: share for at, _, _, share in chart.slots if share}
    assert min(failed) <= 100 <= max(failed) <= 110
    assert all(median == pytest.approx(0.02) for _, median, _, share in chart.slots if share == 0)


def who(made: Study, *names: str | None) -> None:
    """One answer a second, by these; None: nobody answered."""
    target = "dns://192.0.2.53/id.example"
    made.book.samples["prober", target, "fresh"] = [
        Sample(T0 + n, target, "fresh", T0 + n, T0 + n + 0.02, name is not None, answered_by=name) for n, name in enumerate(names)
    ]


def test_a_vip_that_moves_is_told_with_how_long_it_took_at_most() -> None:
    made = study(window=(0.0, 300.0))
    who(made, "n1", "n1", None, None, "n2", "n2")
    figure = answered(made)
    assert figure.answer == "1 change of who answered, each within 3.02 s at most"
    assert figure.data["changes"][0] | {"at": 0} == {
        "target": "dns://192.0.2.53/id.example",
        "old": "n1",
        "new": "n2",
        "at": 0,
        "max_s": pytest.approx(3.02, abs=1e-3),
        "lost": 2,
    }
    who(made, "n1", "n1")
    assert answered(made).answer == "the same one answered all the time"
    who(made, *["n1", "n2"] * 15)
    assert answered(made).answer == "several answered in turn"
    who(made, None, None)
    assert not answered(made).measured


def test_slots_in_which_nothing_was_asked_are_left_out() -> None:
    one = Sample(0, "x", "fresh", 5.0, 5.1, ok=False)
    assert slots([one], 0.0, 2.0) == ((4.0, None, None, 1.0),)
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2.0
    assert quantile([], 0.5) is None
