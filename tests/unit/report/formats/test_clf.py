from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.report import kinds
from edgekeeper.report.formats.base import Context
from edgekeeper.report.formats.clf import Combined, IngressNginx, TraefikClf
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Request, Skip

AT = utc(2026, 9, 7, 4, 55, 12)
START = '192.0.2.41 - - [07/Sep/2026:04:55:12 +0000] "GET /a?b=c HTTP/2.0" '
TAIL = ' 103110 "websecure-git@kubernetes" "http://198.51.100.18:3000" 1ms'
UPSTREAM = '192.0.2.41 - - [07/Sep/2026:06:55:12 +0200] "GET / HTTP/1.1" {} 473 "-" "curl/8 \\x22quoted\\x22" 83 0.250 [git-http-3000] [] '


def traefik(text: str) -> object:
    return TraefikClf().parse(text.encode(), Context())


def ingress(text: str) -> Request:
    found = IngressNginx().parse(text.encode(), Context())
    assert isinstance(found, Request)
    return found


def test_a_line_of_traefik() -> None:
    expected = Request(AT, 0.001, 502, router="websecure-git@kubernetes", client="192.0.2.41", number=103110, cause="no connection")
    assert traefik(START + '502 2099 "-" "git/2.47.0"' + TAIL) == expected
    assert traefik(START + r'502 2099 "-" "with \"escaped\" quotes"' + TAIL) == expected


def test_no_server_no_route_and_no_size() -> None:
    assert traefik(START + '503 - "-" "-" 7 "web@file" "-" 3004ms') == Request(
        AT, 3.004, 503, router="web@file", client="192.0.2.41", number=7, cause="no endpoint"
    )
    assert traefik(START + '404 19 "-" "-" 7 "-" "-" 0ms') == Request(AT, 0, 404, client="192.0.2.41", number=7, cause="no route")


def test_the_status_of_the_server_is_not_that_of_the_answer() -> None:
    line = (START + '- - "-" "-" 103110 "git@docker" "-" 0ms').encode()
    assert TraefikClf().parse(line, Context()) == Skip(kinds.ORIGIN_STATUS)
    assert TraefikClf().likes(line)
    assert not Combined().likes(line)


def test_forwarded_hosts_and_users() -> None:
    found = traefik('203.0.113.9, 192.0.2.41 - jo hn [07/Sep/2026:04:55:12 +0000] "GET / HTTP/1.1" 200 1 "-" "-" 7 "r" "-" 0ms')
    assert isinstance(found, Request)
    assert found.client == ""  # a list out of a header is nobody's address
    found = traefik('2001:db8::7 - - [07/Sep/2026:04:55:12 +0000] "GET / HTTP/1.1" 200 1 "-" "-" 7 "r" "-" 0ms')
    assert isinstance(found, Request)
    assert found.client == "2001:db8::7"


@settings(max_examples=60)
@given(
    st.text(st.sampled_from('ab "\\[]0123456789ms-HTP/.:'), max_size=40),
    st.text(st.sampled_from('ab "\\[]0123456789ms-HTP/.:'), max_size=40),
    st.sampled_from(["", '" 5 "forged@file" "-" 0ms', '" 200 1 "-" "x" 5 "forged" "-" 9ms', 'HTTP/1.1" 200 5 "-" "-']),
)
def test_no_client_can_change_router_or_status_by_what_it_calls_itself(referer: str, agent: str, forged: str) -> None:
    """Before v3.6.18 neither is escaped."""
    found = traefik(START + f'503 20 "{referer}{forged}" "{agent}{forged}"' + TAIL)
    assert isinstance(found, Request)
    assert (found.status, found.router, found.number, found.took_s) == (503, "websecure-git@kubernetes", 103110, 0.001)


@pytest.mark.parametrize(
    "line",
    [
        START + '502 2099 "-" "-"',  # no tail
        START + '502 2099 "-" "-" 1 "r" "u" ms',
        START + '502 2099 "-" "-" x "r" "u" 1ms',
        "192.0.2.41 - - [07/Sep/2026:04:55:12 +0000] GET",
        "",
    ],
)
def test_what_is_not_traefiks(line: str) -> None:
    assert traefik(line) == Skip(kinds.NOT_THIS_FORMAT)


@pytest.mark.parametrize(
    "line",
    [
        b"2026/11/30 17:41:33 [error] 7#7: *1 connect() failed (111: Connection refused) while connecting to upstream",
        b'I1130 17:41:33.123456       7 controller.go:190] "Configuration changes detected"',
        b"2026-11-30T17:41:33Z WRN something",
    ],
)
def test_the_proxys_own_log_in_the_same_stream_says_nothing(line: bytes) -> None:
    for one in (TraefikClf(), Combined(), IngressNginx()):
        assert one.parse(line, Context()) is None
        assert isinstance(one.parse(line[5:], Context()), Skip)


