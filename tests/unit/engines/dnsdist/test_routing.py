"""Rules: their order, their ids, and which of nested zones wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.config.root import Root
from edgekeeper.engines.dnsdist.names import identify
from edgekeeper.engines.dnsdist.routing import rules, secret, under
from edgekeeper.errors import UsageError

SECRET = "0123456789abcdef0123456789abcdef"


def dns(**said):
    return Root.model_validate({"dns": {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}, **said}}).dns


def test_the_order_and_the_ids_are_fixed():
    found = rules(dns(transfer_sources=["192.0.2.1/32"]), ("example.",), ("lan.",), SECRET, retry=True)
    assert [(rule.name, rule.kind, rule.pool) for rule in found] == [
        ("alive", "alive", ""),
        ("restartable", "restartable", ""),
        ("refuse-transfers", "refuse", ""),
        ("proxy-secret", "secret", ""),
        ("forward-lan.", "suffix", "forward-lan."),
        ("authoritative", "suffix", "authoritative"),
        ("resolver", "default", "resolver"),
    ]
    assert [rule.id for rule in found] == [identify(f"rule {rule.name}") for rule in found]
    assert found[2].sources == ("192.0.2.1/32",)
    assert SECRET not in repr(found)


def test_what_is_not_wanted_has_no_rule():
    assert [rule.name for rule in rules(dns(), (), (), "", retry=False)] == ["alive", "refuse-transfers", "resolver"]


def test_a_zone_that_is_also_forwarded_is_refused():
    with pytest.raises(UsageError, match=r"example\. is both a zone of the members and forwarded; keep one"):
        rules(dns(), ("example.",), ("example.",), "", retry=False)


names = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(lambda labels: ".".join(labels) + ".")


def route(found, name):
    """Where these rules send a name."""
    for rule in found:
        inside = any(name == zone or under(name, zone) for zone in rule.suffixes)
        if rule.kind == "default" or (rule.kind == "suffix" and inside and not any(name == zone or under(name, zone) for zone in rule.but)):
            return rule.pool
    return None


@given(st.sets(names, max_size=5), st.sets(names, max_size=5), names)
def test_the_deepest_zone_wins(zones, forwards, name):
    zones -= forwards
    found = rules(dns(), tuple(sorted(zones)), tuple(sorted(forwards)), "", retry=False)
    around = [zone for zone in zones | forwards if name == zone or under(name, zone)]
    deepest = max(around, key=len, default=None)
    wanted = "resolver" if deepest is None else "authoritative" if deepest in zones else f"forward-{deepest}"
    assert route(found, name) == wanted


def test_the_root_is_above_everything():
    assert under("example.", ".")
    assert not under("notexample.", "example.")
    assert not under("example.", "example.")
    assert route(rules(dns(), ("example.",), (".",), "", retry=False), "example.") == "authoritative"


WANTED = {"proxy_protocol": {"secret_env": "X"}}


def test_the_secret_is_trimmed_of_its_line_end():
    assert secret(dns(**WANTED), SECRET + "\r\n") == SECRET
    assert secret(dns(proxy_protocol="plain"), SECRET) == ""
    assert secret(dns(), None) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "is empty"),
        ("\n", "is empty"),
        ("a" * 31, "has 31 characters; use at least 32"),
        ("a" * 32 + " ", "has a space, a quote"),
        ("a" * 32 + '"', "has a space, a quote"),
        ("a" * 32 + "'", "has a space, a quote"),
        ("a" * 32 + "\x7f", "not printable ASCII"),
        ("a" * 32 + "ä", "not printable ASCII"),
    ],
)
def test_a_secret_that_could_not_arrive_is_refused_without_showing_it(text, why):
    with pytest.raises(UsageError, match=why) as caught:
        secret(dns(**WANTED), text)
    assert "aaaa" not in str(caught.value)
