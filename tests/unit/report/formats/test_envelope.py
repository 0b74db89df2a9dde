from __future__ import annotations

import json

import pytest

from edgekeeper.report import kinds
from edgekeeper.report.formats import envelope
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.envelope import Envelope, recognise_envelope
from edgekeeper.report.formats.pieces import LONGEST, STREAMS, Pieces
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Skip

AT = utc(2026, 9, 7, 4, 55, 12)
CRI, DOCKER, JOURNALD, EXPORT, STAMPED = envelope.ENVELOPES


def opened(kind: Envelope, *lines: bytes) -> list[tuple[bytes | Skip, float | None]]:
    """What comes out, each with its time."""
    context = Context()
    found: list[tuple[bytes | Skip, float | None]] = []
    for line in lines:
        inner = kind.unwrap(line, context)
        if inner is not None:
            found.append((inner, context.envelope_at))
    return found + [(inner, context.envelope_at) for inner in kind.end(context)]


def docker(log: str, stream: str = "stdout", second: int = 12) -> bytes:
    return json.dumps({"log": log, "stream": stream, "time": f"2026-09-07T04:55:{second}.5Z"}).encode()


def journal(message: object, **more: object) -> bytes:
    entry = {"__REALTIME_TIMESTAMP": str(int(AT * 1e6)), "_HOSTNAME": "proxy-1", "SYSLOG_IDENTIFIER": "haproxy", "MESSAGE": message}
    return json.dumps({**entry, **more}).encode()


def test_cri_pieces_are_joined_each_stream_for_itself_and_dated_by_the_first() -> None:
    lines = (
        b"2026-09-07T04:55:12.5Z stdout P one ",
        b"2026-09-07T04:55:13.5Z stderr F other",
        b"2026-09-07T04:55:14.5Z stdout P and ",
        b"2026-09-07T06:55:15.5+02:00 stdout F  two",
        b"2026-09-07T04:55:16.5Z stdout F:tag ",
        b"2026-09-07T04:55:17.5Z stdout P cut off",
    )
    assert opened(CRI, *lines) == [(b"other", AT + 1.5), (b"one and  two", AT + 0.5), (b"", AT + 4.5), (Skip(kinds.TRUNCATED), AT + 5.5)]


def test_docker_pieces_have_no_newline_and_the_last_words_of_a_container_count() -> None:
    lines = (docker("one "), docker("err\n", "stderr", 13), docker("two\n", second=14), docker("last words", second=15))
    assert opened(DOCKER, *lines) == [(b"err", AT + 1.5), (b"one two", AT + 0.5), (b"last words", AT + 3.5)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"log":"x\\n","stream":"stdout","ti', kinds.TRUNCATED),
        (b'{"log":"x\\n"}', kinds.MISSING_FIELD),
        (b'{"log":1,"time":""}', kinds.WRONG_TYPE),
        (b'{"log":"\xff\\n","time":""}', kinds.NOT_TEXT),
        (b"plain", kinds.NOT_THIS_FORMAT),
        (b"\0\1", kinds.NOT_TEXT),
        (b'{"log":"x"}{"log":"y"}', kinds.MISSING_FIELD),
        (b"[" * 5000, kinds.NOT_THIS_FORMAT),
        (b'{"x":' * 5000, kinds.NOT_THIS_FORMAT),
    ],
)
def test_a_damaged_line_is_skipped_with_its_reason(line: bytes, reason: str) -> None:
    assert opened(DOCKER, line) == [(Skip(reason), None)]


def test_a_message_of_the_journal_is_a_string_or_bytes_or_nothing() -> None:
    lines = (journal("text"), journal([104, 105, 255, 0]), journal(None), journal(["first", "last"]), journal(["a", [98]]), journal([256]), journal({}))
    found = [inner for inner, _ in opened(JOURNALD, *lines)]
    assert found == [b"text", b"hi\xff\0", Skip(kinds.TOO_LONG), b"last", b"b", Skip(kinds.WRONG_TYPE), Skip(kinds.WRONG_TYPE)]


def test_the_journal_tells_the_machine_the_program_and_the_senders_own_time() -> None:
    context = Context()
    JOURNALD.unwrap(journal("x", _SOURCE_REALTIME_TIMESTAMP=str(int(AT * 1e6) - 500_000)), context)
    assert (context.node, context.tag, context.envelope_at) == ("proxy-1", "haproxy", AT - 0.5)
    JOURNALD.unwrap(journal("x", CONTAINER_NAME="traefik\x1b", _SOURCE_REALTIME_TIMESTAMP="never"), context)
    assert (context.tag, context.envelope_at) == ("traefik\\x1b", AT)
    assert opened(JOURNALD, journal("x", __REALTIME_TIMESTAMP="1" * 30))[0][0] == Skip(kinds.NO_TIME)
    assert opened(JOURNALD, b'{"MESSAGE":"x"}')[0][0] == Skip(kinds.MISSING_FIELD)


