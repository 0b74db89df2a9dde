"""Cells that were written and read again say the same; a torn or foreign file is known for one."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.sample import Sample
from edgekeeper.report.book import Book, Numbers, Source
from edgekeeper.report.cells import Cells, Lane
from edgekeeper.report.cells_text import Reader, is_cells, lines
from edgekeeper.report.kinds import NOT_THIS_FORMAT, TRUNCATED, WRONG_TYPE, Kind, Mark, Request
from edgekeeper.report.rules import Rules

RULES = Rules()
BEGIN = 1_788_756_900.0


def add(cells: Cells, source: str, router: str, request: Request) -> None:
    cells.add(Lane(source, router, ""), request, RULES.verdict(request))


def sample_book() -> Book:
    book = Book()
    book.sources["a.log"] = Source(
        "a.log", "/tmp/a.log", "traefik-json", "n1", 0.001, "", 12, Counter({TRUNCATED: 2}), BEGIN, BEGIN + 60, ["late"], Numbers(10, 12, 1)
    )
    for number, status in enumerate((200, 503, 200, 499, 500, 101, 503, 204)):
        add(book.cells, "a.log", "git", Request(BEGIN + number * 7.25, 0.13, status, "git", "192.0.2.7", cause="no endpoint" if status == 503 else ""))
    add(book.cells, "a.log", "k8s", Request(BEGIN, 40.0, 0, "k8s", "192.0.2.8", bad=True, cause="killed: server down"))
    book.marks += [
        Mark(BEGIN + 1, Kind.BGP_DOWN, "192.0.2.1", "gone \x1b[31m", "gw", "gw", 1.0, {"reason": "hold", "n": 2.0, "ok": True, "x": None}),
        Mark(None, Kind.DELETED, "git/gitea-0", source="drain"),
    ]
    book.samples["p", "https://a.example/", "fresh"] = [Sample(BEGIN, "https://a.example/", "fresh", BEGIN, BEGIN + 0.2, ok=False, error="refused")]
    return book


def back(text: list[bytes]) -> tuple[Book, list[str | None], str | None]:
    book = Book()
    reader = Reader(book)
    return book, [reader.read(line) for line in text], reader.finish()


def seen(book: Book) -> dict[str, object]:
    cells = book.cells
    return {
        "sources": book.sources,
        "cells": {lane: str(cells.cells(lane)) for lane in cells.lanes()},
        "minutes": {lane: cells.minutes(lane) for lane in cells.lanes()},
        "words": {lane: (cells.causes(lane), cells.ended(lane)) for lane in cells.lanes()},
        "clients": sorted(cells.clients()),
        "marks": book.marks,
        "samples": book.samples,
    }


def test_what_is_read_again_says_the_same() -> None:
    text = list(lines(sample_book()))
    book, reasons, missing = back(text)
    assert set(reasons) == {None}
    assert missing is None
    assert seen(book) == seen(sample_book())
    assert is_cells(text[0])
    assert list(lines(book)) == text  # and written again, it is the same file


@given(st.lists(st.tuples(st.floats(0, 4e5), st.floats(0, 90), st.sampled_from([200, 404, 500, 502, 503, 499, 101]), st.sampled_from("ab")), max_size=40))
@settings(max_examples=20)
def test_any_requests_survive(asked: list[tuple[float, float, int, str]]) -> None:
    cells = Cells()
    for at, took, status, router in asked:
        add(cells, "x", router, Request(BEGIN + at, took, status, router))
    book, _, _ = back(list(lines(Book(cells=cells))))
    for lane in cells.lanes():
        for mine, theirs in zip(cells.cells(lane), book.cells.cells(lane), strict=True):
            assert mine[:6] == theirs[:6]
            assert theirs[6:] == pytest.approx(mine[6:], abs=2e-5, nan_ok=True)
        assert cells.minutes(lane) == book.cells.minutes(lane)


def test_two_files_add_up() -> None:
    one, two = sample_book(), Book()
    reader = Reader(two)
    for text in (lines(one), lines(sample_book())):
        for line in text:
            assert reader.read(line) is None
    lane = Lane("a.log", "git", "")
    assert two.cells.total(lane).bad == 2 * one.cells.total(lane).bad
    assert two.sources["a.log"].lines == 24


def test_a_torn_file_is_known_for_one_and_read_as_far_as_it_goes() -> None:
    text = list(lines(sample_book()))
    book, _, missing = back(text[:-2])
    assert missing is not None
    assert "ends too early" in missing
    assert book.cells.total(Lane("a.log", "git", "")).bad == 2
    assert back([text[0], *text[2:]])[2] is not None  # one in the middle is missing


GOOD = b'{"lane":["a","b",""],"good":[[1788756900,1,0,0,5,5]]}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"schema":2,"kind":"edgekeeper.cells"}', NOT_THIS_FORMAT),
        (b'{"lane":["a","b",""],"good":[[1788756900,1', TRUNCATED),
        (b"\xff\x00", TRUNCATED),
        (b"[1,2]", WRONG_TYPE),
        (b"null", WRONG_TYPE),
        (GOOD.replace(b"1788756900", b"-1"), WRONG_TYPE),
        (GOOD.replace(b"1788756900", b"99999999999999999999"), WRONG_TYPE),
        (GOOD.replace(b"[1788756900,1,", b"[1788756900,-4,"), WRONG_TYPE),
        (GOOD.replace(b"5,5]]", b'5,"5"]]'), WRONG_TYPE),
        (b'{"lane":["a","b",""],"minutes":[[1,200,77,1]]}', WRONG_TYPE),
        (b'{"marks":[[1.0,"no.such.kind","","","","",0.0,{}]]}', WRONG_TYPE),
        (b'{"clients":[["a","b","c",[]]]}', WRONG_TYPE),
        (b'{"source":{"name":"a"}}', WRONG_TYPE),
        (GOOD, None),
    ],
)
def test_a_line_that_is_none_is_skipped_whole(line: bytes, reason: str | None) -> None:
    book, reasons, _ = back([line])
    assert reasons == [reason]
    assert bool(book.cells.lanes()) is (reason is None)


@given(st.one_of(st.binary(max_size=60), st.tuples(st.integers(0, len(GOOD)), st.binary(max_size=3)).map(lambda t: GOOD[: t[0]] + t[1] + GOOD[t[0] :])))
@settings(max_examples=60)
def test_no_line_breaks_the_reading(line: bytes) -> None:
    book, (reason,), _ = back([line])
    assert reason is not None or book.cells.total(Lane("a", "b", "")).good >= 0


def test_other_files_are_not_taken_for_it() -> None:
    assert not is_cells(b'{"schema":1,"ts":"2026-09-07T04:55:10Z","kind":"x"}')
    assert not is_cells(b"")
    assert is_cells(json.dumps({"schema": 9, "kind": "edgekeeper.cells"}, separators=(",", ":")).encode())
