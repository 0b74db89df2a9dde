"""Hundreds of outages planted in access logs of every kind of traffic: each is found, and its true length lies within what is printed.

The unit tests try a few of them at each change; here are enough to say "in every case".
"""

from __future__ import annotations

import math
import random

import pytest
from tests.fakes.studies import T0, skewed, study

from edgekeeper.report.book import Source
from edgekeeper.report.cells import Lane
from edgekeeper.report.figures.outages import outages
from edgekeeper.report.kinds import Request
from edgekeeper.report.rules import Verdict
from edgekeeper.report.study import Study

ROUNDS = 300
FAILURES = ("refused", "slow", "timeout")


def planted(rng: random.Random, failure: str) -> tuple[Study, float, float]:
    """A route that several sources tell of, whose stamps are exact, cut to the second or on a clock that is known only roughly."""
    began = 120 + rng.random() * 60
    ended = began + rng.choice([rng.uniform(0.2, 5), rng.uniform(30, 90)])
    rate = rng.choice([0.3, 2.0, 10.0])
    coarse = rng.choice([0.0, 0.0, 1.0])
    made = study(window=(0.0, 400.0))
    for number in range(rng.choice([1, 2])):
        width = rng.choice([0.0, 0.2, 1.0]) if number else 0.0
        wrong = rng.uniform(-width, width)
        source = f"pod-{number}"
        at = 0.0
        while (at := at + rng.expovariate(rate)) < 400:
            took = rng.choice([0.001, 0.02, 0.2, 1.5]) * rng.random()
            bad = began <= at < ended
            if bad:
                took = {"refused": 0.0005, "slow": 3.0 * rng.random(), "timeout": 10.0}[failure]
            elif at < began <= at + took:
                bad, took = True, began - at  # it was cut
            stamp = at + wrong
            stamp = math.floor(stamp) if coarse else stamp
            request = Request(T0 + stamp, took, 503 if bad else 200, "app")
            made.book.cells.add(Lane(source, "app", ""), request, Verdict.BAD if bad else Verdict.GOOD)
        skewed(made, source, -width, width, 0.0)
        made.book.sources[source] = Source(source, source, "test", stamp_s=coarse)
    return made, T0 + began, T0 + ended


@pytest.mark.parametrize("failure", FAILURES)
def test_every_outage_is_inside_its_bounds(failure: str) -> None:
    found = missed = 0
    for seed in range(ROUNDS):
        made, began, ended = planted(random.Random(f"{failure}-{seed}"), failure)
        hurts = outages(made)
        if not hurts:
            missed += 1
            assert ended - began < 60, f"seed {seed}: a long outage was not found"
            continue
        assert len(hurts) == 1, f"seed {seed}: one outage was told as {hurts}"
        (hurt,) = hurts
        found += 1
        assert hurt.span.min_s <= ended - began + 1e-3, f"seed {seed}"
        assert ended - began <= hurt.span.max_s + 1e-3, f"seed {seed}"
        assert hurt.earliest is None or hurt.earliest <= began + 1e-3, f"seed {seed}"
        assert hurt.latest is None or ended <= hurt.latest + 1e-3, f"seed {seed}"
    assert found > ROUNDS * 0.7, f"{missed} were too short to be called an outage"
