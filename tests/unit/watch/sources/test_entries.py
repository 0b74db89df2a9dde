from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.sources.entries import Entries
from edgekeeper.watch.sources.lines import LONGEST

ONE = b"2026-11-30T10:08:09.757158858Z"
TWO = b"2026-11-30T10:08:09.801703717Z"


def frame(stamp: bytes, text: bytes, output: int = 1) -> bytes:
    entry = stamp + b" " + text
    return bytes([output, 0, 0, 0]) + len(entry).to_bytes(4, "big") + entry


def test_a_frame_is_a_line_with_its_stamp() -> None:
    assert Entries().feed(frame(ONE, b"a b\n") + frame(TWO, b"\n", 2)) == [(ONE, b"a b\n"), (TWO, b"\n")]


def test_the_pieces_of_a_long_line_are_one_line_also_when_the_other_output_writes_between() -> None:
    entries = Entries()
    assert entries.feed(frame(ONE, b"x" * 16384) + frame(TWO, b"error\n", 2)) == [(TWO, b"error\n")]
    assert entries.feed(frame(ONE, b"yz\n")) == [(ONE, b"x" * 16384 + b"yz\n")]


def test_what_a_process_left_without_an_end_is_a_line_and_what_the_next_one_writes_is_another() -> None:
    entries = Entries()
    assert entries.feed(frame(ONE, b"cut o")) == []
    assert entries.feed(frame(TWO, b"start\n")) == [(ONE, b"cut o\n"), (TWO, b"start\n")]
    assert entries.feed(frame(TWO, b"last")) == []
    assert entries.end() == [(TWO, b"last\n")]
    assert entries.end() == []


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_without_end_does_not_fill_the_memory(terminal: bool) -> None:
    entries, out = Entries(terminal=terminal), []
    for _ in range(200):
        out += entries.feed((ONE + b" " + b"x" * 16384) if terminal else frame(ONE, b"x" * 16384))
    out += entries.feed(b"rest\n" + TWO + b" next\n" if terminal else frame(ONE, b"rest\n") + frame(TWO, b"next\n"))
    assert [len(text) for _, text in out] == [LONGEST, 5]
    assert out[-1] == (TWO, b"next\n"), "the rest of the long line is no line of its own"


def test_a_terminal_has_no_frames_and_its_pieces_carry_stamps() -> None:
    entries = Entries(terminal=True)
    long = ONE + b" " + b"x" * 16384 + ONE + b" " + b"y" * 16384 + ONE + b" z\r\n"
    assert entries.feed(TWO + b" one\r\n" + long) == [(TWO, b"one\n"), (ONE, b"x" * 16384 + b"y" * 16384 + b"z\n")]
    assert entries.feed(TWO + b" cut o") == []
    assert entries.end() == [(TWO, b"cut o\n")]
    three = TWO.replace(b"09.8", b"19.8")
    again = Entries(terminal=True, left=entries.left)
    assert again.feed(TWO + b" one\r\n" + TWO + b" cut o" + three + b" start\r\n") == [(TWO, b"one\n"), (TWO, b"cut o\n"), (three, b"start\n")]


def test_a_line_that_goes_on_after_what_was_left_of_it_is_one() -> None:
    left = TWO + b" " + b"x" * 16384
    assert Entries(terminal=True, left=(left,)).feed(left + TWO + b" rest\r\n") == [(TWO, b"x" * 16384 + b"rest\n")]


def test_a_stamp_that_a_client_wrote_begins_no_line() -> None:
    text = b"GET /" + TWO + b" couldn't\n"
    assert Entries(terminal=True).feed(ONE + b" " + text) == [(ONE, text)]
    assert Entries().feed(frame(ONE, text)) == [(ONE, text)]


@pytest.mark.parametrize("strange", [b"HTTP/1.1 500 no", b"\x01\x00\x01\x00\x00\x00\x00\x01x", b"\x01\x00\x00\x00\xff\xff\xff\xff"])
def test_what_docker_does_not_send_is_refused(strange: bytes) -> None:
    with pytest.raises(ValueError, match="not Docker's log"):
        Entries().feed(strange)


def test_what_docker_complains_of_is_told() -> None:
    with pytest.raises(ValueError, match="broke off the log: error grabbing logs"):
        Entries().feed(b"\x03\x00\x00\x00\x00\x00\x00\x15error grabbing logs: x")


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"."))), max_size=12), st.data())
@settings(max_examples=25)
def test_however_the_stream_is_cut_the_lines_are_the_same(lines: list[tuple[int, bytes]], data: st.DataObject) -> None:
    whole = b"".join(frame(ONE, text + b"\n", output) for output, text in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    entries, out = Entries(), []
    for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        out += entries.feed(whole[begin:end])
    assert out == [(ONE, text + b"\n") for _, text in lines]
