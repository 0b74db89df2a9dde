from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.sources.records import parse

ENTRY = {"__CURSOR": "s=0;i=1;b=2;m=3;t=4;x=5", "__REALTIME_TIMESTAMP": "1795985018628736", "_BOOT_ID": "1" * 32, "_PID": "1"}


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("a line", b"a line\n"),
        ([99, 255, 0], b"c\xff\x00\n"),
        ("two\nlines", b"two lines\n"),
        ([97, 10, 98], b"a b\n"),
        ("cr\rlf\r\n", b"cr lf\n"),
        (["one", "two"], b"one two\n"),
        (["one", [116, 119]], b"one tw\n"),
        (None, b""),
        ("", b""),
        ([300], b""),
        ({"a": 1}, b""),
        (True, b""),
        ([[[97]]], b""),
    ],
)
def test_a_message_is_one_line_whatever_it_is(message: Any, line: bytes) -> None:
    record = parse(json.dumps({**ENTRY, "MESSAGE": message}).encode())
    assert record is not None
    assert (record.line, record.cursor, record.started) == (line, ENTRY["__CURSOR"], None)


def test_the_service_manager_says_when_a_unit_started_and_nobody_else_does() -> None:
    said = {**ENTRY, "MESSAGE": "Started.", "MESSAGE_ID": "39f53479d3a045ac8e11786248231fbf", "UNIT": "app.service"}
    record = parse(json.dumps(said).encode())
    assert record is not None
    assert record.started == pytest.approx(1795985018.628736)
    for other in ({"_PID": "77"}, {"MESSAGE_ID": "0"}, {"__REALTIME_TIMESTAMP": "x"}, {"__REALTIME_TIMESTAMP": None}):
        record = parse(json.dumps({**said, **other}).encode())
        assert record is not None
        assert record.started is None


@settings(max_examples=25)
@given(
    st.one_of(
        st.binary(max_size=40), st.recursive(st.none() | st.integers() | st.text(max_size=4), st.lists, max_leaves=6).map(lambda v: json.dumps(v).encode())
    )
)
def test_what_is_no_entry_is_none_and_raises_nothing(text: bytes) -> None:
    assert parse(text) is None
    record = parse(b'{"__CURSOR":"c","MESSAGE":' + text + b"}")
    assert record is None or record.line == b"" or record.line.count(b"\n") == 1
