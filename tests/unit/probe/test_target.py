"""Targets: every form is read, and every wrong form is told how to be written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.errors import UsageError
from edgekeeper.probe.target import Target, parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("dns://192.0.2.53/health.example", ("dns", "192.0.2.53", 53, "udp", "health.example.", "A")),
        ("dns://192.0.2.53:5353/Health.Example.?type=txt", ("dns", "192.0.2.53", 5353, "udp", "health.example.", "TXT")),
        ("dns://[2001:db8::1]/x.example?transport=tcp", ("dns", "2001:db8::1", 53, "tcp", "x.example.", "A")),
        ("dns://ns.example/x.example?transport=tls&type=AAAA", ("dns", "ns.example", 853, "tls", "x.example.", "AAAA")),
        ("tcp://192.0.2.60:6443", ("tcp", "192.0.2.60", 6443, "tcp", "", "A")),
        ("tls://edge.example:443", ("tcp", "edge.example", 443, "tls", "", "A")),
        ("http://edge.example", ("http", "edge.example", 80, "tcp", "/", "A")),
        ("icmp://[2001:db8::1]", ("icmp", "2001:db8::1", 0, "icmp", "", "A")),
        ("https://edge.example:8443/ping?deep=1", ("http", "edge.example", 8443, "tls", "/ping?deep=1", "A")),
    ],
)
def test_forms(url: str, expected: tuple[str, str, int, str, str, str]) -> None:
    t = parse(url)
    assert (t.kind, t.host, t.port, t.transport, t.path, t.qtype) == expected
    assert t.url == url


def test_options() -> None:
    assert parse("tls://192.0.2.60:6443?sni=api.example&verify=no") == Target(
        "tls://192.0.2.60:6443?sni=api.example&verify=no", "tcp", "192.0.2.60", 6443, "tls", sni="api.example", verify=False
    )
    assert parse("https://edge.example/#ok=401,403").ok == (401, 403)
    assert parse("https://edge.example/").sni == "edge.example"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://edge.example", "edge.example"),
        ("https://edge.example", "edge.example"),
        ("https://edge.example:80", "edge.example:80"),
        ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080"),
    ],
)
def test_the_host_header(url: str, host: str) -> None:
    assert parse(url).authority == host


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "neither an address nor a host name"),
        ("192.0.2.53", "neither an address nor a host name"),
        ("dns://192.0.2.53", "the name to ask for is missing"),
        ("dns://192.0.2.53/", "the name to ask for is missing"),
        ("dns://192.0.2.53/a..b", "is not a domain name"),
        ("dns://192.0.2.53/x.example?type=AXFR", "the type AXFR cannot be asked for"),
        ("dns://192.0.2.53/x.example?type=NOPE", "the type NOPE cannot be asked for"),
        ("dns://192.0.2.53/x.example?transport=quic", "none of udp, tcp, tls"),
        ("dns://192.0.2.53/x.example?tpye=A", "the option 'tpye' is unknown; it takes type, transport, sni, verify"),
        ("tcp://192.0.2.60", "the port is missing"),
        ("tcp://192.0.2.60:1/x", "takes no path"),
        ("tcp://192.0.2.60:1?sni=x", "the option 'sni' is unknown"),
        ("tcp://192.0.2.60:99999", "Port out of range"),
        ("tcp://192.0.2.60:x", "could not be cast"),
        ("tls://192.0.2.60:1?verify=maybe", "verify is yes or no"),
        ("tls://192.0.2.60:1?sni=a%20b", "neither an address nor a host name"),
        ("https://user:pw@edge.example/", "a user name or password has no place"),
        ("https://edge.example/ü", "must be percent-encoded"),
        ("https://edge.example/#ok=abc", "not a list of HTTP status codes"),
        ("http://edge.example/a b", "spaces"),
        ("http://edge.example/\r\nX: y", "spaces"),
        ("http://edge.example/\r\nX:y", "spaces"),
        ("http://edge.example/\x1b[2J", "cannot be seen"),
        ("icmp://192.0.2.1:7", "takes a host and nothing else"),
        ("icmp://192.0.2.1/x", "takes a host and nothing else"),
        ("icmp://192.0.2.1?ttl=3", "the option 'ttl' is unknown"),
        ("gopher://192.0.2.1", "the scheme 'gopher' is unknown"),
    ],
)
def test_wrong_forms_say_why_and_how(url: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(url)
    assert why in str(caught.value)
    assert "write dns://" in str(caught.value)
    assert str(caught.value).isprintable()


@given(
    st.one_of(st.text(max_size=60), st.text(max_size=40).map(lambda t: "https://edge.example/" + t), st.text(max_size=40).map(lambda t: "dns://192.0.2.1/" + t))
)
def test_nothing_slips_a_line_into_a_request(url: str) -> None:
    refusal = ""
    try:
        target = parse(url)
    except UsageError as err:
        refusal = str(err)
    assert refusal.isprintable()
    if refusal:
        return
    assert target.path.isascii()
    assert not any(c in target.path + target.authority + target.sni for c in "\r\n \t\0")
