"""What a Loki is asked: slices that keep its limits, classes in the order in which they count, pages that lose no tie."""

from __future__ import annotations

from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.errors import UsageError
from edgekeeper.report.loki_plan import (
    ALL,
    NANO,
    PAGE,
    SLICE_S,
    Entry,
    Pages,
    Slice,
    access_questions,
    class_filters,
    count_path,
    node_of,
    page_path,
    selector,
    slices,
)
from edgekeeper.report.rules import Group, Rules

STREAMS = '{app="traefik"}'


@pytest.mark.parametrize("text", ['{app="traefik"}', ' {a="}", b=~`x.*`} |= `y` ', '{a="\\"}"} != "z" | json'])
def test_a_selector_may_have_filters_behind_it(text: str) -> None:
    assert selector(text) == text.strip()


@pytest.mark.parametrize("text", ["", "traefik", 'sum(count_over_time({app="a"}[1m]))', '{app="a"', '{app="a"} [5m]', '{app="a"} or {app="b"}'])
def test_what_counts_or_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--query"):
        selector(text)


@given(begin=st.floats(0, 2e9), length=st.floats(1, 4e5), edges=st.lists(st.floats(0, 2.1e9), max_size=4))
@settings(max_examples=25)
def test_slices_cover_the_time_without_gap_and_keep_the_limit(begin: float, length: float, edges: list[float]) -> None:
    end = begin + length
    inside = [edge for edge in edges if begin < edge < end]
    found = slices(begin, end, edges)
    assert found[0].begin <= begin < found[0].begin + 60
    assert found[-1].end - 60 < end <= found[-1].end
    assert all(a.end == b.begin for a, b in pairwise(found))
    assert all(0 < one.end - one.begin <= SLICE_S <= 11_000 for one in found)
    assert all(any(one.begin == int(edge) for one in found) for edge in inside if int(edge) > found[0].begin)


def test_a_question_too_large_is_halved_down_to_a_minute() -> None:
    assert Slice(0, 3600).halves() == (Slice(0, 1800), Slice(1800, 3600))
    assert Slice(60, 180).halves() == (Slice(60, 120), Slice(120, 180))
    assert Slice(60, 120).halves() == (Slice(60, 120),)


def test_a_sample_tells_of_the_step_that_ends_with_it_so_the_first_is_asked_for_a_step_later() -> None:
    question = next(q for q in access_questions(STREAMS, 600, 1200, Rules()) if q.what == "good")
    asked = {key: value[0] for key, value in parse_qs(urlsplit(question.path).query).items()}
    assert (asked["start"], asked["end"], asked["step"]) == (str(601 * NANO), str(1200 * NANO), "1s")
    minutes = next(q for q in access_questions(STREAMS, 600, 1200, Rules()) if q.what == ALL)
    assert parse_qs(urlsplit(minutes.path).query)["start"] == [str(660 * NANO)]


def test_line_filters_come_before_the_parser_and_only_named_fields_become_labels() -> None:
    for question in access_questions(STREAMS, 0, 60, Rules()):
        if question.what == ALL:
            continue
        assert question.query.index("|= `") < question.query.index("| json ") < question.query.index("__error__")
        assert "| json ek_router=" in question.query


def test_the_first_class_that_fits_counts_and_one_out_of_date_does_not() -> None:
    rules = Rules(
        groups=(
            Group("old", ("192.0.2.0/24",), until=1000.0),
            Group("lan", ("198.51.100.0/24", "2001:db8::/32"), begin=1000.0),
            Group("public", ("0.0.0.0/0",)),
        )
    )
    early = dict(class_filters(rules, Slice(0, 960)))
    assert list(early) == ["old", "public", ""]
    assert early["public"] == ' | ek_client != ip("192.0.2.0/24") | ek_client = ip("0.0.0.0/0")'
    late = dict(class_filters(rules, Slice(1000, 2000)))
    assert list(late) == ["lan", "public", ""]
    assert late["lan"] == ' | ek_client = ip("198.51.100.0/24") or ek_client = ip("2001:db8::/32")'
    assert late[""].count("!=") == 3
    parts = {q.slice for q in access_questions(STREAMS, 0, 1980, rules)}
    assert {p.begin for p in parts} >= {0, 1000}


def test_without_classes_nothing_is_filtered() -> None:
    assert class_filters(Rules(), Slice(0, 60)) == [("", "")]


def entry(at: int, line: str = "x", stream: str = "a") -> Entry:
    return Entry(at, line, (("pod", stream),))


def test_entries_of_one_time_on_both_sides_of_a_page_are_read_once() -> None:
    store = [entry(1), entry(2, "a"), entry(2, "a", "b"), entry(2, "c"), entry(3)]
    pages, found = Pages(0, 10, 4), []
    while not pages.done:
        found += list(pages.take([e for e in store if pages.at_ns <= e.at_ns < 10][:4]))
    assert sorted(found, key=str) == sorted(store, key=str)
    assert pages.torn == 0


@given(ats=st.lists(st.integers(0, 8), max_size=30), limit=st.integers(2, 6))
@settings(max_examples=40)
def test_paging_reads_every_entry_once_unless_a_time_fills_a_page(ats: list[int], limit: int) -> None:
    store = [entry(at, str(number)) for number, at in enumerate(sorted(ats))]
    pages, found = Pages(0, 100, limit), []
    for _ in range(200):
        if pages.done:
            break
        found += list(pages.take([e for e in store if pages.at_ns <= e.at_ns < 100][:limit]))
    assert pages.done
    assert len(set(found)) == len(found)
    if pages.torn == 0:
        assert sorted(found, key=str) == sorted(store, key=str)
    else:
        assert max(ats.count(at) for at in ats) >= limit


def test_paths_ask_for_the_earliest_first() -> None:
    assert parse_qs(urlsplit(page_path(STREAMS, 5, 9)).query) == {
        "query": [STREAMS],
        "start": ["5"],
        "end": ["9"],
        "limit": [str(PAGE)],
        "direction": ["forward"],
    }
    assert parse_qs(urlsplit(count_path(STREAMS, 60, 120)).query) == {"query": [f"sum(count_over_time({STREAMS} [60s]))"], "time": [str(120 * NANO)]}


@pytest.mark.parametrize(
    ("labels", "node"),
    [({"node_name": "n1", "host": "x"}, "n1"), ({"instance": "n2:9100"}, "n2"), ({"pod": "traefik-0"}, ""), ({"host": ""}, "")],
)
def test_the_machine_is_told_by_labels_that_collectors_give(labels: dict[str, str], node: str) -> None:
    assert node_of(labels) == node
