"""The time to recover and its phases, and the budget of errors."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.fakes.studies import T0, ask, hurt, mark, roll, skewed, study

from edgekeeper.model.time import Span
from edgekeeper.report.figures.budget import budget, down_minutes, percent_span, spent
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.recover import recover, recoveries
from edgekeeper.report.figures.traffic import Count
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.people import Run
from edgekeeper.report.study import Study


def event(at: float, reason: str, pod: str = "git/gitea-0") -> Mark:
    return mark(at, Kind.POD, pod, "events", stamp_s=1.0, reason=reason)


SLOW_VOLUME = [
    event(110, "Killing"),
    event(116, "Scheduled"),
    event(118, "FailedAttachVolume"),
    event(147, "SuccessfulAttachVolume"),
    event(150, "Pulled"),
    event(151, "Started"),
]


def rolled(*marks: Mark) -> Study:
    """gitea evicted at 110, bad from 112 to 164, good at 166 or before."""
    made = study([*roll("n1", 100, "git/gitea-0"), *marks])
    made.drains = drains(made)
    ask(made, "gitea@docker", [0.0, 200.0])
    made.outages = (replace(hurt("gitea@docker", 112, 164), latest=T0 + 166),)
    return made


def test_the_sentence_that_an_operator_acts_on() -> None:
    made = rolled(*SLOW_VOLUME)
    (found,) = recoveries(made)
    assert {p.name: p.took_s for p in found.phases} == {
        "the old pod's grace": 2.0,
        "scheduling": 4.0,
        "the volume": 31.0,
        "the image": 3.0,
        "the start": 1.0,
        "the route": 15.0,
    }
    assert (found.whole.min_s, found.whole.max_s) == (54.0, 56.0)
    assert found.trouble == ("FailedAttachVolume",)
    assert recover(made).answer == "gitea@docker: 31 of 56 s were the volume, after git/gitea-0 was evicted from n1; 1 recovery"


def test_an_early_cordon_of_the_next_node_does_not_take_the_eviction_away() -> None:
    made = study([mark(99, Kind.CORDONED, "n2", "roll"), *roll("n1", 100, "git/gitea-0"), *roll("n2", 500, "git/gitea-0")])
    made.drains = drains(made)
    ask(made, "gitea@docker", [0.0])
    made.outages = (hurt("gitea@docker", 115, 150), hurt("gitea@docker", 515, 530))
    assert sorted(r.evicted - T0 for r in recoveries(made)) == [110.0, 510.0]


def test_without_events_only_the_whole_is_told() -> None:
    figure = recover(rolled())
    assert figure.answer == "gitea@docker took longest, 54 s to 56 s after git/gitea-0 was evicted from n1; 1 recovery"
    assert "No Events" in figure.notes[0]


def test_phases_add_up_whatever_is_missing_or_out_of_order() -> None:
    (found,) = recoveries(rolled(event(147, "SuccessfulAttachVolume"), event(120, "Started"), event(190, "Ready"), event(140, "Scheduled", "git/gitea-1")))
    assert sum(p.took_s for p in found.phases) == pytest.approx(56.0)
    assert [p.name for p in found.phases] == ["the old pod's grace", "the volume", "the start", "the route"]


def test_an_open_end_and_a_wrong_clock_stay_visible() -> None:
    made = rolled()
    made.outages = (replace(made.outages[0], latest=None),)
    assert math.isinf(recoveries(made)[0].whole.max_s)
    skewed(made, "access", -3.0, 3.0, 0.0)
    assert recoveries(made)[0].whole.min_s == 51.0


def test_the_pod_of_a_deployment_comes_back_by_another_name() -> None:
    old, new = "web/wiki-7d4b9c5f6d-x2x8z", "web/wiki-7d4b9c5f6d-l9wqk"
    made = study([*roll("n1", 100, old), event(116, "Scheduled", new), event(150, "Started", new), event(120, "Scheduled", old)])
    made.drains = drains(made)
    ask(made, "wiki@docker", [0.0])
    made.outages = (hurt("wiki@docker", 112, 164),)
    assert [(p.name, p.took_s) for p in recoveries(made)[0].phases] == [
        ("the old pod's grace", 2.0),
        ("scheduling", 4.0),
        ("the start", 34.0),
        ("the route", 15.0),
    ]


def test_nothing_to_recover_from() -> None:
    assert not recover(study()).measured
    made = rolled()
    made.outages = (hurt("unknown@docker", 112, 164),)
    assert "report.feeds" in recover(made).answer


def test_the_budget_of_the_published_example() -> None:
    share = spent(Count(3391, 185), Span(210.0, 210.0), slo=0.999, days=30, asked_s=3391 / 1440)
    assert share.time.min_s == pytest.approx(0.081, abs=5e-4)  # 3.5 of 43.2 minutes
    assert share.burn == pytest.approx(54.6, abs=0.1)
    assert share.requests == pytest.approx(185 / (3391 / 1440 * 30 * 86400 * 0.001))
    assert spent(Count(0, 0), Span(0, 0), slo=0.999, days=30, asked_s=0.0).requests is None


def test_it_is_told_as_an_interval_with_what_it_rests_on() -> None:
    made = study()
    ask(made, "a", [t * 1.0 for t in range(1440)])
    ask(made, "a", [100.5 + t for t in range(20)], bad=True)
    made.outages = (hurt("a", 100, 120), hurt("https://a.example", 0, 1000, group="probe"))
    figure = budget(made)
    assert figure.data["burn"] == pytest.approx(20 / 1460 / 0.001)
    assert figure.answer.startswith("a spent 0.83 % to 0.91 % of its time budget")
    assert "1439.0 s that was read" in figure.notes[1] or "23 min 59 s" in figure.notes[1]
    assert figure.data["budget"] == pytest.approx(20 / (1460 / 1439 * 28 * 86400 * 0.001))
    assert not budget(study()).measured


def test_minutes_of_users() -> None:
    runs = (Run(0, 600, 10, ok=True), Run(630, 690, 3, ok=False), Run(750, 900, 2, ok=True), Run(5000, 5060, 2, ok=False))
    assert down_minutes(runs, 0, 10_000) == (12.5, 3.0)  # down from its first bad answer to its next good one, or its last sign
    assert down_minutes(runs, 660, 720) == (0.0, 1.0)
    assert down_minutes((Run(0, 10, 1, ok=False), Run(4000, 4010, 1, ok=True)), 0, 10_000) == (10 / 60, 10 / 60)  # unknown after half an hour
    overlapping = (Run(0, 600, 0, ok=True), Run(120, 180, 3, ok=False), Run(900, 960, 0, ok=True))
    assert down_minutes(overlapping, 0, 10_000) == (10.0, 1.0)
    made = study()
    ask(made, "a", [0, 60], client="198.51.100.7")
    ask(made, "a", [120], client="198.51.100.7", bad=True)
    ask(made, "a", [240], client="198.51.100.7")
    assert "2.0 of 3 minutes of users were down, for 1 client" in budget(made).answer


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.0, 0.0, "0 %"), (0.0, 0.004, "less than 0.4 %"), (0.01, 0.02, "1 % to 2 %"), (0.5, math.inf, "at least 50.0 %"), (0.0101, 0.0102, "1 %")],
)
def test_shares_as_people_read_them(low: float, high: float, text: str) -> None:
    assert percent_span(Span(low, high)) == text
