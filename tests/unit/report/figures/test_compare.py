"""F14: two rolls against each other, without crying wolf."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import ask, hurt, roll, study

from edgekeeper.measure.permutation import Chance
from edgekeeper.model.time import Span
from edgekeeper.report.figures.compare import LEVEL, compare, compared, f14, former_roll, roll_of
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.study import Study


def rolled(seconds: dict[str, float], *nodes: str) -> Study:
    made = study([m for i, node in enumerate(nodes) for m in roll(node, 300.0 * i, f"a/x-{i}")])
    made.drains = drains(made)
    for app in seconds:
        ask(made, app, [0.0, 1400.0])
    made.outages = tuple(hurt(app, 100, 100 + length) for app, length in seconds.items() if length)
    return made


def page(made: Study) -> dict[str, Any]:
    """The former report as it comes back from its JSON page."""
    figure = f14(made)
    return dict(json.loads(json.dumps({"schema": 1, "figures": [{"id": "F1", "data": {}}, {"id": figure.id, "data": figure.data}]})))


APPS = {f"app{i}": 40.0 + i for i in range(8)}


def test_a_roll_is_read_back_from_its_page_as_it_was() -> None:
    made = rolled({**APPS, "calm": 0.0}, "n1", "n2")
    assert former_roll(page(made)) == roll_of(made)
    assert f14(made).answer == "8 routes of 9 with outages, 5 min 48 s to 6 min 4 s if added up"


def test_a_halving_of_eight_is_claimed() -> None:
    figure = compared(rolled({name: s / 2 for name, s in APPS.items()}, "n1"), page(rolled(APPS, "n1")))
    assert figure.data["claimed"] == "less"
    assert figure.answer.startswith("outages were shorter than in the former roll: median difference between -")
    assert figure.data["least"]["p"] == figure.data["most"]["p"] == 2 / 256
    worse = compared(rolled(APPS, "n1"), page(rolled({name: s / 2 for name, s in APPS.items()}, "n1")))
    assert worse.data["claimed"] == "more"


def test_the_same_roll_is_not_called_different_and_both_are_printed() -> None:
    figure = compared(rolled(APPS, "n1", "n2"), page(rolled(APPS, "n2", "n1")))
    assert figure.data["claimed"] == ""
    assert figure.answer.startswith("no difference can be shown")
    assert figure.notes[0] == "Then 0 of 16 requests failed, drained n2 then n1, 2 pods moved, 0 of them again."
    assert "another order" in " ".join(figure.notes)


def test_a_change_is_claimed_only_where_the_least_and_the_most_agree() -> None:
    then = {name: Span(40.0, 41.0) for name in APPS}
    vague = {name: Span(20.0, 60.0) for name in APPS}
    found = compare(vague, then)
    assert found.least.p < LEVEL > found.most.p  # each is sure, of the opposite
    assert found.claimed == ""
    assert compare({name: Span(20.0, 41.0) for name in APPS}, then).claimed == ""
    mixed = {name: Span(20.0, 40.9 if i % 4 else 41.2) for i, name in enumerate(APPS)}
    assert compare(mixed, then).most.median_s < 0
    assert compare(mixed, then).claimed == ""


def test_five_routes_are_too_few_and_that_is_said() -> None:
    few = {name: APPS[name] for name in list(APPS)[:5]}
    assert compared(rolled(dict.fromkeys(few, 1.0), "n1"), page(rolled(few, "n1"))).answer.startswith(
        "5 routes with an outage are too few to show any difference"
    )


def test_open_outages_and_routes_of_one_roll_only_are_left_out_and_said() -> None:
    made = rolled({**APPS, "new": 5.0}, "n1")
    made.outages = tuple(replace(h, span=Span(10.0, math.inf)) if h.router == "app0" else h for h in made.outages)
    figure = compared(made, page(rolled({**APPS, "old": 5.0}, "n1")))
    assert figure.data["pairs"] == 7
    assert any("unknown end" in note and "app0" in note for note in figure.notes)
    assert any("new, old" in note for note in figure.notes)


def test_a_roll_without_double_moves_is_another_experiment() -> None:
    twice = study([*roll("n1", 0.0, "a/x-0"), *roll("n2", 300.0, "a/x-0")])
    twice.drains = drains(twice)
    ask(twice, "app0", [0.0])
    assert any("different experiment" in note for note in compared(rolled({"app0": 5.0}, "n1", "n2"), page(twice)).notes)


@pytest.mark.parametrize("former", [{}, {"figures": None}, {"figures": [3, {"id": "F14"}, {"id": "F14", "data": {"apps": 7}}]}])
def test_a_report_without_the_figure_is_refused_in_plain_words(former: dict[str, Any]) -> None:
    assert not compared(rolled(APPS, "n1"), former).measured


@settings(max_examples=10, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    )
)
def test_nothing_in_a_file_breaks_it(value: Any) -> None:
    compared(
        rolled(APPS, "n1"),
        {"figures": [{"id": "F14", "data": {"apps": {"app0": value, "app1": {"min_s": value, "max_s": 1}}, "order": value, "moves": value}}]},
    )


def test_two_equal_rolls_are_called_different_in_one_of_twenty_cases_at_most() -> None:
    chance = Chance(7)

    def outage() -> float:
        return 20.0 + 60.0 * (chance.below(1000) / 1000) ** 2

    wolves = 0
    for _ in range(150):
        first, second = ({f"app{i}": Span(s := outage(), s + 2.0) for i in range(10)} for _ in range(2))
        least, most = ([second[n].min_s - first[n].min_s for n in first], [second[n].max_s - first[n].max_s for n in first])
        wolves += _p(least) <= LEVEL and _p(most) <= LEVEL
    assert wolves <= 0.07 * 150
    assert wolves >= 1  # the test has a level: it is not one that never speaks


def _p(differences: list[float]) -> float:
    from edgekeeper.measure.permutation import flip_exact  # noqa: PLC0415 - the interval of the median, which is slow, is not asked for

    return flip_exact([round(d * 1000) for d in differences])


def test_routes_that_were_never_hurt_are_no_pairs_of_which_nothing_changed() -> None:
    calm = {f"calm{i}": 0.0 for i in range(20)}
    figure = compared(rolled({**calm, **{name: s / 2 for name, s in APPS.items()}}, "n1"), page(rolled({**calm, **APPS}, "n1")))
    assert figure.data["claimed"] == "less"
    assert figure.data["pairs"] == len(APPS)
    assert "20 routes had no outage in either roll" in " ".join(figure.notes)
    figure = compared(rolled(calm, "n1"), page(rolled(calm, "n1")))
    assert figure.answer == "none of 20 routes that were asked in both rolls had an outage in either"


def test_what_is_claimed_is_what_p_tests() -> None:
    then = {f"app{i}": Span(50.0, 51.0) for i in range(13)}
    now = {name: Span(50.0, 51.0) if i < 7 else Span(10.0, 11.0) for i, name in enumerate(then)}
    found = compare(now, then)
    assert (found.least.median_s, found.least.p) == (0.0, 2 / 64)
    assert found.claimed == "less"
