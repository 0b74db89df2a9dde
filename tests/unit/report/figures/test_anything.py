"""Whatever was read, every figure is made: odd names, odd numbers, odd times, clocks without bounds."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import T0, ask, study

from edgekeeper.model.sample import Sample
from edgekeeper.report import figures
from edgekeeper.report.figures.clocks import clocks_of
from edgekeeper.report.figures.drains import drains
from edgekeeper.report.figures.outages import outages
from edgekeeper.report.kinds import Kind, Mark

NAMES = st.sampled_from(["", "n1", "git/gitea-0", "https://a.example/", "://", "\x1b[2J", "<b>|`", "x" * 256])
VALUES = st.none() | st.booleans() | st.floats() | NAMES | st.sampled_from(["sent", "logged", "Killing", "Stopping container x"])
KEYS = ("side", "until", "reason", "message", "code", "client", "age_s", "down", "min_s", "max_s", "bad", "asked", "state", "cooldown_s", "since_s")
MARKS = st.builds(
    Mark,
    at=st.none() | st.integers(-50, 500).map(lambda t: T0 + t),
    kind=st.sampled_from(list(Kind)),
    object=NAMES,
    source=st.sampled_from(["a", "b", "c"]),
    stamp_s=st.sampled_from([0.0, 1.0]),
    data=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
)
ASKED = st.tuples(NAMES, st.integers(-60, 500), st.booleans(), st.sampled_from(["lan", ""]), st.sampled_from([0.0, 0.5, 700.0]))
PROBED = st.tuples(st.integers(0, 500), st.booleans(), st.floats(0, 5), st.booleans())


@settings(max_examples=12, deadline=None)
@given(st.lists(MARKS, max_size=12), st.lists(ASKED, max_size=8), st.lists(PROBED, max_size=8), NAMES)
def test_every_figure_is_made_and_its_rows_fit_its_columns(
    marks: list[Mark], asked: list[tuple[str, int, bool, str, float]], probed: list[tuple[int, bool, float, bool]], target: str
) -> None:
    made = study(marks, window=(0.0, 500.0), baseline=(-100.0, 0.0))
    for route, at, bad, group, took in asked:
        ask(made, route, [at + 0.25], bad=bad, group=group, took_s=took, client=route)
    made.book.samples["a", target, "fresh"] = [Sample(T0 + at, target, "fresh", T0 + at, T0 + at + took, ok, slow=slow and ok) for at, ok, took, slow in probed]
    made.clocks = {clock.node: clock for clock in clocks_of(made.book, "a", {"c": -3.0})}
    made.drains = drains(made)
    made.outages = outages(made)
    assert all(h.span.min_s <= h.span.max_s and not math.isnan(h.span.min_s) for h in made.outages)
    made.outages = tuple(replace(h, cause="a cause") for h in made.outages)
    for figure in figures.ALL:
        said = figure(made)
        assert said.answer
        assert said.table is None or all(len(row) == len(said.table.columns) for row in said.table.rows)
