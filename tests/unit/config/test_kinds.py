from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.config.kinds import check_domain, check_host, check_node, is_address, split_host_port

UNSAFE = re.compile(r"[\s\"'\\;`$(){}<>|&\x00-\x1f\x7f-\U0010ffff]")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("192.0.2.1:53", ("192.0.2.1", 53)), ("[2001:db8::1]:53", ("2001:db8::1", 53)), ("2001:db8::1", ("2001:db8::1", 5353)),
        ("host.example", ("host.example", 5353)), ("[2001:db8::1]", ("2001:db8::1", 5353)),
    ],
)  # fmt: skip
def test_host_and_port_are_split(text: str, parts: tuple[str, int]) -> None:
    assert split_host_port(text, 5353) == parts


@pytest.mark.parametrize("text", ["[2001:db8::1", "[2001:db8::1]x", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:٣", "192.0.2.1:+1", "192.0.2.1: 1"])
def test_what_is_no_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        split_host_port(text, 53)


def test_an_interface_after_a_percent_is_a_name_and_nothing_else() -> None:
    assert is_address("fe80::1%eth0")
    for scope in ('a"b', "a b", "a;b", "a\nb", "a'", "x" * 16, ""):
        assert not is_address(f"fe80::1%{scope}"), scope


@given(st.text(st.characters(), max_size=40) | st.text("abc.:%-_0[]\"'\n ;", max_size=20))
def test_whatever_is_accepted_as_host_or_node_needs_no_quoting(text: str) -> None:
    for check in (check_host, check_node):
        try:
            accepted = check(text)
        except ValueError:
            continue
        assert not UNSAFE.search(accepted)


@given(st.text(st.characters(), max_size=40) | st.text("abc.\\\"'\n ;12", max_size=20))
def test_a_domain_never_leaves_its_quotes_and_is_read_back_the_same(text: str) -> None:
    try:
        name = check_domain(text)
    except ValueError:
        return
    assert name.endswith(".")
    assert '"' not in name
    assert "'" not in name
    assert name.isascii()
    assert name.isprintable()
    assert check_domain(name) == name
