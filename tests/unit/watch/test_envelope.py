from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.envelope import ENVELOPES, recognise, unescape
from edgekeeper.watch.stamp import Calendar, iso

BY_NAME = {envelope.name: envelope for envelope in ENVELOPES}
DOCKER, JOURNAL, CRI, TIMED, LINES = (BY_NAME[name] for name in ("docker json-file", "journald json", "cri", "docker logs -t", "lines"))


def as_go_writes(text: str) -> str:
    """A string as Go's encoder writes it, which also escapes what would be markup."""
    dumped = json.dumps(text, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        dumped = dumped.replace(char, f"\\u{ord(char):04x}")
    return dumped


def docker(text: str, second: int = 1) -> bytes:
    return f'{{"log":{as_go_writes(text)},"stream":"stderr","time":"2026-09-07T06:58:{second:02d}.123456789Z"}}\n'.encode()


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (docker("x\n"), "docker json-file"),
        (b'{"__CURSOR":"s=0","__REALTIME_TIMESTAMP":"1795985018628736","MESSAGE":"x"}', "journald json"),
        (b"2026-09-07T04:55:12.104112345Z stdout F x", "cri"),
        (b"2026-11-29T20:53:57.266592783Z tick 34", "docker logs -t"),
        (b"2026-09-07T06:58:01.123Z WARN x", "lines"),
        (b'{"level":"info","ts":"2026-03-02T12:30:07Z","msg":"x"}', "lines"),
    ],
)
def test_an_envelope_is_recognised_also_behind_a_cut_line(line, name):
    assert recognise([line]).name == name
    assert recognise([b"...tail of a line", line, line]).name == name


def test_one_line_that_looks_otherwise_does_not_decide():
    assert recognise([docker("quoted by a service\n"), b"2026-09-07 x", b"2026-09-07 y"]).name == "lines"


def test_where_nothing_is_known_or_there_is_nothing_lines_are_lines():
    assert recognise([b"x", b"\xff"]).name == "lines"
    assert BY_NAME[recognise([]).name].part(b"a").text == b"a"


TEXT = st.text(st.sampled_from('ab"\\<>&\u2028é\t\0\x1b/u0n😀'), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=6))
def test_a_block_taken_apart_at_once_is_the_same_as_line_by_line(texts):
    lines = [docker(text + "\n") for text in texts]
    bulk = DOCKER.bulk(b"".join(lines))
    assert bulk is not None
    assert bulk.split(b"\n")[:-1] == [DOCKER.part(line).text.replace(b"\0", b" ") for line in lines]


def test_escapes_of_json_are_undone():
    assert unescape(rb"a\\u003cb \u003c\u003e\u0026 \"x\" \\\" \u00e9\n\ud800") == 'a\\u003cb <>& "x" \\" é ?'.encode()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60))
def test_no_line_makes_an_envelope_fail(line):
    for envelope in ENVELOPES:
        for raw in (line, b'{"log":"' + line, b'{"MESSAGE":' + line, b'{"MESSAGE":[1,"a",300]}', b"[" * 5000):
            envelope.part(raw)
            envelope.stamp(raw, Calendar())
        envelope.bulk(line + b"\n")


def test_parts_are_told_from_whole_lines():
    assert not DOCKER.part(docker("a part")).ends
    assert DOCKER.bulk(docker("a part") + docker("its end\n")) is None
    part = CRI.part(b"2026-09-07T04:55:12.2Z stdout P a part")
    assert (part.text, part.ends, part.stream) == (b"a part", False, b"stdout")
    assert CRI.bulk(b"2026-09-07T04:55:12.2Z stdout P a part\n") is None
    assert CRI.bulk(b"2026-09-07T04:55:12.2Z stdout F a\n2026-09-07T04:55:12.2Z stderr F b\n") == b"a\nb\n"


def test_the_service_s_own_stamp_stays_where_docker_put_one_before_it():
    assert TIMED.bulk(b"2026-09-07T06:58:01.123456789Z 2026-09-07T06:58:01.123Z WARN x\n") == b"2026-09-07T06:58:01.123Z WARN x\n"
    assert TIMED.part(b"2026-09-07T06:58:01.123456789Z x").text == b"x"


def test_a_message_of_the_journal_may_be_bytes():
    assert JOURNAL.part(b'{"MESSAGE":[99,255,0]}').text == b"c\xff\0"
    assert JOURNAL.part(b'{"MESSAGE":"two\\nlines"}').text == b"two lines"
    assert JOURNAL.part(b'{"MESSAGE":null}').text == b""
    assert JOURNAL.stamp(b'{"__REALTIME_TIMESTAMP":"1795985018628736"}', Calendar()) == 1795985018.628736


def test_the_time_is_the_envelope_s():
    when = iso(b"2026-09-07T06:58:01.123456789Z")
    assert DOCKER.stamp(docker('2020-01-01T00:00:00Z "time":"2020-01-01T00:00:00Z"\n'), Calendar()) == when
    assert CRI.stamp(b"2026-09-07T06:58:01.123456789Z stdout F 2020-01-01T00:00:00Z", Calendar()) == when
