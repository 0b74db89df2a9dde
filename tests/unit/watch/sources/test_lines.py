from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.sources.lines import Cutter


def fed(cutter: Cutter, raw: bytes, size: int) -> bytes:
    return b"".join(cutter.feed(raw[at : at + size]) for at in range(0, len(raw), size))


TEXT = st.text("ab\0 ", max_size=6).map(str.encode)


@settings(max_examples=25)
@given(st.lists(TEXT, max_size=8), TEXT, st.integers(1, 12))
def test_whole_lines_come_out_whatever_the_cuts(lines: list[bytes], rest: bytes, size: int) -> None:
    cutter = Cutter()
    wanted = b"".join(line.lstrip(b"\0") + b"\n" for line in lines)
    assert fed(cutter, b"".join(line + b"\n" for line in lines) + rest, size) == wanted
    rest = rest.lstrip(b"\0")
    assert cutter.pending == len(rest)
    assert cutter.end() == (rest + b"\n" if rest else b"")
    assert cutter.end() == b""


@settings(max_examples=25)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(1, 70))
def test_a_line_too_long_is_given_out_once_and_cut_whatever_the_cuts(sizes: list[int], size: int) -> None:
    cutter = Cutter(10)
    raw = b"".join(b"x" * length + b"\n" for length in sizes)
    assert fed(cutter, raw, size) == b"".join(b"x" * min(length, 9) + b"\n" for length in sizes)


def test_the_rest_of_a_line_too_long_is_never_a_line_of_its_own() -> None:
    cutter = Cutter(10)
    assert cutter.feed(b"a" * 50) == b"a" * 9 + b"\n"
    assert cutter.feed(b"couldn't fetch peer state") == b""
    assert cutter.pending == 0
    assert cutter.feed(b" again\nnext\n") == b"next\n"


def test_reading_that_begins_inside_a_line_begins_with_the_next_one() -> None:
    cutter = Cutter(skip=True)
    assert cutter.feed(b"the end of") == b""
    assert cutter.feed(b" a line\nwhole\npart") == b"whole\n"
    assert cutter.end() == b"part\n"


def test_a_hole_of_any_length_is_kept_nowhere() -> None:
    cutter = Cutter()
    for _ in range(20):
        assert cutter.feed(bytes(65536)) == b""
    assert cutter.pending == 0
    assert cutter.feed(b"line\n") == b"line\n"
