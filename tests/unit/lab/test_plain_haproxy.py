"""The baseline's haproxy.cfg."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgekeeper.lab.plain_haproxy import Plain, Service, config

API = Service("api", "198.51.100.1:6443", (("cp1", "192.0.2.21:6443"), ("cp2", "192.0.2.22:6443")))
PLAIN = Plain((API,), "/run/x/admin.sock")


def test_what_a_user_would_write() -> None:
    text = config(PLAIN)
    assert "    option httpchk GET /readyz\n" in text
    assert "    default-server check inter 2s fall 3 check-ssl verify none\n    server cp1 192.0.2.21:6443\n" in text
    assert "on-marked-down" not in text
    assert "    timeout client 1h\n" in text


def test_the_one_line() -> None:
    assert config(replace(PLAIN, directive=True)).count("on-marked-down shutdown-sessions") == 1


def test_a_check_that_only_connects() -> None:
    text = config(replace(PLAIN, services=(replace(API, check="tcp"),)))
    assert "httpchk" not in text
    assert "default-server check inter 2s fall 3\n" in text


@pytest.mark.parametrize("name", ["", "a b", "a\nglobal", "a#b"])
def test_names_cannot_leave_their_word(name: str) -> None:
    with pytest.raises(ValueError, match="is no word"):
        config(replace(PLAIN, services=(replace(API, servers=((name, "192.0.2.21:6443"),)),)))
