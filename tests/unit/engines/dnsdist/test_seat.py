"""Credentials and ports of one process."""

from __future__ import annotations

import base64

import pytest

from edgekeeper.engines.dnsdist.seat import console_key_bytes, make, scrypt

SEAT = make((1, 2, 3), bytes(range(128)))


def test_every_secret_has_256_bits_of_its_own():
    assert console_key_bytes(SEAT.console_key) == bytes(range(32))
    assert SEAT.api_key == bytes(range(32, 64)).hex()
    assert SEAT.password == bytes(range(64, 96)).hex()
    assert len({SEAT.api_salt, SEAT.password_salt, *SEAT.secrets}) == 5


def test_a_seat_does_not_show_its_secrets():
    shown = repr(SEAT)
    assert shown == "Seat(console_port=1, api_port=2, private_port=3)"
    assert not any(secret in shown for secret in SEAT.secrets)


def test_the_hash_is_the_same_for_the_same_salt_and_another_for_another():
    one = scrypt("secret", SEAT.api_salt)
    assert one == scrypt("secret", SEAT.api_salt)
    assert one != scrypt("secret", SEAT.password_salt)
    kind, cost, salt, digest = one.strip("$").split("$")
    assert (kind, cost, salt) == ("scrypt", "ln=10,p=1,r=8", SEAT.api_salt)
    assert len(base64.b64decode(digest)) == 32


@pytest.mark.parametrize("key", ["", "AAAA", "not base64!", SEAT.console_key + "!", base64.b64encode(bytes(31)).decode(), base64.b64encode(bytes(33)).decode()])
def test_a_console_key_of_another_length_is_none(key):
    assert console_key_bytes(key) is None


def test_too_little_noise_is_a_bug():
    with pytest.raises(ValueError, match="128 random bytes, not 3"):
        make((1, 2, 3), b"abc")
