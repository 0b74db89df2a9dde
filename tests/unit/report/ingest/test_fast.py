import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report.book import Source
from edgekeeper.report.formats import by_name
from edgekeeper.report.formats.base import Context
from edgekeeper.report.ingest import fast as module
from edgekeeper.report.ingest.fast import FastTraefik
from edgekeeper.report.ingest.take import Taker
from edgekeeper.report.rules import Group, Rules

EXACT = by_name("traefik-json")
CLASSES = (Group("lan", ("192.0.2.0/24",)), Group("public", ("127.0.0.1",)))
TURNING = (Group("before", ("192.0.2.0/24",), until=1_788_757_000.0), Group("after", ("192.0.2.0/24",), begin=1_788_757_000.0))
PLAIN = {
    "ClientAddr": "192.0.2.7:40126",
    "ClientHost": "192.0.2.7",
    "DownstreamStatus": 200,
    "Duration": 1_811_271,
    "RequestCount": 7,
    "RequestPath": "/api",
    "RetryAttempts": 0,
    "RouterName": "git@kubernetes",
    "ServiceURL": "http://198.51.100.1:3000",
    "StartUTC": "2026-09-07T04:55:10.503803Z",
}
VALUES = {
    "ClientAddr": ["192.0.2.7:1", "127.0.0.1:9", "[2001:db8::1]:80", "2001:db8::1:80", "192.0.2.7", "", "x", None, 5],
    "ClientHost": ["192.0.2.9", "forged, 192.0.2.1", ""],
    "DownstreamStatus": [200, 204, 304, 404, 499, 500, 502, 503, 504, 101, 0, 99, 1000, -1, "503", None, 2.5],
    "Duration": [0, 190_342, 3_004_123_000, 10**18, -1, "5", 10**30],
    "RequestCount": [1, 2, -5, None, "7", 2**70],
    "RequestPath": ["/", "/?kp=edge-1-17", "/?a=kp=1", 7],
    "RetryAttempts": [0, 1, 3, -1, None],
    "RouterName": ["git@kubernetes", "a -> b", "", "-", "x" * 300, "\u202e\x1b[2J"],
    "ServiceURL": ["http://198.51.100.1:1", "", {"Scheme": "http"}, None],
    "StartUTC": [
        "2026-09-07T04:55:10.9999999Z",
        "2026-09-07T06:55:10.5+02:00",
        "2026-09-06T23:59:59.999999Z",
        "2026-09-07T04:55:10.5",
        "0001-01-01T00:00:00Z",
        "2199-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "9999-12-31T23:59:59.9999999Z",
        "2026-09-07T04:55:60Z",
        "yesterday",
        5,
    ],
}


def line(**changes):
    return json.dumps({key: value for key, value in {**PLAIN, **changes}.items() if value != "dropped"}).encode()


LINES = st.builds(
    lambda changes: line(**changes),
    st.dictionaries(st.sampled_from(sorted(VALUES)), st.integers(0, 20), max_size=2).map(
        lambda picked: {key: [*VALUES[key], "dropped"][n % (len(VALUES[key]) + 1)] for key, n in picked.items()}
    ),
)


def taker(groups=CLASSES):
    return Taker(Source("log", "log", "traefik-json"), Rules(groups=groups))


def fast(blocks, groups=CLASSES):
    made = taker(groups)
    reader = FastTraefik(made, EXACT, Context(source="log"), probed=True)
    for block in blocks:
        reader.feed(block)
    reader.end()
    return made


def exact(lines, groups=CLASSES):
    made = taker(groups)
    context = Context(source="log")
    for one in lines:
        made.source.lines += 1
        made.take(EXACT.parse(one, context))
    made.settle()
    return made


