from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.expose.annotations import KNOWN, STATUS, duration_ms, go_duration, read
from edgekeeper.expose.kinds import Claim, Options, Origin

ORIGIN = Origin("Ingress", "shop", "web", "u", 1.0)


def of(**said: str):
    return read(Claim(ORIGIN, ("www.example",), "", {f"p.example/{key.replace('_', '-')}": value for key, value in said.items()}), "p.example")


def test_whoever_says_nothing_asks_for_nothing():
    assert of() == read(Claim(ORIGIN, (), "", {"other.example/listen-port": "0"}), "p.example")
    assert (of().options, of().enabled, of().remarks) == (Options(), True, ())


def test_everything_that_can_be_said_is_read_into_its_one_form():
    said = of(
        enabled=" True ", listen_port="8443", proxy_protocol="false", request_timeout="90s", idle_timeout="1h",
        allow_cidrs="192.0.2.7, 2001:DB8::/32,198.51.100.0/24,192.0.2.7/32", block_cidrs="none",
        allow_countries="de, AT", block_countries="FR",
        delete_policy="keep", adopt="true", force_delete="true",
    )  # fmt: skip
    assert not said.remarks
    assert said.enabled
    assert said.options == Options(
        8443, False, "1m30s", "1h0m0s", ("192.0.2.7/32", "198.51.100.0/24", "2001:db8::/32"), (), ("AT", "DE"), ("FR",), "keep", adopt=True, force=True
    )


@pytest.mark.parametrize(
    ("key", "value", "field", "instead"),
    [
        ("listen_port", "0", "listen_port", None),
        ("listen_port", "65979", "listen_port", None),
        ("listen_port", "٤٤٣", "listen_port", None),
        ("proxy_protocol", "on", "proxy_protocol", None),
        ("request_timeout", "30", "request_timeout", None),
        ("request_timeout", "61m", "request_timeout", None),
        ("idle_timeout", "0s", "idle_timeout", None),
        ("idle_timeout", "-5s", "idle_timeout", None),
        ("delete_policy", "retain", "delete", "keep"),  # what was meant is not known, but a deletion cannot be undone
        ("adopt", "yes", "adopt", False),
        ("force_delete", "1", "force", False),
    ],
)
def test_a_bad_value_costs_its_own_key_only(key, value, field, instead):
    said = of(**{key: value, "allow_countries": "DE"})
    assert getattr(said.options, field) == instead
    assert said.options.allowed_countries == ("DE",)
    assert said.options.hold is None
    assert [(remark.reason, remark.origin) for remark in said.remarks] == [("BadAnnotation", ORIGIN)]
    assert f"p.example/{key.replace('_', '-')}" in said.remarks[0].text


@pytest.mark.parametrize("value", ["", " , ", "10.0.0.1/8", "everybody", "192.0.2.0/255.255.255.0", "fe80::1%eth0", "::ffff:192.0.2.0/120", "0.0.0.0/33"])
@pytest.mark.parametrize("key", ["allow_cidrs", "block_cidrs"])
def test_a_restriction_that_cannot_be_read_never_becomes_none(key, value):
    said = of(**{key: value})
    assert said.options.hold is not None
    assert key.replace("_", "-") in said.options.hold
    assert [remark.reason for remark in said.remarks] == ["BadAnnotation"]
    assert "held" in said.remarks[0].text


def test_what_is_left_of_an_allow_list_is_narrower_but_of_a_block_list_wider():
    allow, block = of(allow_countries="DE, UK"), of(block_countries="DE, UK")
    assert (allow.options.allowed_countries, allow.options.hold) == (("DE",), None)
    assert "GB, not UK" in allow.remarks[0].text
    assert block.options.hold is not None


def test_lists_longer_than_the_api_takes_are_held():
    most = ",".join(f"192.0.{n // 256}.{n % 256}" for n in range(200))
    assert of(allow_cidrs=most).options.hold is None
    assert of(allow_cidrs=f"{most},198.51.100.1").options.hold is not None
    assert of(block_cidrs=f"{most},198.51.100.1").options.hold is not None


def test_whether_it_is_to_be_published_is_not_guessed():
    assert not of(enabled="false").enabled
    said = of(enabled="nope")
    assert said.options.hold is not None
    assert "neither true nor false" in said.options.hold


def test_an_unknown_key_is_told_with_the_nearest_known_one_and_our_own_is_none():
    said = of(**{"listen-prot": "443", STATUS: "{}"})
    assert [(remark.reason, "did you mean listen-port?" in remark.text) for remark in said.remarks] == [("UnknownAnnotation", True)]


@settings(max_examples=12)
@given(st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=20), st.text(max_size=80), max_size=4))
def test_no_text_injects_anything(said):
    found = read(Claim(ORIGIN, (), "", {f"p.example/{key}": value for key, value in said.items()}), "p.example")
    assert all(remark.text.isprintable() and len(remark.text) < 1000 for remark in found.remarks)
    lists = (found.options.allowed_cidrs, found.options.blocked_cidrs, found.options.allowed_countries, found.options.blocked_countries)
    for item in (item for items in lists for item in items or ()):
        assert set(item) <= set("0123456789abcdef:./ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for text in (found.options.request_timeout, found.options.idle_timeout):
        assert text is None or go_duration(duration_ms(text)) == text
    assert found.options.listen_port is None or 1 <= found.options.listen_port <= 65535


@settings(max_examples=12)
@given(st.integers(0, 3_600_000))
def test_a_duration_is_written_as_go_writes_it_and_read_back(milli):
    assert duration_ms(go_duration(milli)) == milli


def test_a_duration_in_the_words_of_go():
    assert [go_duration(milli) for milli in (0, 250, 1500, 30_000, 90_000, 3_600_000, 3_661_001)] == [
        "0s",
        "250ms",
        "1.5s",
        "30s",
        "1m30s",
        "1h0m0s",
        "1h1m1.001s",
    ]
