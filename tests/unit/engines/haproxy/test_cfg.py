from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.cfg import Source, looks_like, read, readings
from edgekeeper.engines.haproxy.cfg_server import address
from edgekeeper.engines.haproxy.cfg_values import Config, Proxy, parse_time


def config(text: str) -> Config:
    return read([Source("haproxy.cfg", text)])


def backend(text: str) -> Proxy:
    return config(text).backends()[0]


@pytest.mark.parametrize(
    ("text", "host", "ports", "shift", "local"),
    [
        ("192.0.2.1:6443", "192.0.2.1", (6443, 6443), None, False),
        (":443", "", (443, 443), None, False),
        ("*:80-90", "*", (80, 90), None, False),
        ("[2001:db8::1]:53", "2001:db8::1", (53, 53), None, False),
        ("[2001:db8::1]", "2001:db8::1", None, None, False),
        ("cp1.example", "cp1.example", None, None, False),
        ("cp1.example:+1000", "cp1.example", None, 1000, False),
        ("ipv4@127.0.0.1:9999", "127.0.0.1", (9999, 9999), None, True),
        ("[::1]:80", "::1", (80, 80), None, True),
        ("/run/x.sock", "/run/x.sock", None, None, True),
        ("unix@/run/x.sock", "/run/x.sock", None, None, True),
        ("abns@x", "x", None, None, True),
        ("fd@3", "3", None, None, True),
        ("${HOST}:${PORT}", "${HOST}", None, None, False),
        ("${HOST:-x}", "${HOST:-x}", None, None, False),
        (":::6443;", "::", None, None, False),
    ],
)
def test_addresses(text: str, host: str, ports: tuple[int, int] | None, shift: int | None, local: bool) -> None:
    found = address(text)
    assert (found.host, found.ports, found.shift, found.is_local) == (host, ports, shift, local)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2s", 2.0), ("500ms", 0.5), ("500", 0.5), ("1h", 3600.0), ("1d", 86400.0), ("3us", 3e-6), ("${X}", None), ("", None), ("2x", None), ("\u0663s", None)],
)
def test_times(text: str, seconds: float | None) -> None:
    assert parse_time(text) == seconds


def test_every_value_knows_the_line_that_it_came_from() -> None:
    found = backend("defaults\n timeout server 7s\n default-server inter 9s\nbackend b\n default-server fall 4\n server s 192.0.2.1:80 check\n")
    server = found.servers[0]
    assert found.timeouts["server"].place.line == 2
    assert {name: option.place.line for name, option in server.options.items()} == {"inter": 3, "fall": 5, "check": 6}
    assert (server.inter_s, server.fastinter_s, server.fall, server.rise) == (9.0, 9.0, 4, 2)


def test_a_value_is_not_taken_for_an_option() -> None:
    server = backend("backend b\n server s 192.0.2.1:80 cookie check verifyhost backup sni on-marked-down\n").servers[0]
    assert not server.check
    assert not server.flag("backup")
    assert not server.cuts_sessions


def test_unknown_sections_hide_their_lines() -> None:
    found = config("backend b\n server s 192.0.2.1:80\npeers p\n server t 192.0.2.2:80\nresolvers r\n timeout server 1s\n")
    assert [s.name for p in found.proxies for s in p.servers] == ["s"]
    assert not found.backends()[0].timeouts


def test_defaults_carry_over_to_the_next_file() -> None:
    found = read([Source("a.cfg", "defaults\n mode http\n default-server check\n"), Source("b.cfg", "backend b\n server s 192.0.2.1:80\n")])
    assert found.backends()[0].mode == "http"
    server = found.backends()[0].servers[0]
    assert server.check
    assert server.options["check"].place.file == "a.cfg"


def test_a_line_before_any_section_of_a_file_belongs_to_none() -> None:
    found = read([Source("a.cfg", "backend b\n"), Source("b.cfg", "server s 192.0.2.1:80\nbackend c\n")])
    assert [s.name for p in found.proxies for s in p.servers] == []


def test_own_check_rules_stand_in_place_of_inherited_ones() -> None:
    text = "defaults\n option httpchk GET /a\n http-check expect status 200\nbackend b\n http-check send meth HEAD uri /b\n"
    probe = backend(text).probe
    assert (probe.method, probe.uri, [step.action for step in probe.steps]) == ("HEAD", "/b", ["send"])
    assert backend(text.replace(" http-check send meth HEAD uri /b\n", "")).probe.steps[0].action == "expect"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("option httpchk", ("http", "OPTIONS", "/")),
        ("option httpchk /x", ("http", "OPTIONS", "/x")),
        (r"option httpchk GET /x HTTP/1.1\r\nHost:\ a", ("http", "GET", "/x")),
        ("option tcp-check", ("tcp-check", "", "")),
        ("option httpchk GET /x\n option ssl-hello-chk", ("ssl-hello-chk", "", "")),
        ("option redispatch", ("tcp", "", "")),
    ],
)
def test_the_last_check_option_counts(line: str, wanted: tuple[str, str, str]) -> None:
    probe = backend(f"backend b\n {line}\n").probe
    assert (probe.kind, probe.method, probe.uri) == wanted


def test_undecided_conditions_are_read_both_ways_alike_everywhere() -> None:
    text = "backend b\n.if feature(X)\n server a 192.0.2.1:80\n.endif\n.if feature(X)\n server b 192.0.2.1:80\n.else\n server c 192.0.2.1:80\n.endif\n"
    found = readings([Source("f", text)])
    assert sorted([s.name for s in one.backends()[0].servers] for one in found) == [["a", "b"], ["c"]]
    assert found[0].conditions["feature(X)"].line == 2
    assert len(readings([Source("f", text.replace("feature(X)", "1"))])) == 1


def test_many_undecided_conditions_stay_bounded() -> None:
    text = "backend b\n" + "".join(f".if feature(F{n})\n server s{n} 192.0.2.1:80\n.endif\n" for n in range(60))
    assert 2 <= len(readings([Source("f", text)])) <= 32


def test_a_template_of_many_servers_is_not_written_out() -> None:
    server = backend("backend b\n server-template s 1-100000 x.example:80 check\n").servers
    assert len(server) == 1
    assert server[0].count == 100_000


_SAID = """
global defaults frontend backend listen server server-template default-server option no http-check tcp-check stats socket bind timeout mode balance
.if .elif .else .endif from check inter 1-3 2 { } ( ) ! && || $X ${X ${X} "a 'b \\ # 127.0.0.1:80 :::1 @ - setenv admin if TRUE uri send
"""
WORDS = st.sampled_from(_SAID.split())


@settings(max_examples=60)
@given(st.lists(st.lists(WORDS, max_size=6), max_size=12), st.text(max_size=20))
def test_nothing_in_a_file_raises(lines: list[list[str]], junk: str) -> None:
    text = "\n".join([*(" ".join(line) for line in lines), junk, "backend b", f"server {junk} {junk} check"])
    for one in readings([Source("f", text)]):
        for proxy in one.proxies:
            for server in proxy.servers:
                assert server.inter_s > 0
                assert server.fall > 0
    looks_like(text)
