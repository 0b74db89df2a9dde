from __future__ import annotations

import re

import pytest
from tests.fakes import reports

from edgekeeper.report.document import Series
from edgekeeper.report.pages import multiples
from edgekeeper.report.pages.when import times

SAID = times(0, 86399)


def series(*counts: tuple[int | None, int], name: str = "lan") -> Series:
    return Series(name, tuple((60.0 * i, n, bad) for i, (n, bad) in enumerate(counts)))


def boxes(text: str, kind: str) -> list[tuple[str, str]]:
    return re.findall(rf'<rect x="([0-9.]+%)" width="([0-9.]+%)" [^>]*class="none {kind}"', text)


def test_no_requests_is_not_the_same_as_no_failures() -> None:
    text = str(multiples.plot("k", series((4, 0), (0, 0), (0, 0), (4, 0), (None, 0)), SAID))
    assert boxes(text, "silent") == [("20%", "40%")]
    assert boxes(text, "unmeasured") == [("80%", "20%")]
    assert "no requests in 2 of 5 minutes; 1 of 5 minutes not measured" in text
    assert "Without requests: 00:01, 00:02." in text


def test_each_class_has_its_own_scale_and_failures_go_down() -> None:
    text = str(multiples.plot("k", series((1000, 0), (500, 1)), SAID))
    up, down = re.findall(r'<path d="([^"]*)" class="(?:requests|failed)"', text)
    assert up == "M0 54v-54h400v54zM500 54v-27h400v27z"
    assert down == "M500 0v26h400v-26z"
    assert re.findall(r'top:[0-9]+px">([0-9,]+)<', text) == ["1,000", "1"]


def test_one_failure_among_many_is_seen() -> None:
    text = str(multiples.plot("k", series((9000, 900), (9000, 1), (1, 0)), SAID))
    assert "M333.3 0v1.5h266.7v-1.5z" in text
    assert "M666.7 54v-1.5h266.6v1.5z" in text


def test_a_day_is_drawn_in_few_columns_and_a_silent_minute_does_not_vanish() -> None:
    minutes = [(9, 0)] * 1440
    minutes[700] = (0, 0)
    day = series(*minutes)
    columns = multiples.bins(day)
    assert len(columns) <= multiples.MOST_BINS
    assert sum(c.requests or 0 for c in columns) == 9 * 1439
    assert [c.silent for c in columns].count(True) == 1
    assert len(boxes(str(multiples.plot("k", day, SAID)), "silent")) == 1
    assert multiples.per(day) == "8 minutes"
    assert "a minute without requests among them" in str(multiples.legend([day]))


def test_all_of_a_figure_are_on_one_axis_and_a_hole_stays_a_hole() -> None:
    early, late = series((1, 0), (1, 0)), Series("late", ((180.0, 1, 0), (540.0, 1, 0)))
    axis = multiples.axis_of([early, late])
    assert (axis.begin, axis.end) == (0, 600)
    assert "M300 54v-54h80v54zM900 54v-54h80v54z" in str(multiples.plot("k", late, SAID, axis=axis))


def test_the_worst_minute_is_told() -> None:
    assert "The worst minute is 00:01 with 3 of 10 failed." in str(multiples.plot("k", series((10, 0), (10, 3)), SAID))


def test_the_table_has_every_class_and_every_minute() -> None:
    both = [series((4, 1), (None, 0)), Series("", ((60.0, 7, 0), (120.0, 1234, 0)))]
    assert multiples.columns_of(both) == ("minute", "lan: requests", "lan: failed", "unclassed: requests", "unclassed: failed")
    assert multiples.rows_of(both, SAID) == (
        ("00:00", "4", "1", "not measured", ""),
        ("00:01", "not measured", "", "7", "0"),
        ("00:02", "not measured", "", "1,234", "0"),
    )


@pytest.mark.parametrize("one", [Series("x", ()), series((None, 0)), series((0, 0))])
def test_nothing_to_draw_is_drawn(one: Series) -> None:
    assert 'role="img"' in str(multiples.plot("k", one, SAID))


def test_work_on_nodes_is_shaded_behind_the_columns() -> None:
    one = reports.classes()[0]
    text = str(multiples.plot("k", one, SAID, [(one.minutes[3][0], one.minutes[5][0])]))
    assert text.index('class="band"') < text.index('class="requests"')
