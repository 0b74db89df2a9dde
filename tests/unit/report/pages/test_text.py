from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import reports

from edgekeeper.report.document import Bar, Point, Row, Table, Timeline
from edgekeeper.report.pages import text


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_lines_fit(width: int) -> None:
    lines = text.render(reports.demo(), width=width).splitlines()
    assert max(map(len, lines)) <= width


def test_the_verdict_comes_first_and_the_window_says_its_zone() -> None:
    lines = text.render(reports.demo(), width=200).splitlines()
    assert lines[0] == reports.demo().verdict
    assert lines[2] == "Roll of 2026-09-07, 2026-09-07 04:48:00 to 05:12:00 UTC"
    assert "No judgement is made: see the first line." in text.render(replace(reports.demo(), can_judge=False))


def test_nothing_that_was_read_reaches_the_terminal_unescaped() -> None:
    assert all(line.isprintable() for line in text.render(reports.hostile()).split("\n"))


@pytest.mark.parametrize(
    ("counts", "silent", "line"),
    [
        ((0, 1, 50, 100), False, " ▁▄█"),
        ((0, None, 8), True, "○?█"),
        ((float("nan"), 0.0, 0.25), False, "? █"),
        ((), True, ""),
        ((0, 0), True, "○○"),
    ],
)
def test_silence_is_not_success(counts: tuple[float | None, ...], silent: bool, line: str) -> None:
    assert text.spark(counts, silent=silent) == line


def test_bars_are_certain_or_possible_and_signs_stand_on_them() -> None:
    row = Row("r", "x", (Bar(0, 50, "a", "bad", 20, 30), Bar(60, 79, "d", "work")), (Point(90, "p", "down"), Point(95, "q", "odd")))
    assert text._drawn(row, Timeline(0, 100, (row,)), 20) == "░░░░███░░░░ ▓▓▓▓  ▼│"


def test_a_day_with_an_outage_of_a_second_shows_it() -> None:
    row = Row("r", "x", (Bar(43200, 43201, "a", "bad", 43200, 43201),))
    assert text._drawn(row, Timeline(0, 86400, (row,)), 40).count("█") == 1


@settings(max_examples=40)
@given(st.lists(st.text(alphabet="ab c", max_size=30), min_size=1, max_size=5), st.integers(1, 40), st.integers(0, 12))
def test_wrapping_loses_nothing(words: list[str], width: int, indent: int) -> None:
    said = " ".join(words).strip()
    lines = text.wrap(said, width, indent)
    assert "".join(lines).replace(" ", "") == said.replace(" ", "")
    assert all(len(line) <= width for line in lines)


def test_wide_columns_give_way_first() -> None:
    lines = text.table(Table(("Name", "Why"), (("gitea", "a " * 40), ("n" * 20, "b"))), 50)
    assert max(map(len, lines)) <= 50
    assert any("n" * 20 in line for line in lines)


def test_a_long_table_is_cut_and_told() -> None:
    assert text.table(Table(("a",), (("1",),) * 70), 80)[-1] == "  ... and 10 more rows; -o json has all"


def test_a_long_title_leaves_room_for_lines() -> None:
    assert all(len(line) <= 60 for line in text.wrap("x" * 500, 60, indent=400))
