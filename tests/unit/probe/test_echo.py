"""Echo packets: the checksum is the Internet's, and only the reply to this very request is taken for it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.probe import echo

TOKEN = b"0123456789abcdef01234567"


def reply(data: bytes, *, v6: bool) -> bytes:
    return bytes((echo.REPLY_6 if v6 else echo.REPLY_4,)) + data[1:]


def test_the_checksum_of_the_standards_example() -> None:
    assert echo.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2  # RFC 1071, 3


@given(st.binary(max_size=64))
def test_a_packet_with_its_checksum_sums_to_nothing(token: bytes) -> None:
    assert echo.checksum(echo.request(7, 9, token, v6=False)) == 0


@pytest.mark.parametrize("v6", [False, True])
def test_only_the_reply_to_this_request_counts(v6: bool) -> None:
    sent = echo.request(7, 9, TOKEN, v6=v6)
    answer = reply(sent, v6=v6)
    assert echo.answers(answer, 9, TOKEN, v6=v6, headed=False)
    assert not echo.answers(sent, 9, TOKEN, v6=v6, headed=False), "the request itself, which loopback hands to raw sockets too"
    assert not echo.answers(answer, 10, TOKEN, v6=v6, headed=False)
    assert not echo.answers(answer, 9, TOKEN[::-1], v6=v6, headed=False)
    assert not echo.answers(answer + b"x", 9, TOKEN, v6=v6, headed=False)
    assert not echo.answers(answer[:1] + b"\x03" + answer[2:], 9, TOKEN, v6=v6, headed=False), "a code"


def test_the_header_of_a_raw_socket_is_as_long_as_it_says() -> None:
    answer = reply(echo.request(7, 9, TOKEN, v6=False), v6=False)
    for words in (5, 6, 15):
        assert echo.answers(struct.pack("!B", 0x40 | words) + bytes(words * 4 - 1) + answer, 9, TOKEN, v6=False, headed=True)
    assert not echo.answers(b"\x4f" + bytes(30), 9, TOKEN, v6=False, headed=True), "cut short"


@given(st.binary(max_size=80), st.booleans(), st.booleans())
def test_whatever_arrives_is_no_error(data: bytes, v6: bool, headed: bool) -> None:
    assert not echo.answers(data, 9, TOKEN, v6=v6, headed=headed)