def told(made):
    """All that came of it, as text; how exactly a client's last good answer is told is not compared."""
    cells = made.read.book.cells
    clients = sorted((c.who, c.bad, [(int(r.first), r.ok) for r in c.runs if not r.ok]) for c in cells.clients())
    return {
        "lines": made.source.lines,
        "skipped": dict(made.source.skipped),
        "cells": str([(lane, cells.cells(lane)) for lane in cells.lanes()]),
        "minutes": str([(lane, cells.minutes(lane)) for lane in cells.lanes()]).count("Minute"),
        "statuses": {lane: cells.statuses(lane) for lane in cells.lanes()},
        "took": [[m.took for m in cells.minutes(lane)] for lane in cells.lanes()],
        "why": [(cells.causes(lane), cells.ended(lane)) for lane in cells.lanes()],
        "clients": str(clients),
        "marks": [(m.kind, m.object, m.source) for m in made.read.book.marks],
        "numbers": made.read.counters.numbers(),
    }


@settings(max_examples=25)
@given(st.lists(LINES, max_size=8), st.booleans())
def test_it_says_what_the_exact_parser_says(lines, turning):
    groups = TURNING if turning else CLASSES
    block = b"".join(one + b"\n" for one in lines)
    found, truth = told(fast([block], groups)), told(exact(lines, groups))
    found["marks"].sort()
    truth["marks"].sort()
    assert found == truth


def test_each_way_of_being_odd_is_told_as_the_exact_parser_tells_it():
    for key, values in VALUES.items():
        for value in [*values, "dropped"]:
            lines = [line(), line(**{key: value}), line(DownstreamStatus=503)]
            assert told(fast([b"\n".join(lines) + b"\n"])) == told(exact(lines)), (key, value)


def test_a_day_in_which_a_class_begins_is_told_by_the_moment():
    stamps = ["2026-09-07T04:55:10Z", "2026-09-07T04:57:10Z", "2026-09-06T04:55:10Z", "2026-09-08T04:55:10Z", "2026-09-07T04:56:39Z"]
    made = fast([line(StartUTC=at) + b"\n" for at in stamps], TURNING)
    cells = made.read.book.cells
    assert {lane.group: cells.total(lane).good for lane in cells.lanes()} == {"before": 3, "after": 2}


def test_what_is_remembered_is_bounded_and_nothing_is_lost(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 3)
    monkeypatch.setattr(module, "_SETTLE", 5)
    lines = [line(ClientAddr=f"192.0.2.{i % 50}:1", RequestCount=i) for i in range(200)]
    assert told(fast([one + b"\n" for one in lines])) == told(exact(lines))


def test_columns_that_are_full_are_closed_while_reading(monkeypatch):
    monkeypatch.setattr("edgekeeper.report.cells.FULL", 16)
    monkeypatch.setattr(module, "_SETTLE", 8)
    lines = [line(StartUTC=f"2026-09-07T04:{i // 60:02d}:{i % 60:02d}.25Z", RequestCount=i, DownstreamStatus=503 if i % 40 == 5 else 200) for i in range(300)]
    assert told(fast([one + b"\n" for one in lines])) == told(exact(lines))


@pytest.mark.parametrize("glue", [b"", b" ", b"\t"])
def test_two_objects_in_a_line_lose_none(glue):
    bad = line(DownstreamStatus=503)
    made = fast([bad + b"\n" + line() + glue + line() + b"\n" + bad + b"\n"])
    assert told(made)["statuses"] == {("log", "git@kubernetes", "lan"): {503: 2, 200: 2}}


@settings(max_examples=40)
@given(st.lists(st.one_of(LINES, st.binary(max_size=60)), max_size=6), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4))
def test_no_bytes_stop_it_and_none_of_its_lines_is_counted_twice(lines, spoilt):
    block = bytearray(b"".join(one.replace(b"\n", b" ") + b"\n" for one in lines))
    for place, byte in spoilt:
        if place < len(block):
            block[place] = byte
    made = fast([bytes(block)])
    cells = made.read.book.cells
    counted = sum(sum(cells.total(lane)[:4]) for lane in cells.lanes())
    assert counted + sum(made.source.skipped.values()) <= made.source.lines
    assert made.source.lines <= block.count(b"\n") + block.count(b"{") + 1
