from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.haproxy import HaProxy
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Kind, Mark, Request, Skip

AT = utc(2026, 11, 29, 20, 33, 29.834)
SECOND = utc(2026, 11, 29, 20, 33, 43)
LEAD = "192.0.2.41:52562 [29/Nov/2026:20:33:29.834] "
DRESSES = ("", "Nov 29 20:33:29 lb-1 haproxy[13498]: ", "<134>1 2026-11-29T20:33:29Z lb-1 haproxy 1 - - ", "<134>", "2026-11-29T20:33:29Z lb-1 haproxy[1]: ")


def parse(text: str, context: Context | None = None) -> object:
    line = text.encode()
    return HaProxy().parse(line, context or Context(until=SECOND))


def tcp(letters: str, server: str = "cp/cp-1", took: str = "13908", retries: str = "0") -> Request:
    found = parse(f"{LEAD}k8s-api {server} 1/6/{took} 113 {letters} 2/2/1/1/{retries} 0/0")
    assert isinstance(found, Request)
    return found


def http(status: int, letters: str = "----", server: str = "apps/app-1", took: str = "1", retries: str = "0") -> Request | None:
    found = parse(f'{LEAD}web~ {server} 0/0/0/1/{took} {status} 116 - - {letters} 4/2/1/1/{retries} 0/0 "GET /ok HTTP/1.1"')
    assert found is None or isinstance(found, Request)
    return found


@pytest.mark.parametrize("dress", DRESSES)
def test_both_kinds_of_line_in_every_dress(dress: str) -> None:
    lines = {
        "k8s-api cp/cp-1 1/6/13908 113 D- 2/2/1/1/0 0/0": Request(
            AT, 13.908, 0, router="cp", client="192.0.2.41", bad=True, cause="killed: server down", tls=False
        ),
        'web~ apps/app-1 0/0/0/1/1 200 116 - - ---- 4/2/1/1/0 0/0 {host|"x"} "GET /ok HTTP/1.1" 0/0/0/0/0 a.example/TLSv1.3/X': Request(
            AT, 0.001, 200, router="apps", client="192.0.2.41", tls=True
        ),
    }
    for line, expected in lines.items():
        assert parse(dress + LEAD + line) == expected
        assert HaProxy().likes((dress + LEAD + line).encode())


@pytest.mark.parametrize(
    ("letters", "bad", "status", "cause"),
    [
        ("--", False, 0, ""),
        ("D-", True, 0, "killed: server down"),
        ("DD", True, 0, "killed: server down"),
        ("K-", True, 0, "killed: by an administrator"),
        ("U-", True, 0, "killed: an active server came up"),
        ("SC", True, 0, "no connection"),
        ("SD", True, 0, "cut by the server"),
        ("sC", True, 0, "timed out"),
        ("cD", False, 0, "idle for too long"),
        ("sD", False, 0, "idle for too long"),
        ("CD", False, 0, ""),
        ("CC", None, 499, "the client left"),
        ("PR", False, 0, ""),
        ("RC", True, 0, "the proxy had no resources left"),
    ],
)
def test_how_a_tcp_session_ended(letters: str, bad: bool | None, status: int, cause: str) -> None:
    found = tcp(letters)
    assert (found.bad, found.status, found.cause) == (bad, status, cause)


@pytest.mark.parametrize(
    ("status", "letters", "server", "expected"),
    [
        (502, "DH--", "apps/app-1", (True, 502, "killed: server down")),
        (200, "DD--", "apps/app-1", (True, 200, "killed: server down")),
        (200, "SD--", "apps/app-1", (True, 200, "cut by the server")),
        (503, "SC--", "apps/<NOSRV>", (None, 503, "no endpoint")),
        (503, "SC--", "apps/app-1", (None, 503, "no connection")),
        (503, "sQ--", "apps/<NOSRV>", (None, 503, "no endpoint")),
        (504, "sH--", "apps/app-1", (None, 504, "timed out")),
        (502, "SH--", "apps/app-1", (None, 502, "no connection")),
        (502, "PH--", "apps/app-1", (None, 502, "the proxy")),
        (500, "----", "apps/app-1", (None, 500, "the application")),
        (503, "----", "apps/app-1", (None, 503, "the application")),
        (200, "CD--", "apps/app-1", (None, 200, "")),
        (-1, "CH--", "apps/app-1", (None, 499, "the client left")),
        (-1, "DH--", "apps/app-1", (True, 0, "killed: server down")),
        (400, "PR--", "web/<NOSRV>", (None, 400, "")),
    ],
)
def test_how_a_request_ended(status: int, letters: str, server: str, expected: tuple[bool | None, int, str]) -> None:
    found = http(status, letters, server)
    assert found is not None
    assert (found.bad, found.status, found.cause) == expected


def test_a_connection_that_never_asked_says_nothing() -> None:
    assert http(-1, "CR--", "web/<NOSRV>") is None


def test_numbers_that_are_not_plain() -> None:
    assert tcp("--", took="+1500").took_s == 1.5
    assert tcp("--", took="-1").took_s == 0
    assert tcp("--", retries="+2").masked == 2
    found = http(200, took="+7", retries="1")
    assert found is not None
    assert (found.took_s, found.masked) == (0.007, 1)


def test_an_address_of_ipv6_and_a_day_that_is_none() -> None:
    line = "2001:db8::7:52562 [29/Nov/2026:20:33:29.834] k8s-api cp/cp-1 1/6/13908 113 D- 2/2/1/1/0 0/0"
    found = parse(line)
    assert isinstance(found, Request)
    assert found.client == "2001:db8::7"
    assert parse(line.replace("29/Nov", "31/Nov")) == Skip(kinds.NO_TIME)


