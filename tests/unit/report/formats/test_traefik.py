from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import NAME_MAX, Context
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.formats.traefik import TraefikJson
from edgekeeper.report.kinds import Request, Skip

AT = utc(2026, 9, 7, 4, 55, 12)
FULL: dict[str, Any] = {
    "ClientAddr": "192.0.2.41:40130",
    "ClientHost": "203.0.113.9, 192.0.2.41",
    "DownstreamStatus": 503,
    "Duration": 190342000,
    "OriginStatus": 503,
    "RequestCount": 103110,
    "RequestScheme": "https",
    "RetryAttempts": 0,
    "RouterName": "websecure-git@kubernetes",
    "StartLocal": "2026-09-07T06:55:12.25+02:00",
    "StartUTC": "2026-09-07T04:55:12.25Z",
    "TLSVersion": "1.3",
    "entryPointName": "websecure",
    "level": "info",
    "time": "2026-09-07T06:55:13+02:00",
}


def parse(*drop: str, written: float | None = None, **said: Any) -> Request | Skip:
    line = {key: value for key, value in {**FULL, **said}.items() if key not in drop}
    found = TraefikJson().parse(json.dumps(line).encode(), Context(envelope_at=written))
    assert isinstance(found, Request | Skip)
    return found


def read(*drop: str, written: float | None = None, **said: Any) -> Request:
    found = parse(*drop, written=written, **said)
    assert isinstance(found, Request)
    return found


def test_a_whole_line() -> None:
    expected = Request(AT + 0.25, 0.190342, 503, router="websecure-git@kubernetes", client="192.0.2.41", number=103110, cause="no endpoint", tls=True)
    assert read() == expected


def test_the_begin_is_found_in_what_was_not_dropped() -> None:
    assert read("StartUTC").start == AT + 0.25
    assert read("StartUTC", "StartLocal").start == pytest.approx(AT + 1 - 0.190342)
    assert read("StartUTC", "StartLocal", written=AT + 0.5).start == pytest.approx(AT + 0.5 - 0.190342)
    assert read("StartUTC", "StartLocal", "time", written=AT + 0.5).start == pytest.approx(AT + 0.5 - 0.190342)
    assert parse("StartUTC", "StartLocal", "time") == Skip(kinds.MISSING_FIELD)
    assert parse("StartUTC", "StartLocal", time="soon") == Skip(kinds.NO_TIME)
    assert parse(StartUTC="2026-02-30T00:00:00Z") == Skip(kinds.NO_TIME)


def test_a_duration_that_was_dropped_is_what_the_envelope_says_or_unknown() -> None:
    assert read("Duration", written=AT + 1).took_s == 0.75
    assert read("Duration", written=AT - 1).took_s == 0
    assert parse("Duration") == Skip(kinds.MISSING_FIELD)
    assert parse("Duration", "StartUTC", "StartLocal", written=AT) == Skip(kinds.MISSING_FIELD)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"DownstreamStatus": "503"}, kinds.WRONG_TYPE),
        ({"DownstreamStatus": 99}, kinds.WRONG_TYPE),
        ({"DownstreamStatus": 10**30}, kinds.WRONG_TYPE),
        ({"DownstreamStatus": None}, kinds.MISSING_FIELD),
        ({"Duration": -1}, kinds.WRONG_TYPE),
        ({"Duration": 10**400}, kinds.WRONG_TYPE),
        ({"Duration": 0.5}, kinds.WRONG_TYPE),
        ({"RouterName": ["x"]}, kinds.WRONG_TYPE),
        ({"RetryAttempts": -1}, kinds.WRONG_TYPE),
        ({"StartUTC": 1788756912}, kinds.WRONG_TYPE),
    ],
)
def test_a_wrong_value_costs_the_line_and_is_named(said: dict[str, Any], reason: str) -> None:
    assert parse(**said) == Skip(reason)


def test_who_asked_is_who_connected_and_never_what_a_header_says() -> None:
    assert read(ClientAddr="[2001:db8::7]:443").client == "2001:db8::7"
    assert read(ClientAddr="", ClientHost="192.0.2.9").client == "192.0.2.9"
    assert read("ClientAddr").client == ""
    assert read("ClientAddr", ClientHost="<script>").client == ""
    assert read(ClientAddr="fe80::1%eth0:80").client == "fe80::1"


