"""Whatever logs hold, a figure is made and nothing is raised: fields may be anything."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.studies import T0, ask, hurt, study

from edgekeeper.model.time import Span
from edgekeeper.report.causes import caused
from edgekeeper.report.figures.bgp import f8
from edgekeeper.report.figures.blocked import f7
from edgekeeper.report.figures.budget import budget
from edgekeeper.report.figures.compare import f14
from edgekeeper.report.figures.drains import drains, fdrains
from edgekeeper.report.figures.gaps import f11
from edgekeeper.report.figures.moves import f6
from edgekeeper.report.figures.recover import recover
from edgekeeper.report.figures.switchover import f12
from edgekeeper.report.figures.watchdog import cooldowns, f9, f10
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Gap
from edgekeeper.report.verdict import judge

FIGURES = (fdrains, f6, f7, f8, f9, cooldowns, f10, f11, f12, recover, budget, f14)

NAMES = st.sampled_from(["", "/", "n1", "n2", "git/gitea-0", "git/gitea-1", "a/b-7d4b9c5f6d-x2x8z", "gitea@docker", "\x1b[2J", "-", "home/ha-pg-1", "//"])
VALUES = st.none() | st.booleans() | st.floats() | NAMES
KEYS = ("node", "reason", "again_s", "cooldown_s", "since_s", "ok", "state", "from", "to", "host", "took_s", "service", "min_s", "max_s", "bad")
MARKS = st.builds(
    Mark,
    at=st.none() | st.integers(-50, 500).map(lambda t: T0 + t),
    kind=st.sampled_from(list(Kind)),
    object=NAMES,
    what=NAMES,
    source=st.sampled_from(["a", "b"]),
    node=st.sampled_from(["", "n1", "edge-1"]),
    stamp_s=st.sampled_from([0.0, 1.0]),
    data=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3),
)


@settings(max_examples=10, deadline=None)
@given(st.lists(MARKS, max_size=14), st.lists(st.tuples(NAMES, st.integers(0, 400), st.booleans()), max_size=3))
def test_every_figure_is_made(marks: list[Mark], outages: list[tuple[str, int, bool]]) -> None:
    made = study(marks, window=(0.0, 500.0), baseline=(-100.0, 0.0), gaps=(Gap("any", "n1", "n2", ""),))
    for route, at, _ in outages:
        ask(made, route, [-50.0, at + 0.5], bad=True, client="198.51.100.7")
    made.drains = drains(made)
    made.outages = tuple(
        replace(one, span=Span(0.0, math.inf), latest=None) if open_ else one for route, at, open_ in outages for one in [hurt(route, at, at + 9)]
    )
    made.outages = caused(made)
    for figure in FIGURES:
        said = figure(made)
        assert said.answer
        assert said.table is None or all(len(row) == len(said.table.columns) for row in said.table.rows)
    assert judge(made)[0]
