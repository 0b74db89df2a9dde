from __future__ import annotations

import json

import pytest

from edgekeeper.watch.sources.entries import Line
from edgekeeper.watch.sources.progress import REMEMBERED, Progress

NOON = 1796040000.0
"""2026-11-30T12:00:00Z"""


def at(seconds: float, text: str = "") -> Line:
    """A line so many seconds after noon, that says so itself."""
    whole, nanos = divmod(round(seconds * 10**9), 10**9)
    hour, rest = divmod(12 * 3600 + whole, 3600)
    return b"2026-11-30T%02d:%02d:%02d.%09dZ" % (hour, rest // 60, rest % 60, nanos), (text or f"{seconds:g}").encode() + b"\n"


def lines(*seconds: float) -> list[Line]:
    return [at(s) for s in seconds]


def said(raw: bytes) -> list[float]:
    return [float(text) for text in raw.split()]


def begun(*seconds: float) -> Progress:
    """One that has given these lines out over its first stream."""
    progress = Progress(NOON)
    progress.attach(1000, sure=True)
    assert said(progress.take(lines(*seconds), NOON + 60)) == list(seconds)
    return progress


def test_of_the_first_stream_only_what_comes_from_now_on_counts() -> None:
    progress = Progress(NOON)
    progress.attach(1000, sure=True)
    assert said(progress.take(lines(-9, -1, 0.5, 1), NOON + 1)) == [0.5, 1]


def test_the_next_stream_gives_what_comes_after_the_known_lines() -> None:
    progress = begun(1, 2, 3)
    progress.attach(1000)
    assert said(progress.take(lines(-5, 1, 2, 3, 4), NOON + 5)) == [4]
    assert said(progress.take(lines(5), NOON + 5)) == [5]
    assert not progress.gap


def test_the_start_of_a_file_that_is_read_again_is_not_given_again() -> None:
    progress = begun(1, 2, 3)
    assert progress.take(lines(2, 3), NOON + 4) == b""
    assert said(progress.take(lines(2, 3, 4), NOON + 4)) == [4]


def test_a_file_that_is_read_again_from_further_back_than_is_remembered() -> None:
    many = [n / 1000 for n in range(1, 3 * REMEMBERED)]
    progress = begun(*many)
    assert progress.take(lines(*many), NOON + 20) == b""
    assert said(progress.take(lines(20), NOON + 20)) == [20]


def test_lines_of_two_outputs_that_are_out_of_order_are_both_given() -> None:
    progress = begun(1, 2)
    assert said(progress.take([at(3), at(2.999999, "2.5"), at(4)], NOON + 4)) == [3, 2.5, 4]
    progress.attach(1000)
    assert progress.take([at(2), at(3), at(2.999999, "2.5"), at(4)], NOON + 4) == b""


def test_two_lines_at_the_same_moment_are_told_apart_by_their_text() -> None:
    progress = begun(1)
    assert progress.take([at(2, "a"), at(2, "b"), at(2, "a")], NOON + 2) == b"a\nb\n"


def test_a_clock_that_was_set_back_hides_nothing() -> None:
    progress = begun(3000, 3001)
    assert said(progress.take(lines(5, 6), NOON + 6)) == [5, 6]
    progress.attach(1000)
    assert said(progress.take(lines(3000, 3001, 5, 6, 7), NOON + 7)) == [7]
    first = Progress(NOON)
    first.attach(1000, sure=True)
    assert said(first.take(lines(-600), NOON - 600)) == [-600]


def test_a_clock_that_was_set_back_between_two_streams() -> None:
    progress = begun(3000, 3001)
    progress.attach(1000)
    assert said(progress.take(lines(2999, 3000, 3001, 5, 6), NOON + 6)) == [5, 6]
    assert said(progress.take(lines(7), NOON + 7)) == [7]


def test_when_all_that_was_asked_for_is_new_there_may_be_more() -> None:
    progress = begun(1)
    progress.attach(3)
    assert progress.take(lines(5, 6, 7), NOON + 7) == b""
    assert progress.gap
    progress.attach(100)
    assert said(progress.take(lines(1, 3, 4, 5, 6, 7), NOON + 7)) == [3, 4, 5, 6, 7]
    assert not progress.gap


def test_new_lines_wait_until_it_is_clear_that_none_is_missing_before_them() -> None:
    progress = begun(1)
    progress.attach(100)
    assert progress.take(lines(5, 6), NOON + 7) == b""
    assert progress.holds
    assert not progress.gap
    assert said(progress.settle()) == [5, 6]
    assert said(progress.take(lines(5, 6, 7), NOON + 7)) == [7]


def test_all_of_the_log_is_never_held() -> None:
    progress = begun(1)
    progress.attach(None)
    assert said(progress.take(lines(5, 6), NOON + 7)) == [5, 6]


def test_lines_that_were_rotated_past_a_stream_are_found_by_the_next_one() -> None:
    progress = begun(1, 2)
    reach = progress.high
    assert said(progress.take(lines(8, 9), NOON + 9)) == [8, 9]
    progress.attach(2, reach=reach)
    assert progress.take(lines(8, 9), NOON + 9) == b""
    assert progress.gap, "known lines alone do not show that none is missing before them"
    progress.attach(100, reach=reach)
    assert said(progress.take(lines(1, 2, 5, 6, 8, 9, 10), NOON + 10)) == [5, 6, 10]


def test_the_last_lines_of_the_log_show_whether_a_stream_is_dead() -> None:
    progress = begun(1, 2)
    assert not progress.unknown(lines(-3, 1, 2))
    assert progress.unknown(lines(2, 3))
    assert said(progress.take(lines(3), NOON + 3)) == [3], "looking is not taking"
    fresh = Progress(NOON)
    assert not fresh.unknown(lines(-3))
    assert fresh.unknown(lines(1))


def test_a_successor_goes_on_from_the_mark_and_the_mark_holds_no_text() -> None:
    progress = begun(1, 2)
    progress.take([at(3, "password")], NOON + 3)
    mark = json.dumps(progress.mark())
    assert "password" not in mark
    successor = Progress(NOON + 3)
    successor.recall(json.loads(mark))
    successor.attach(1000)
    assert said(successor.take([*lines(1, 2), at(3, "password"), *lines(4, 5)], NOON + 5)) == [4, 5]


def test_a_mark_that_cannot_be_read_is_as_none() -> None:
    stamp = "2026-11-30T12:00:01.000000000Z"
    for mark in (
        {},
        {"high": 3, "lines": []},
        {"high": "x", "lines": []},
        {"high": "", "lines": []},
        {"high": stamp, "lines": [1]},
        {"high": stamp, "lines": 1},
    ):
        progress = Progress(NOON)
        progress.recall(mark)
        progress.attach(1000, sure=True)
        assert said(progress.take(lines(5), NOON + 5)) == [5]


def test_stamps_of_another_zone_are_as_good() -> None:
    def local(second: int) -> Line:
        return b"2026-11-30T13:00:%02d.000000000+01:00" % second, b"%d\n" % second

    progress = Progress(NOON)
    progress.attach(1000, sure=True)
    assert progress.take([(b"2026-11-30T12:59:59.000000000+01:00", b"before\n"), local(1), local(2)], NOON + 2) == b"1\n2\n"
    progress.attach(1000)
    assert progress.take([local(1), local(2), local(3)], NOON + 3) == b"3\n"


def test_whole_seconds_are_enough() -> None:
    def coarse(second: int, text: str) -> Line:
        return b"2026-11-30T12:00:%02dZ" % second, text.encode() + b"\n"

    progress = Progress(NOON + 1.5)
    progress.attach(1000, sure=True)
    many = [coarse(1, str(n)) for n in range(3 * REMEMBERED)]
    assert progress.take([coarse(0, "before"), *many, coarse(1, "0"), coarse(1, "0")], NOON + 2).count(b"\n") == 3 * REMEMBERED + 2
    assert progress.take([coarse(2, "a"), coarse(2, "b")], NOON + 2) == b"a\nb\n"
    progress.attach(1000)
    assert progress.take([coarse(1, "9"), coarse(2, "a"), coarse(2, "b"), coarse(2, "c"), coarse(3, "d")], NOON + 3) == b"c\nd\n"
    successor = Progress(NOON + 3)
    successor.recall(json.loads(json.dumps(progress.mark())))
    successor.attach(1000)
    assert successor.take([coarse(2, "c"), coarse(3, "d"), coarse(3, "e")], NOON + 3) == b"e\n"


def test_a_line_without_a_stamp_is_given() -> None:
    progress = begun(1)
    assert progress.take([(b"", b"x\n"), (b"strange", b"y\n")], NOON + 1) == b"x\ny\n"


def test_a_clock_that_was_set_back_hides_nothing_however_many_lines_came_before() -> None:
    progress = begun(*(round(100 + n / 1000, 3) for n in range(3 * REMEMBERED)))
    assert said(progress.take(lines(5, 6), NOON + 6)) == [5, 6]


def test_what_a_lagging_stream_gave_is_known_however_much_it_was() -> None:
    progress = begun(1)
    reach, progress.lagging = progress.high, True
    many = [2 + n / 1000 for n in range(3 * REMEMBERED)]
    progress.take(lines(*many), NOON + 60)
    progress.attach(100_000, reach=reach)
    assert progress.take(lines(1, *many), NOON + 60) == b""


def test_what_is_held_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgekeeper.watch.sources.progress._HELD_BYTES", 3)
    progress = begun(1)
    progress.attach(100)
    assert said(progress.take(lines(5, 6, 7, 8), NOON + 9)) == [7, 8]
    assert said(progress.settle()) == [5, 6]
