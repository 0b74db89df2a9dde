"""--fail-if: read strictly, true when what may have been is bad enough."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.errors import UsageError
from edgekeeper.measure.failif import REPORT, holds, parse, true_of
from edgekeeper.measure.outages import Outage, Summary

BAD = Summary(
    asked=500,
    unanswered=3,
    slow=2,
    lenient=(Outage(1.0, 2.5, 0, 0, 2), Outage(1.5, 2.0, 9, 9, 1)),
    strict=(),
    blind_s=1.0,
)
GOOD = Summary(500, 0, 0, (), (), 0.5)
ENDLESS = Summary(3, 3, 0, (Outage(1.0, math.inf, 0, 0, 3),), (), math.inf)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("outage > 2s", True),
        ("outage > 2500ms", False),
        ("outage.max >= 2.5s", True),
        ("outage.min > 1.4s", True),
        ("outage.min > 1.5s", False),
        ("outages == 2", True),
        ("outages<2", False),
        ("unanswered > 0", True),
        ("unanswered <= 3", True),
        ("loss > 0.5%", True),
        ("loss > 0.6%", False),
        ("slow >= 2", True),
        ("asked < 500", False),
    ],
)
def test_conditions(text: str, holds: bool) -> None:
    assert true_of(parse(text), BAD) is holds


def test_nothing_lost_fails_nothing() -> None:
    assert not any(true_of(parse(text), GOOD) for text in ("outage > 0s", "outage.min > 0", "unanswered > 0", "loss > 0%", "outages > 0"))


def test_an_outage_without_an_end_is_longer_than_anything() -> None:
    assert true_of(parse("outage > 9h"), ENDLESS)


def test_nothing_asked_is_all_lost() -> None:
    assert true_of(parse("loss > 50%"), Summary(0, 0, 0, (), (), math.inf))


@pytest.mark.parametrize(
    "text", ["", "outage", "outage > 2", "loss > 1", "loss > x%", "outages > 1.5", "outages > ٣", "latency > 2s", "outage => 2s", "outage > 2s x"]
)
def test_wrong_ones_say_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert "write" in str(caught.value) or "%" in str(caught.value) or "float" in str(caught.value)


@given(st.text(max_size=30))
def test_no_text_does_anything_else_than_parse_or_be_refused(text: str) -> None:
    refusal = ""
    try:
        parse(text)
    except UsageError as err:
        refusal = str(err)
    assert refusal.isprintable()


def test_a_report_can_be_asked_for_other_figures_than_a_probe() -> None:
    assert holds(parse("bad > 0.1%", REPORT), {"bad": 0.0546})
    assert not holds(parse("budget > 10%", REPORT), {"budget": 0.08})
    assert holds(parse("outage.max > 5s", REPORT), {"outage.max": math.inf})
    with pytest.raises(UsageError, match=r"bad > 0\.4%"):
        parse("unanswered > 0", REPORT)


def test_a_figure_that_was_not_measured_does_not_pass() -> None:
    assert holds(parse("budget > 10%", REPORT), {})