def test_local_time_is_read_by_the_zone_of_the_source() -> None:
    def berlin(*civil: float) -> float:
        return utc(*civil) - 3600  # type: ignore[arg-type]

    found = parse(f"Nov 29 20:33:29 lb-1 haproxy[1]: {LEAD}k8s-api cp/cp-1 1/6/1 113 -- 2/2/1/1/0 0/0", Context(local=berlin))
    assert isinstance(found, Request)
    assert found.start == pytest.approx(AT - 3600)


@pytest.mark.parametrize(
    ("text", "kind", "target", "reason"),
    [
        (
            'Server cp/cp-1 is DOWN, reason: Layer7 wrong status, code: 500, info: "Internal Server Error", check duration: 1ms. 1 active and 0 backup',
            Kind.SERVER_DOWN, "cp/cp-1", "Layer7 wrong status 500",
        ),
        ('Server cp/cp-1 is DOWN, reason: Layer4 connection problem, info: "Connection refused", check duration: 0ms. 1 active', Kind.SERVER_DOWN, "cp/cp-1",
         "Layer4 connection problem"),
        ("Backup Server cp/cp-1 is UP, reason: Layer7 check passed, code: 200, check duration: 8ms. 1 active", Kind.SERVER_UP, "cp/cp-1",
         "Layer7 check passed 200"),
        ("Server cp/cp-1 is going DOWN for maintenance. 1 active and 0 backup servers left.", Kind.SERVER_DOWN, "cp/cp-1", "maintenance"),
        ("Server cp/cp-1 is UP/READY (leaving forced maintenance).", Kind.SERVER_UP, "cp/cp-1", "maintenance"),
        ("[ALERT]    (13498) : backend apps has no server available!", Kind.NO_SERVER, "apps", ""),
        ("[WARNING] 332/203343 (13498) : Server cp/cp-1 is DOWN, reason: Layer4 timeout, check duration: 1ms. 1 active", Kind.SERVER_DOWN, "cp/cp-1",
         "Layer4 timeout"),
    ],
)  # fmt: skip
def test_what_is_said_of_servers(text: str, kind: Kind, target: str, reason: str) -> None:
    line = f"Nov 29 20:33:43 lb-1 haproxy[13498]: {text}"
    found = parse(line)
    assert isinstance(found, Mark)
    assert (found.at, found.kind, found.object, found.node, found.stamp_s) == (SECOND, kind, target, "lb-1", 1.0)
    assert found.data.get("reason", "") == reason
    bare = parse(text, Context(envelope_at=SECOND + 0.5, node="lb-2"))
    assert isinstance(bare, Mark)
    assert (bare.at, bare.node, bare.kind) == (SECOND + 0.5, "lb-2", kind)


def test_what_a_container_says_on_both_of_its_streams_is_one_mark() -> None:
    context = Context(envelope_at=SECOND)
    reason = "DOWN, reason: Layer4 timeout, check duration: 1ms. 0 active"
    lines = [
        f"Server apps/a is {reason}",
        f"[WARNING]  (7) : Server apps/a is {reason}",
        "[ALERT]    (7) : backend 'apps' has no server available!",
        "backend apps has no server available!",
        "Server apps/a is UP, reason: Layer4 check passed, check duration: 1ms. 1 active",
        "[WARNING]  (7) : Server apps/a is UP, reason: Layer4 check passed, check duration: 1ms. 1 active",
        f"Server apps/a is {reason}",
    ]
    found = [mark for line in lines if isinstance(mark := parse(line, context), Mark)]
    assert [(mark.kind, mark.object) for mark in found] == [
        (Kind.SERVER_DOWN, "apps/a"), (Kind.NO_SERVER, "apps"), (Kind.SERVER_UP, "apps/a"), (Kind.SERVER_DOWN, "apps/a"),
    ]  # fmt: skip


def test_the_year_of_a_copied_log_is_that_of_its_requests() -> None:
    context = Context(until=utc(2031, 1, 1, 0, 0, 0))
    parse(f"{LEAD}k8s-api cp/cp-1 1/6/1 113 -- 2/2/1/1/0 0/0", context)
    found = parse("Nov 29 20:33:43 lb-1 haproxy[1]: backend apps has no server available!", context)
    assert isinstance(found, Mark)
    assert found.at == SECOND


def test_other_words_of_haproxy_say_nothing_and_other_lines_are_skipped() -> None:
    assert parse("Nov 29 20:33:43 lb-1 haproxy[1]: Proxy web started.") is None
    assert parse("[NOTICE]   (1) : New worker (2) forked") is None
    assert parse("something else") == Skip(kinds.NOT_THIS_FORMAT)


@settings(max_examples=30)
@given(
    st.integers(0, 10**7),
    st.sampled_from(["----", "DH--", "SC--", "sHNN", "CDVN", "PHDN"]),
    st.integers(100, 599),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="/"), min_size=1, max_size=20),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40),
)
def test_what_is_written_is_read_back_whatever_was_asked(took: int, letters: str, status: int, backend: str, asked: str) -> None:
    found = parse(f'{LEAD}web {backend}/s1 0/0/0/1/{took} {status} 116 - - {letters} 4/2/1/1/0 0/0 {{{asked}}} "{asked}"')
    assert isinstance(found, Request)
    assert (found.took_s, found.status, found.router) == (took / 1000, status, backend.removesuffix("~"))
