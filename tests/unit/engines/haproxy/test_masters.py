from __future__ import annotations

import pytest

from edgekeeper.engines.haproxy.masters import socket_argument


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("haproxy -Ws -f /etc/haproxy/haproxy.cfg -p /run/haproxy.pid -S /run/haproxy-master.sock", "/run/haproxy-master.sock"),
        ("haproxy -sf 12 -x sockpair@3 -W -S /run/m.sock,level,operator,mode,600 -f a", "/run/m.sock"),
        ("haproxy -W -S unix@m.sock -f a", "m.sock"),
        ("haproxy -W -S 127.0.0.1:9000 -f a", "127.0.0.1:9000"),
        ("haproxy -W -S abns@m,level,user -f a", "abns@m"),
        ("haproxy -W -f a", None),
        ("haproxy -W -S", None),
        ("haproxy -W -S -f a", None),
        ("haproxy -W -f a -- -S", None),
    ],
)
def test_the_master_socket_on_a_command_line(words: str, path: str | None) -> None:
    assert socket_argument(words.split()) == path
