import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgekeeper.report.ingest import lines as module
from edgekeeper.report.ingest.lines import Blocks


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "LINE_MOST", 40)
    monkeypatch.setattr(module, "BLOCK", 16)


def filler(data, step=7):
    """Gives the data in pieces of uneven size, as a pipe does."""
    state = {"at": 0, "n": 0}

    def fill(view):
        state["n"] += 1
        count = min(len(view), 1 + (state["n"] * 5) % step, len(data) - state["at"])
        view[:count] = data[state["at"] : state["at"] + count]
        state["at"] += count
        return count

    return fill


def read(data, begin=0, end=None):
    blocks = Blocks(filler(data[max(0, begin - 1) :]), begin, end)
    return b"".join(bytes(block) for block in blocks), blocks.too_long


LINES = st.lists(st.sampled_from([b"", b"a", b"bb", b"\x00\xff", b"x" * 15, b"y" * 16, b"w" * 39, b"z" * 41, b"q" * 200]), max_size=12)


def short(lines):
    return [line for line in lines if len(line) <= 40]


@settings(max_examples=60)
@given(LINES, st.booleans())
def test_all_lines_but_the_long_ones(lines, ended):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    found, too_long = read(data)
    given = data.split(b"\n")
    assert [line for line in found.split(b"\n") if line] == [line for line in short(given) if line]
    assert too_long == len(given) - len(short(given))


@settings(max_examples=60)
@example(lines=[b"", b"z" * 41], ended=False, cuts=[2])
@given(LINES, st.booleans(), st.lists(st.integers(0, 500), max_size=4))
def test_parts_of_a_file_have_each_line_once(lines, ended, cuts):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    edges = [0, *sorted({c for c in cuts if 0 < c < len(data)})]
    parts = [read(data, a, b) for a, b in zip(edges, [*edges[1:], None], strict=True)]
    whole = read(data)
    assert b"".join(found for found, _ in parts) == whole[0]
    assert sum(too_long for _, too_long in parts) == whole[1]


def test_memory_stays_flat_on_a_line_without_end():
    sizes = []

    def fill(view):
        sizes.append(len(view.obj))
        view[:] = b"x" * len(view)
        return len(view) if len(sizes) < 1000 else 0

    assert [bytes(b) for b in Blocks(fill)] == []
    assert set(sizes) == {56}