def test_a_line_that_docker_cut_for_the_journal_is_joined() -> None:
    def part(text: str, container: str, **more: str) -> bytes:
        return journal(text, CONTAINER_NAME=container, PRIORITY="6", **more)

    partial = {"CONTAINER_PARTIAL_MESSAGE": "true"}
    found = opened(JOURNALD, part("a", "x", **partial), part("other", "y"), part("b", "x", CONTAINER_PARTIAL_LAST="true"), part("c", "x", **partial))
    assert [inner for inner, _ in found] == [b"other", b"ab", Skip(kinds.TRUNCATED)]


def exported(text: bytes) -> list[tuple[bytes | Skip, float | None]]:
    return opened(EXPORT, *text.removesuffix(b"\n").split(b"\n"))


def test_the_export_form_with_a_binary_field_whose_length_holds_a_newline() -> None:
    message = b"ten bytes\n" + b"x"
    assert len(message) == 11
    first = b"__REALTIME_TIMESTAMP=1788756912500000\n_HOSTNAME=proxy-1\nMESSAGE=plain = text\n\n"
    second = b"__REALTIME_TIMESTAMP=1788756913500000\nMESSAGE\n" + (10).to_bytes(8, "little") + message[:10] + b"\n_PID=1\n\n"
    third = b"__REALTIME_TIMESTAMP=1788756914500000\nCOREDUMP\n" + (3).to_bytes(8, "little") + b"=\n=\nMESSAGE=last\n"
    assert exported(first + second + third) == [(b"plain = text", AT + 0.5), (b"ten bytes\n", AT + 1.5), (b"last", AT + 2.5)]


def test_an_export_that_ends_too_early_or_lies_about_a_length() -> None:
    assert exported(b"__CURSOR=x\nMESSAGE\n" + (10).to_bytes(8, "little") + b"abc") == [(Skip(kinds.TRUNCATED), None)]
    assert exported(b"MESSAGE\n" + (1 << 60).to_bytes(8, "little") + b"abc")[0] == (Skip(kinds.TOO_LONG), None)
    assert exported(b"MESSAGE=no time\n\n") == [(Skip(kinds.NO_TIME), None)]
    assert exported(b"what is this?") == [(Skip(kinds.NOT_THIS_FORMAT), None)]


def test_a_stamp_before_each_line_is_taken_off() -> None:
    stamp = b"2026-09-07T04:55:12.500000000Z "
    prefix = b"[pod/web-1/web] "
    assert opened(STAMPED, stamp + b"line", prefix + stamp + b"more") == [(b"line", AT + 0.5), (b"more", AT + 0.5)]
    assert opened(STAMPED, prefix + b"no stamp", b"nothing") == [(b"no stamp", None), (Skip(kinds.NOT_THIS_FORMAT), None)]


def test_pieces_without_end_take_no_memory() -> None:
    pieces, context = Pieces(), Context()
    for _ in range(9):
        pieces.add("x", b"x" * (LONGEST // 4), None, context, last=False)
    assert sum(map(len, pieces._waiting["x"].pieces)) <= LONGEST
    piece = b"2026-09-07T04:55:12.5Z stdout P " + b"x" * (LONGEST // 4)
    end = b"2026-09-07T04:55:12.5Z stdout F end"
    assert [inner for inner, _ in opened(CRI, *[piece] * 5, end, end)] == [Skip(kinds.TOO_LONG), b"end"]
    assert len(opened(DOCKER, *(docker("x", str(number)) for number in range(STREAMS + 9)))) == STREAMS


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"2026-09-07T04:55:12.104112345Z stdout F {}", "cri"),
        (docker("x\n").replace(b'": ', b'":'), "docker"),
        (journal("x"), "journald"),
        (b"__CURSOR=s=0;i=1", "journald-export"),
        (b"2026-09-07T04:55:12.104112345Z {}", "stamped"),
        (b"[pod/web-1/web] {}", "stamped"),
        (b"2026-09-07T06:58:01.123Z WARN client.go:126: couldn't", "none"),
        (b'{"DownstreamStatus":200,"StartUTC":"2026-09-07T04:55:10.503803974Z"}', "none"),
        (b"", "none"),
    ],
)
def test_an_envelope_is_recognised_by_its_content(line: bytes, kind: str) -> None:
    assert recognise_envelope([line]).name == kind
    assert recognise_envelope([b"Flag --x has been deprecated", line, line]).name == kind


def test_a_line_that_looks_wrapped_does_not_decide_for_a_whole_file() -> None:
    assert recognise_envelope([b"x", b"y", b"2026-09-07T04:55:12.104112345Z stdout F z"]).name == "none"
    assert recognise_envelope([]).name == "none"
