from __future__ import annotations

import math

import pytest

from edgekeeper.engines.haproxy.cfg import Source, read
from edgekeeper.engines.haproxy.cfg_health import detection_of, is_elsewhere, speaks_tls, spoken
from edgekeeper.engines.haproxy.cfg_values import Config


def config(lines: str, server: str) -> Config:
    text = "global\n spread-checks 50\n" if "SPREAD" in lines else ""
    return read([Source("f", f"{text}backend b\n{lines.replace('SPREAD', '')}\n server s 192.0.2.1:6443 {server}\n")])


@pytest.mark.parametrize(
    ("lines", "server", "said", "tls"),
    [
        ("", "check", "TCP connection", False),
        ("", "check check-ssl", "TLS handshake", True),
        ("", "check ssl", "TLS handshake", True),
        ("", "check ssl port 80", "TCP connection", False),
        ("", "check ssl addr 192.0.2.9", "TCP connection", False),
        ("", "check ssl no-check-ssl", "TCP connection", False),
        (" option httpchk GET /readyz", "check check-ssl", "GET /readyz over TLS", True),
        (" option httpchk\n http-check connect ssl\n http-check send meth GET uri /x", "check", "GET /x over TLS", True),
        (" option httpchk\n http-check connect", "check check-ssl", "OPTIONS /", False),
        (" option ssl-hello-chk", "check", "TLS hello", False),
        (" option tcp-check", "check", "tcp-check with no expected answer", False),
        (" option tcp-check\n tcp-check expect string x", "check", "tcp-check with an expected answer", False),
        (" option mysql-check user x", "check", "MySQL", False),
        ("", "agent-check", "agent only", False),
        ("", "track c/s", "of c/s", False),
        ("", "", "none", False),
    ],
)
def test_a_check_in_words(lines: str, server: str, said: str, tls: bool) -> None:
    (backend,) = config(lines, server).backends()
    assert spoken(backend, backend.servers[0]) == said
    assert speaks_tls(backend, backend.servers[0]) is tls


@pytest.mark.parametrize(("server", "wanted"), [("check", False), ("check port 6443", False), ("check port 80", True), ("check addr 192.0.2.9", True)])
def test_whether_it_asks_another_place_than_clients_do(server: str, wanted: bool) -> None:
    (backend,) = config("", server).backends()
    assert is_elsewhere(backend, backend.servers[0]) is wanted


@pytest.mark.parametrize(
    ("lines", "server", "wanted"),
    [
        (" option httpchk", "check", (10.0, 12.0, True)),
        (" option httpchk\n timeout check 500ms", "check inter 1s fastinter 500ms fall 2", (1.5, 2.5, True)),
        ("SPREAD option httpchk", "check", (8.0, 15.0, True)),
        (" timeout check 1m\n timeout connect 1s", "check", (7.0, 9.0, False)),  # a machine that is gone: min(timeout connect, inter) to connect
        (" timeout connect 1s", "check", (10.0, 12.0, False)),
        ("", "agent-check", (math.inf, math.inf, None)),
        ("", "", (math.inf, math.inf, False)),
    ],
)
def test_how_long_it_takes(lines: str, server: str, wanted: tuple[float, float, bool | None]) -> None:
    one = config(lines, server)
    found = detection_of(one, one.backends()[0])
    assert found is not None
    assert (found.least_s, found.most_s, found.sees) == wanted
