"""Windows of a week: over midnight, on some days, and what cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgekeeper.model.maintenance import DAYS, covering, window

HOUR = 3600


def test_a_window_begins_with_its_first_second_and_ends_before_its_last() -> None:
    sunday = window(["sun"], "02:00", "04:00")
    assert covering([sunday], 6, 2 * HOUR) is sunday
    assert covering([sunday], 6, 4 * HOUR - 0.001) is sunday
    assert covering([sunday], 6, 4 * HOUR) is None
    assert covering([sunday], 5, 3 * HOUR) is None
    assert sunday.text == "sun 02:00 to 04:00"


def test_a_window_over_midnight_belongs_to_the_day_of_its_begin() -> None:
    night = window(["sat", "sun"], "23:00", "01:30")
    inside = [(5, 23 * HOUR), (6, HOUR), (6, 23.5 * HOUR), (0, 1.4 * HOUR)]
    outside = [(5, HOUR), (5, 22 * HOUR), (0, 1.5 * HOUR), (0, 23.5 * HOUR)]
    assert all(covering([night], day, int(second)) is night for day, second in inside)
    assert all(covering([night], day, int(second)) is None for day, second in outside)


@given(st.integers(0, 6), st.integers(0, 86_399), st.sets(st.sampled_from(DAYS), min_size=1), st.integers(0, 1439), st.integers(0, 1439))
@example(0, 0, {"sun"}, 0, 0)
@settings(max_examples=15)
def test_every_moment_is_inside_as_counting_minutes_says(day: int, second: int, days: set[str], begin: int, end: int) -> None:
    one = window(days, f"{begin // 60:02d}:{begin % 60:02d}", f"{end // 60:02d}:{end % 60:02d}")
    length = (end - begin - 1) % 1440 + 1  # from a time to itself is a whole day
    since = [(((day - DAYS.index(name)) * 1440 + second // 60 - begin) % (7 * 1440)) for name in days]
    assert (covering([one], day, second) is not None) == any(minutes < length for minutes in since)


@pytest.mark.parametrize(
    ("days", "begin"),
    [(["someday"], "02:00"), (["sun"], "2:00"), (["sun"], "24:00"), (["sun"], "02:60"), (["sun"], "\u0660\u0662:\u0660\u0660"), (["sun"], "")],
)
def test_what_cannot_be_read_says_how_to_write_it(days: list[str], begin: str) -> None:
    with pytest.raises(ValueError, match="write"):
        window(days, begin, "04:00")