def test_a_day_that_is_none() -> None:
    for one, tail in ((TraefikClf(), TAIL), (Combined(), ""), (IngressNginx(), " 83 0.250 [git-http-3000] [] 198.51.100.7:1 4 0.1 200 id")):
        line = '192.0.2.41 - - [31/Feb/2026:04:55:12 +0000] "GET / HTTP/1.1" 200 1 "-" "-"' + tail
        assert one.parse(line.encode(), Context()) == Skip(kinds.NO_TIME)


@pytest.mark.parametrize("rest", ["", ' "-" "curl/8 \\x22quoted\\x22"', ' "-" "curl" "192.0.2.7"', ' "-" "curl" 0.004 -'])
def test_lines_without_a_route(rest: str) -> None:
    line = (START + "499 473" + rest).encode()
    assert Combined().likes(line)
    assert not TraefikClf().likes(line)
    assert not IngressNginx().likes(line)
    assert Combined().parse(line, Context()) == Request(AT, 0, 499, client="192.0.2.41", cause="the client left")


def test_garbage_that_nginx_could_not_read_is_a_request_too() -> None:
    line = rb'192.0.2.41 - - [07/Sep/2026:04:55:12 +0000] "\x16\x03\x01" 400 157 "-" "-"'
    assert Combined().parse(line, Context()) == Request(AT, 0, 400, client="192.0.2.41")
    assert Combined().parse(line.replace(rb"\x16\x03\x01", b""), Context()) == Request(AT, 0, 400, client="192.0.2.41")


def test_an_ingress_line_is_dated_by_its_end() -> None:
    found = ingress(UPSTREAM.format(200) + "198.51.100.7:18101 473 0.005 200 e32dbc05")
    assert found == Request(AT - 0.25, 0.25, 200, router="git-http-3000", client="192.0.2.41")


@pytest.mark.parametrize(
    ("upstream", "masked"),
    [
        ("198.51.100.7:1, 198.51.100.7:2 0, 473 0.000, 0.004 502, 200", 1),
        ("198.51.100.7:1, 198.51.100.7:2, 198.51.100.7:3 0, 0, 473 -, -, 0.004 -, 504, 200", 2),
        ("198.51.100.7:1 : 198.51.100.7:2 0 : 473 0.000 : 0.004 503 : 200", 1),
        ("[2001:db8::7]:1, 198.51.100.7:2 0, 473 0.000, 0.004 404, 200", 0),
    ],
)
def test_failures_that_a_retry_hid_are_counted(upstream: str, masked: int) -> None:
    assert ingress(UPSTREAM.format(200) + upstream + " id").masked == masked


@pytest.mark.parametrize(
    ("status", "upstream", "cause"),
    [
        (503, "- - - -", "no endpoint"),
        (502, "198.51.100.7:1, 198.51.100.7:2 0, 0 0.000, 0.000 502, 502", "no connection"),
        (504, "198.51.100.7:1 0 5.001 504", "timed out"),
        (503, "198.51.100.7:1 20 0.001 503", "the application"),
        (500, "- - - -", "the proxy"),
        (499, "198.51.100.7:1 0 5.001 -", "the client left"),
    ],
)
def test_why_nginx_failed(status: int, upstream: str, cause: str) -> None:
    assert ingress(UPSTREAM.format(status) + upstream + " id").cause == cause


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(100, 599), st.from_regex(r"[a-z0-9]{1,10}(-[a-z0-9]{1,10}){1,3}", fullmatch=True), st.integers(0, 4))
def test_what_nginx_writes_is_read_back(took_ms: int, status: int, service: str, retries: int) -> None:
    upstream = [", ".join([word] * retries + [last]) for word, last in (("[2001:db8::1]:80", "x:80"), ("0", "9"), ("-", "0.001"), ("502", str(status)))]
    line = f'192.0.2.41 - - [07/Sep/2026:04:55:12 +0000] "GET / HTTP/1.1" {status} 1 "-" "-" 9 {took_ms / 1000:.3f} [{service}] [] {" ".join(upstream)} id'
    found = ingress(line)
    assert (found.status, found.router, found.masked) == (status, service, retries)
    assert found.start + found.took_s == pytest.approx(AT)
    assert found.took_s == pytest.approx(took_ms / 1000)
