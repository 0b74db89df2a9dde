from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.model.time import Span, format_duration, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("250ms", 0.25), ("1.5h", 5400), ("1h30m", 5400), ("1m30s", 90), ("2d", 172_800), ("0", 0), ("0s", 0), ("1m250ms", 60.25)],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "90", "s", "90 s", "-1s", "1s ", "1.s", "1e3s", "one second", "1w", "5S", "9" * 400 + "s"])
def test_anything_else_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="write it with a unit"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_a_written_duration_reads_back_to_the_millisecond(milli: int) -> None:
    written = format_duration(milli / 1000)
    assert round(parse_duration(written) * 1000) == milli


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.25, "250ms"), (90, "1m30s"), (3600, "1h"), (5400, "1h30m"), (1.5, "1.5s"), (1234.567, "1234.567s")]
)
def test_the_shortest_way_is_written(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(("text", "size"), [("512", 512), ("64KiB", 65_536), ("1MiB", 1_048_576), ("2GiB", 2**31), ("1.5kB", 1500), ("1 MB", 10**6)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 parsec", "1mib", "1e3", "9" * 400])
def test_a_size_that_cannot_be_read_says_how_to_write_it(text: str) -> None:
    with pytest.raises(ValueError, match="write it as"):
        parse_size(text)


def test_a_span_shows_both_bounds_or_the_one_that_is_known() -> None:
    assert Span(0.8, 1.3).text() == "0.80 s to 1.30 s"
    assert Span(0, 1.3).text() == "less than 1.30 s"
    assert Span(0, 0).text() == "0 s"
    assert Span(0, 0.0036).text() == "less than 4 ms"
    assert Span(2, math.inf).text() == "at least 2.00 s"


def test_a_brief_span_is_rounded_outwards() -> None:
    assert Span(210.2, 210.9).brief() == "3 min 30 s to 3 min 31 s"
    assert Span(0.4, 3.1).brief() == "less than 4 s"
    assert Span(3.0, 3.0004).brief() == "3 s"
    assert Span(3700, math.inf).brief() == "at least 1 h 1 min 40 s"
    assert Span(0, 0).brief() == "0 s"
