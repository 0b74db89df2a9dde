"""What a probe of one's own address would not see."""

from __future__ import annotations

import pytest

from edgekeeper.probe.target import parse
from edgekeeper.watch.advice import advice

OWN = ("127.0.0.1", "192.0.2.11", "10.0.0.11", "2001:db8::11")


@pytest.mark.parametrize("url", ["tls://192.0.2.11:443", "tcp://127.0.0.5:80", "https://localhost/", "http://[::1]:8080/", "tcp://[2001:db8::11]:443"])
def test_an_own_address_is_warned_of(url: str) -> None:
    (text,) = advice([parse(url), parse("tls://192.0.2.12:443")], OWN)
    assert url in text
    assert "through lo" in text
    assert "from: peer" in text


def test_a_local_one_is_another_way_than_the_clients() -> None:
    assert "by another way" in advice([parse("tcp://10.0.0.11:443")], OWN)[0]
    assert "by another way" not in advice([parse("tcp://192.0.2.11:443")], OWN)[0]


def test_another_machine_is_fine() -> None:
    assert advice([parse("tls://192.0.2.12:443?sni=git.example"), parse("tcp://10.0.0.12:1")], OWN) == ()


def test_a_name_may_fail_where_the_service_does_not() -> None:
    assert "has a name" in advice([parse("https://git.example/")], OWN)[0]
