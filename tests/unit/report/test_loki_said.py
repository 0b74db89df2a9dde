"""What a Loki answers becomes cells whose bounds are never too narrow, and refusals become plain words."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.cells import Lane
from edgekeeper.report.kinds import NOT_THIS_FORMAT
from edgekeeper.report.loki_plan import ALL, BAD, GOOD, SLOWEST, STATUSES, Question, Slice
from edgekeeper.report.loki_said import Counts, book, count, entries, is_passing, is_too_much, matrix, page_limit, refusal
from edgekeeper.report.rules import Rules

HOUR = Slice(3600, 7200)


def answer(*series: tuple[dict[str, str], list[tuple[int, str]]]) -> str:
    result = [{"metric": labels, "values": [list(one) for one in values]} for labels, values in series]
    return json.dumps({"ek_status": "success", "data": {"resultType": "matrix", "result": result, "stats": {"summary": {}}}})


def taken(*several: tuple[str, int, str]) -> Counts:
    counts = Counts()
    for what, step, text in several:
        counts.take(Question(what, "lan", HOUR, "", step), text)
    return counts


def test_a_sample_counts_what_ended_in_the_second_before_it() -> None:
    counts = taken((GOOD, 1, answer(({"ek_router": "git"}, [(3661, "3"), (3663, "1")]))))
    made = book(counts, "loki", "http://192.0.2.1 {}", Rules())
    cells = made.cells.cells(Lane("loki", "git", "lan"))
    assert [(cell.second, cell.good) for cell in cells] == [(3660, 3), (3662, 1)]  # the second without lines is absent, not 0


def test_bounds_are_as_wide_as_the_slowest_request_and_the_second_allow() -> None:
    bad = answer(({"ek_router": "git", "ek_status": "502"}, [(3661, "2")]))
    slow = answer(({"ek_router": "git"}, [(3661, "3.004e9")]))
    cell = book(taken((BAD, 1, bad), (SLOWEST, 1, slow)), "loki", "http://192.0.2.1 {}", Rules()).cells.cells(Lane("loki", "git", "lan"))[0]
    assert cell.bad == 2
    assert cell.bad_first_start == cell.bad_last_start == pytest.approx(3660 - 3.004, abs=1e-5)
    assert cell.bad_first_end == cell.bad_last_end == 3661


def test_statuses_are_filed_by_what_they_mean() -> None:
    statuses = [("503", "4"), ("500", "2"), ("499", "1"), ("204", "9")]
    bad = answer(*(({"ek_router": "git", "ek_status": status}, [(3661, n)]) for status, n in statuses[:3]))
    good = answer(({"ek_router": "git"}, [(3661, "9")]))
    minutes = answer(({"ek_router": "git", "ek_status": "204"}, [(3720, "9")]))
    made = book(taken((BAD, 1, bad), (GOOD, 1, good), (STATUSES, 60, minutes)), "loki", "http://192.0.2.1 {}", Rules())
    lane = Lane("loki", "git", "lan")
    assert made.cells.total(lane) == (9, 4, 1, 2, 0)
    assert made.cells.statuses(lane) == {503: 4, 500: 2, 499: 1, 204: 9}


def test_lines_that_were_no_requests_are_counted_as_such() -> None:
    made = book(taken((GOOD, 1, answer(({"ek_router": "git"}, [(3661, "3")]))), (ALL, 60, answer(({}, [(3660, "5")])))), "loki", "http://192.0.2.1 {}", Rules())
    assert made.sources["loki"].lines == 5
    assert made.sources["loki"].skipped == {NOT_THIS_FORMAT: 2}


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", '{"data":1}', '{"data":{"result":[{"metric":{},"values":[[1]]}]}}', '{"data":{"result":[{"metric":{},"values":[[1,"x"]]}]}}']
)
def test_what_is_no_matrix_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        matrix(text)


@given(
    st.one_of(
        st.text(max_size=40),
        st.recursive(
            st.none() | st.integers() | st.text(max_size=3),
            lambda c: st.lists(c) | st.dictionaries(st.sampled_from(["data", "result", "values", "metric", "stream"]), c),
            max_leaves=8,
        ).map(json.dumps),
    )
)
@settings(max_examples=60)
def test_any_answer_is_read_or_a_value_error(text: str) -> None:
    for read in (matrix, entries, count):
        with contextlib.suppress(ValueError):
            read(text)


def test_entries_come_by_time_over_all_streams_and_keep_their_labels() -> None:
    streams = [
        {"stream": {"pod": "b"}, "values": [["20", "late"]]},
        {"stream": {"pod": "a"}, "values": [["10", "early"], ["20", "tie", {"structuredMetadata": {}}]]},
    ]
    found = entries(json.dumps({"ek_status": "success", "data": {"resultType": "streams", "result": streams}}))
    assert [(e.at_ns, e.line) for e in found] == [(10, "early"), (20, "late"), (20, "tie")]
    assert found[0].labels == (("pod", "a"),)


def test_a_count_of_nothing_is_an_empty_vector() -> None:
    assert count('{"status":"success","data":{"resultType":"vector","result":[]}}') == 0
    assert count('{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1.2e+06"]}]}}') == 1_200_000


@pytest.mark.parametrize(
    ("status", "text", "what", "help_"),
    [
        (400, "maximum number of series (500) reached for a single query; consider reducing", "series", "max_query_series"),
        (400, "parse error at line 1, col 9: syntax error: unexpected IDENTIFIER", "does not understand", "--query"),
        (401, "no org id", "refuses", "--loki-token-file"),
        (404, "<html>not found</html>", "no such interface", "--loki"),
        (429, "too many outstanding requests", "too much to do", "--window"),
        (400, "the query would read too many bytes (query: 2 TB, limit: 150 GB)", "too large", "--window"),
        (504, "context deadline exceeded", "too long", "--window"),
        (500, '{"status":"error","errorType":"x","error":"disk \\u001b[31mbroken"}', "answered 500: disk \\x1b[31mbroken", ""),
        (502, "<html><h1>Bad Gateway</h1></html>", "answered 502", ""),
    ],
)
def test_a_refusal_is_told_in_plain_words_with_what_helps(status: int, text: str, what: str, help_: str) -> None:
    said = refusal(status, text)
    assert what in said
    assert help_ in said
    assert said.isprintable()
    assert "<" not in said


def test_what_may_be_asked_again_and_how() -> None:
    assert is_too_much(400, "maximum number of series (500) reached for a single query")
    assert is_too_much(504, "")
    assert not is_too_much(400, "parse error at line 1")
    assert is_passing(429)
    assert is_passing(503)
    assert not is_passing(400)
    assert page_limit(400, "max entries limit per query exceeded, limit > max_entries_limit_per_query (5000 > 1000)") == 1000
    assert page_limit(400, "parse error") is None
    assert page_limit(400, "max entries limit per query exceeded, limit > max_entries_limit_per_query (5000 > 0)") is None