def test_the_route_of_layers_is_the_last_and_a_long_name_is_cut() -> None:
    assert read(RouterName="edge@file -> app@file").router == "app@file"
    assert read("RouterName").router == ""
    assert read(RouterName="-").router == ""
    assert read(RouterName="x" * 70_000).router == "x" * (NAME_MAX - 3) + "..."
    assert read(RouterName="a\x1b[31m\u202e").router == "a\\x1b[31m\\u202e"
    assert len(read(RouterName="\x1b" * 70_000).router) == NAME_MAX


@pytest.mark.parametrize(
    ("status", "url", "router", "cause"),
    [
        (503, None, "r", "no endpoint"),
        (503, "http://192.0.2.18:3000", "r", "the application"),
        (502, "http://192.0.2.18:3000", "r", "no connection"),
        (502, {"Scheme": "http", "Host": "192.0.2.18:3000", "User": None}, "r", "no connection"),
        (504, "http://192.0.2.18:3000", "r", "timed out"),
        (500, "http://192.0.2.18:3000", "r", "the application"),
        (500, None, "r", "the proxy"),
        (499, "http://192.0.2.18:3000", "r", "the client left"),
        (404, None, "", "no route"),
        (404, "http://192.0.2.18:3000", "r", ""),
        (200, "http://192.0.2.18:3000", "r", ""),
    ],
)
def test_why_a_request_failed(status: int, url: object, router: str, cause: str) -> None:
    assert read(DownstreamStatus=status, ServiceURL=url, RouterName=router).cause == cause


def test_hidden_failures_and_scheme() -> None:
    assert read(DownstreamStatus=200, RetryAttempts=2).masked == 2
    assert read(RequestScheme="http").tls is False
    assert read("RequestScheme").tls is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"level":"error","entryPointName":"websecure","time":"2026-09-07T06:55:13+02:00","message":"service not found"}',
        b"2026-09-07T04:55:13Z ERR error while updating",
        b'time="2026-09-07T04:55:13Z" level=info msg="x"',
        b"{}",
    ],
)
def test_its_own_log_in_the_same_stream_is_no_request_that_was_lost(line: bytes) -> None:
    assert TraefikJson().parse(line, Context()) is None
    assert not TraefikJson().likes(line)


def test_an_object_with_anything_of_a_request_is_one_that_was_lost() -> None:
    for key in ("Duration", "StartUTC", "StartLocal", "RequestCount", "RouterName"):
        assert TraefikJson().parse(json.dumps({key: FULL[key]}).encode(), Context()) == Skip(kinds.MISSING_FIELD)
    assert TraefikJson().parse(b"plain words", Context()) == Skip(kinds.NOT_THIS_FORMAT)


_REQUESTS = st.fixed_dictionaries(
    {
        "StartUTC": st.integers(0, 10**9 - 1).map(lambda nano: f"2026-09-07T04:55:12.{nano:09d}Z"),
        "Duration": st.integers(0, 10**13),
        "DownstreamStatus": st.integers(100, 599),
        "RouterName": st.text(st.characters(codec="utf-8", categories=["L", "N", "P"], exclude_characters=">"), min_size=2, max_size=30),
        "RequestCount": st.none() | st.integers(0, 2**63),
        "RetryAttempts": st.integers(0, 9),
    }
)


@settings(max_examples=30)
@given(_REQUESTS, st.booleans())
def test_what_is_written_is_read_back(said: dict[str, Any], pretty: bool) -> None:
    line = json.dumps({**FULL, **said}, ensure_ascii=pretty, separators=(", ", ": ") if pretty else (",", ":")).encode()
    found = TraefikJson().parse(line, Context())
    assert isinstance(found, Request)
    assert found.start == pytest.approx(AT + float("0." + said["StartUTC"].partition(".")[2][:-1]), abs=1e-6)
    assert (found.took_s, found.status, found.number, found.masked) == (
        said["Duration"] / 1e9, said["DownstreamStatus"], said["RequestCount"], said["RetryAttempts"],
    )  # fmt: skip
    assert found.router == said["RouterName"]
