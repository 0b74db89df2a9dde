"""What holds for all formats: nothing raises, and each knows its own lines and no others."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.model.sample import Sample
from edgekeeper.report import formats
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.envelope import ENVELOPES
from edgekeeper.report.kinds import REASONS, Mark, Request, Skip

TRAEFIK = b'{"ClientAddr":"192.0.2.41:1","DownstreamStatus":503,"Duration":190342,"RouterName":"git@file","StartUTC":"2026-09-07T04:55:12.1Z"}'
CLF = b'192.0.2.41 - - [07/Sep/2026:04:55:12 +0000] "GET / HTTP/2.0" 503 20 "-" "git/2"'
SAMPLES = {
    "traefik-json": TRAEFIK,
    "traefik-clf": CLF + b' 103110 "git@file" "-" 0ms',
    "ingress-nginx": CLF + b" 83 0.004 [git-http-3000] [] 198.51.100.7:1, 198.51.100.7:2 0, 473 0.000, 0.004 502, 200 f758a9",
    "combined": CLF,
    "haproxy": b"Nov 29 20:33:43 lb-1 haproxy[1]: 192.0.2.41:57966 [29/Nov/2026:20:33:29.822] k8s-api cp/cp-1 1/6/13908 113 D- 2/2/1/0/0 0/0",
    "envoy": b'[2026-09-07T05:01:44.219Z] "GET / HTTP/2" 503 UH 0 19 0 - "192.0.2.41" "curl/8" "0f3c" "git.example" "-"',
    "haproxy-sessions": b"0x7f8364046880: proto=tcpv4 src=192.0.2.41:57976 fe=k8s-api be=cp srv=cp-2 ts=00 epoch=0 age=16s calls=3 rate=0 ",
    "lb-sessions": b'    {"client": "192.0.2.41:1", "backend": "cp", "server": "cp-2", "pinned": true, "age_s": 1.5},',
}
LINES = [*SAMPLES.values(), b"Nov 29 20:33:43 lb-1 haproxy[1]: Server cp/cp-1 is DOWN, reason: Layer4 timeout, check duration: 1ms."]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_line_is_recognised_as_its_own_format_and_as_no_other(name: str) -> None:
    line = SAMPLES[name]
    assert [one.name for one in formats.FORMATS if one.likes(line)] == [name]
    found = formats.recognise([b"", b"noise", line])
    assert found is not None
    assert found.name == name
    assert formats.by_name(name) is found


def test_no_format_likes_noise() -> None:
    assert formats.recognise([b"", b"\0", b"hello", b"{}", b"[]", b"null", b"2026-09-07T04:55:12Z hello"]) is None
    assert formats.by_name("morse") is None


def test_names_are_unique() -> None:
    assert len({one.name for one in formats.FORMATS}) == len(formats.FORMATS)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """A good line with a piece cut out and another put in."""
    line = draw(st.sampled_from(LINES))
    begin, length = draw(st.integers(0, len(line))), draw(st.integers(0, 20))
    return line[:begin] + draw(st.binary(max_size=6)) + line[begin + length :]


@settings(max_examples=60)
@given(st.one_of(st.binary(max_size=60), _damaged(), st.text(max_size=40).map(str.encode)))
def test_nothing_raises_and_every_skip_has_a_known_reason(line: bytes) -> None:
    for one in formats.FORMATS:
        one.likes(line)
        context = Context(envelope_at=1.0)
        found = one.parse(line, context)
        for item in found if isinstance(found, list) else [found]:
            assert item is None or isinstance(item, Request | Mark | Sample | Skip)
            if isinstance(item, Skip):
                assert item.reason in REASONS
    for envelope in ENVELOPES:
        envelope.likes(line)
        envelope.unwrap(line, Context())


def test_a_long_line_of_repetitions_is_read_in_one_go() -> None:
    """A client writes what it likes into its path and agent: no regular expression may go back and forth over it (a plain line of 20 kB takes 0.1 ms)."""
    pieces = (b'"', b' "', b'" 500 1 ', b"[07/Sep/2026:04:55:12 +0000] ", b"a, ", b"\\", b"0x1: proto=x ", b"1/", b": ")
    for line in (*SAMPLES.values(), b""):
        for piece in pieces:
            long = line[: len(line) // 2] + piece * (20_000 // len(piece))
            for one in formats.FORMATS:
                begin = process_time()
                one.likes(long)
                assert process_time() - begin < 0.2, (one.name, piece)
