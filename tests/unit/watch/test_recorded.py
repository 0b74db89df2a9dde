from __future__ import annotations

import gzip
import lzma
import os

import pytest

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.watch.fingerprint import Fingerprint, Matcher
from edgekeeper.watch.recorded import Recorded
from edgekeeper.watch.stamp import iso

SIGN = Matcher([Fingerprint(text="<wedged>")], [" path="])
WELL = Matcher([Fingerprint(regex="^ready$")])


def docker(second: int, text: str, end: str = "\\n") -> str:
    return f'{{"log":"{text}{end}","stream":"stderr","time":"2026-09-07T06:58:{second:02d}.000000000Z"}}\n'


def at(second: int) -> float:
    found = iso(f"2026-09-07T06:58:{second:02d}Z".encode())
    assert found is not None
    return found


LOG = docker(1, "starts") + docker(2, "a \\u003cwedged\\u003e \\u003d") + docker(3, "x path=\\u003cwedged\\u003e") + docker(4, "ready") + docker(5, "ends")


def read(tmp_path, content: str | bytes):
    path = tmp_path / "log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    recorded = Recorded(str(path), SIGN, WELL)
    return recorded, list(recorded.moments())


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_signs_and_recoveries_with_their_times_and_lines(tmp_path, pack):
    recorded, moments = read(tmp_path, pack(LOG.encode()))
    assert [(moment.at, moment.recovered, moment.line) for moment in moments] == [(at(2), False, 2), (at(4), True, 4)]
    assert (moments[0].match.line, moments[0].match.rest) == ("a <wedged> =", "<wedged> =")
    assert (recorded.envelope, recorded.lines, recorded.first, recorded.last, recorded.damage) == ("docker json-file", 5, at(1), at(5), "")


def test_a_line_in_parts_is_one_line_and_what_a_client_put_into_its_second_part_is_not_searched(tmp_path):
    _, moments = read(tmp_path, docker(1, "GET path=/aaa", "") + docker(1, "\\u003cwedged\\u003e") + docker(2, "\\u003cwed", "") + docker(3, "ged\\u003e"))
    assert [(moment.at, moment.line) for moment in moments] == [(at(3), 4)]


def test_a_line_in_parts_stays_one_however_much_another_stream_says_in_between(tmp_path):
    other = docker(1, "x" * 1000).replace("stderr", "stdout") * 2200  # more than two blocks
    assert [moment.line for moment in read(tmp_path, docker(1, "\\u003cwed", "") + other + docker(2, "ged\\u003e"))[1]] == [2202]


def test_a_packed_log_that_is_cut_gives_what_was_before_and_says_so(tmp_path):
    recorded, moments = read(tmp_path, gzip.compress((LOG * 300).encode())[:-20])
    assert moments
    assert "cannot be read to its end" in recorded.damage


def test_a_hit_without_a_stamp_has_that_of_the_line_before_it(tmp_path):
    recorded, moments = read(tmp_path, "Traceback <wedged>\n2026-09-07T06:58:01Z ERROR x\n  at <wedged>\n")
    assert [moment.at for moment in moments] == [at(1)]
    assert recorded.undated == 1


def test_hits_out_of_order_are_counted_and_kept_as_they_come(tmp_path):
    recorded, moments = read(
        tmp_path, docker(5, "\\u003cwedged\\u003e") + docker(5, "\\u003cwedged\\u003e") + docker(3, "\\u003cwedged\\u003e") + docker(6, "\\u003cwedged\\u003e")
    )
    assert [moment.at for moment in moments] == [at(5), at(5), at(3), at(6)]
    assert recorded.disordered == 1


def test_a_log_larger_than_a_block_loses_no_line(tmp_path):
    content = "".join(docker(i % 60, f"filler {'x' * 200} {i}") + (docker(i % 60, "\\u003cwedged\\u003e") if i % 1000 == 7 else "") for i in range(12000))
    told: list[int] = []
    path = tmp_path / "log"
    path.write_text(content)
    recorded = Recorded(str(path), SIGN)
    assert [moment.line for moment in recorded.moments(told.append)] == [9 + 1001 * i for i in range(12)]
    assert recorded.lines == 12012
    assert len(told) > 2


def test_a_line_without_an_end_is_a_line_and_an_empty_log_has_none(tmp_path):
    assert [moment.line for moment in read(tmp_path, "2026-09-07T06:58:01Z a\n2026-09-07T06:58:01Z <wedged>")[1]] == [2]
    recorded, moments = read(tmp_path, "")
    assert (moments, recorded.first, recorded.last, recorded.lines) == ([], None, None, 0)


def test_what_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(MissingError, match="No such file"):
        Recorded(str(tmp_path / "none"), SIGN)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is not a file"):
        Recorded(str(tmp_path / "fifo"), SIGN)
