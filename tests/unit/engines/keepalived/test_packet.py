"""Adverts as real keepalived sent them, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.engines.keepalived import packet
from edgekeeper.engines.keepalived.packet import Advert

V3 = bytes.fromhex("3101fe0100148a1ec0000235")
V3_SIX = bytes.fromhex("3103fe01001446bd20010db8000000000000000000000053")
V2_PASSWORD = bytes.fromhex("2101fe010101b047c00002357365637265743132")
HMAC = bytes.fromhex("010100006b0d1d539bda000051397c8749b31117debe2a5846fcb600")


@pytest.mark.parametrize(
    ("payload", "advert"),
    [
        (V3, Advert(3, 1, 254, 0.2, ("192.0.2.53",))),
        (bytes.fromhex("310100010014881fc0000235"), Advert(3, 1, 0, 0.2, ("192.0.2.53",))),
        (V3_SIX, Advert(3, 3, 254, 0.2, ("2001:db8::53",))),
        (V2_PASSWORD, Advert(2, 1, 254, 1.0, ("192.0.2.53",))),
        (V3 + HMAC, Advert(3, 1, 254, 0.2, ("192.0.2.53",))),
        (V3_SIX + HMAC, Advert(3, 3, 254, 0.2, ("2001:db8::53",))),
    ],
)
def test_what_keepalived_sends_is_understood(payload: bytes, advert: Advert) -> None:
    assert packet.parse(payload) == advert


@pytest.mark.parametrize("payload", [V3, V2_PASSWORD[:12]])
def test_a_torn_advert_is_none(payload: bytes) -> None:
    assert [packet.parse(payload[:length]) for length in range(len(payload))] == [None] * len(payload)


def test_what_is_no_advert_is_none() -> None:
    for at, value in ((0, 0x41), (0, 0x32), (1, 0), (3, 0)):  # version 4, another type, VRID 0, no address
        assert packet.parse(V3[:at] + bytes([value]) + V3[at + 1 :]) is None


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_no_bytes_break_it(noise: bytes, begin_right: bool) -> None:
    advert = packet.parse(V3[:8] + noise if begin_right else noise)
    assert advert is None or 1 <= advert.vrid <= 255


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 255), st.integers(0, 255), st.integers(1, 0xFFF), st.booleans(), st.sampled_from([b"", HMAC]), st.data())
def test_what_was_put_in_comes_out(vrid: int, priority: int, centiseconds: int, six: bool, behind: bytes, data: st.DataObject) -> None:
    addresses = data.draw(st.lists(st.ip_addresses(v=6 if six else 4), min_size=1, max_size=3))
    head = bytes([0x31, vrid, priority, len(addresses)]) + centiseconds.to_bytes(2, "big") + bytes(2)
    advert = packet.parse(head + b"".join(a.packed for a in addresses) + behind)
    assert advert == Advert(3, vrid, priority, centiseconds / 100, tuple(map(str, addresses)))
