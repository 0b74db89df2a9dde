from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import reports

from edgekeeper.report.document import Bar, Point, Row, Timeline
from edgekeeper.report.pages import timeline
from edgekeeper.report.pages.svg import CHAR_PX
from edgekeeper.report.pages.when import times

SAID = times(0, 86399)


def drawn(*bars: Bar, points: tuple[Point, ...] = (), end: float = 86400) -> str:
    return str(timeline.plot("k", "T", Timeline(0, end, (Row("routes", "gitea", bars, points),)), SAID))


def classes(text: str) -> list[str]:
    return [c for c in re.findall(r'<rect [^>]*class="([^"]*)"', text) if c.startswith("b ")]


def test_the_certain_part_is_solid_within_what_is_possible() -> None:
    text = drawn(Bar(0, 43200, "x", "bad", 8640, 17280))
    assert classes(text) == ["b bad maybe", "b bad"]
    assert 'x="0%" width="50%"' in text
    assert 'x="10%" width="10%"' in text
    assert "certainly 02:24:00 to 04:48:00" in text


@pytest.mark.parametrize(
    ("bar", "expected"),
    [
        (Bar(0, 9e3, "x", "bad"), ["b bad maybe"]),
        (Bar(0, 9e3, "x", "bad", 0, 9e3), ["b bad"]),
        (Bar(0, 9e3, "x", "warn", 5e3, 4e3), ["b warn maybe"]),
        (Bar(0, 9e3, "x", "work"), ["b work"]),
        (Bar(0, 9e3, "x", "no such tone"), ["b bad maybe"]),
    ],
)
def test_work_is_certain_and_an_outage_is_not_unless_it_says_so(bar: Bar, expected: list[str]) -> None:
    assert classes(drawn(bar)) == expected


def test_five_seconds_of_a_day_are_seen() -> None:
    text = drawn(Bar(43200, 43205, "5 s", "bad", 43200, 43205), Bar(50000, 50000, "at once", "bad"))
    assert classes(text) == ["b bad tiny", "b bad maybe tiny"]
    assert 'width="0.01%"' in text  # a rect of no width is not drawn at all


def test_a_bar_that_leaves_the_window_has_an_open_end() -> None:
    text = drawn(Bar(-math.inf, 100, "x"), Bar(80000, math.inf, "y"), Bar(-50, -10, "outside"))
    assert text.count("#s-before") == 1
    assert text.count("#s-after") == 1
    assert "outside" not in text


def test_bars_that_overlap_lie_under_each_other() -> None:
    bars = [Bar(0, 100, "a"), Bar(50, 150, "b"), Bar(100, 200, "c"), Bar(60, 70, "d"), Bar(61, 70, "e"), Bar(62, 70, "f")]
    assert [lane for _, lane in timeline._lanes(bars)] == [0, 1, 2, 3, 3, 0]


def test_drains_are_shaded_behind_everything() -> None:
    shown = Timeline(0, 100, (Row("nodes", "n1", (Bar(10, 20, "drain", "work"),)), Row("routes", "r", (Bar(12, 13, "x"),))))
    text = str(timeline.plot("k", "T", shown, SAID))
    assert text.index('class="band"') < text.index('class="b work"') < text.index('class="b bad maybe')
    assert timeline.work_spans(shown) == ((10, 20),)


def test_groups_are_in_the_order_of_appearance_and_names_keep_their_ends() -> None:
    rows = (Row("b", "x"), Row("a", "y"), Row("b", "https://long.example/a/very/long/path/health"))
    text = str(timeline.plot("k", "T", Timeline(0, 100, rows), SAID))
    assert re.findall(r'class="g">([^<]*)', text) == ["b", "a"]
    assert re.findall(r'class="n"[^>]*>([^<]*)', text) == ["x", "long.exam…ng/path/health", "y"]


def test_a_long_name_keeps_what_tells_it_apart() -> None:
    names = ["https://status.home.example/", "https://docs.home.example/", "a" * 30, "short", "dns://"]
    assert [timeline.fitted(n, 21) for n in names] == ["status.home.example/", "docs.home.example/", "a" * 8 + "…" + "a" * 12, "short", "dns://"]


span = st.tuples(st.floats(0, 1), st.floats(0, 0.1), st.sampled_from(["1 s", "40 s to 80 s", "less than 4 s, drain of n2; and more", ""]))


@settings(max_examples=20)
@given(st.lists(span, max_size=8), st.sampled_from([timeline.NARROW_PX, timeline.WIDE_PX]))
def test_words_never_lie_on_each_other_or_on_a_bar(spans: list[tuple[float, float, str]], width: int) -> None:
    placed = [(0, begin, min(1.0, begin + long), label) for begin, long, label in spans]
    found = [str(m) for m in timeline._labels(placed, 0)]
    taken = [(b * width, e * width) for _, b, e, _ in placed]
    for text in found:
        narrow = 'class="l"' in text
        if width == timeline.NARROW_PX and not narrow:
            continue  # hidden there
        x = float(re.search(r' x="([0-9.]+)%"', text)[1]) / 100 * width
        words = CHAR_PX * len(re.search(r">([^<]*)<", text)[1])
        box = (x + 9, x + 9 + words) if 'text-anchor="start"' in text else (x - 9 - words, x - 9)
        assert box[0] >= -1
        assert box[1] <= width + 9
        assert not any(b < box[1] - 1 and box[0] + 1 < e for b, e in taken if e - b > 0 or box[0] + 1 < b < box[1] - 1)
        taken.append(box)


def words(text: str) -> list[str]:
    return re.findall(r'<text y="[0-9.]+" class="l[^>]*>([^<]*)<', text)


def test_one_place_has_one_word_and_a_sign_on_a_bar_none() -> None:
    both = drawn(Bar(100, 4000, "first", sure_begin=1, sure_end=0), points=(Point(4000, "at its end"),))
    assert words(both) == ["first"]
    assert words(drawn(Bar(100, 9000, "work", "work"), points=(Point(5000, "on it"),))) == ["work"]
    assert words(drawn(Bar(0, 86400, "everywhere"))) == []


def test_the_table_says_all_that_the_picture_shows() -> None:
    shown = reports.timeline(reports.hurts())
    said = times(reports.BEGIN, reports.END)
    rows = timeline.rows_of(shown, said)
    assert len(rows) == sum(len(r.bars) + len(r.points) for r in shown.rows)
    assert ("BGP", "gw-1: 192.0.2.10", "down 47.0 s", "impaired", "04:54:25", "04:55:14", "04:54:25", "04:55:14") in rows
    assert ("edge", "https://edge-2.example/", "less than 4 s", "outage", "05:06:20", "05:06:24", "", "") in rows
    assert ("watchdogs", "proxy on edge-2", "held back", "hold", "05:01:12", "", "", "") in rows
    desc = timeline.describe(shown, said)
    assert desc.startswith("From 04:48:00 to 05:12:00 UTC. nodes: 3 rows, 3 bars and 6 signs. routes: 12 rows, 24 bars.")


def test_the_legend_has_only_what_is_there() -> None:
    words = re.findall(r"</svg>([^<]+)</li>", str(timeline.legend(Timeline(0, 1, (Row("r", "x", (Bar(0, 1, "l", "warn", 0, 1),), (Point(0, "p", "act"),)),)))))
    assert words == ["impaired", "acted"]
