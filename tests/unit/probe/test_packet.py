"""DNS packets: what is built is read back, and no bytes crash the reader."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.probe import packet

HEADER = b"\x12\x34\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00"


def test_a_question_reads_back() -> None:
    asked = packet.question(7, "Health.Example.", "TXT")
    assert packet.question_of(asked) == b"\x06Health\x07Example\x00\x00\x10\x00\x01"
    assert packet.decode_name(asked, 12) == "health.example."
    assert asked[2] == 1, "recursion desired"


def test_the_root_and_a_class() -> None:
    assert packet.question_of(packet.question(1, ".", "NS")) == b"\0\0\2\0\1"
    assert packet.question_of(packet.question(1, "id.server.", "TXT", "CH"))[-1] == 3


@pytest.mark.parametrize("name", ["a..b", "a" * 64 + ".example", ".".join(["a" * 60] * 5)])
def test_names_that_do_not_fit(name: str) -> None:
    with pytest.raises(ValueError, match="is not a domain name"):
        packet.encode_name(name)


def test_an_answer_with_address_text_and_serial() -> None:
    asked = b"\x01a\x00\x00\x01\x00\x01"
    a = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x15"
    assert packet.parse(HEADER + asked + a) == packet.Reply(0x1234, 0, truncated=False, question=asked, addresses=("192.0.2.21",))
    txt = b"\xc0\x0c\x00\x10\x00\x01\x00\x00\x00\x3c\x00\x06\x02ns\x02-a"
    assert packet.parse(HEADER + asked + txt).texts == ("ns-a",)
    soa = b"\xc0\x0c\x00\x06\x00\x01\x00\x00\x00\x3c\x00\x16\x00\x00" + b"\x00\x00\x00\x09" + bytes(16)
    assert packet.parse(HEADER + asked + soa).serial == 9


def test_codes_have_names() -> None:
    refused = packet.parse(HEADER[:3] + b"\x85" + HEADER[4:6] + b"\0\0" + HEADER[8:] + b"\0\0\1\0\1")
    assert refused.rcode_name == "REFUSED"
    assert packet.Reply(1, 9, truncated=False, question=b"").rcode_name == "RCODE9"


def test_a_truncated_answer_says_so() -> None:
    found = packet.parse(HEADER[:2] + b"\x87" + HEADER[3:] + b"\0\0\1\0\1")
    assert found.truncated
    assert found.addresses == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 12,
        HEADER + b"\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01",
        HEADER + b"\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0",
        HEADER + b"\x3fa",
    ],
)
def test_broken_answers_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        packet.parse(data)


def test_a_name_that_points_at_itself_ends() -> None:
    with pytest.raises(ValueError, match="does not end"):
        packet.decode_name(HEADER + b"\xc0\x0c", 12)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    for read in (packet.parse, packet.question_of):
        with contextlib.suppress(ValueError):
            read(data)


@given(st.integers(0, 65535), st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=20), min_size=1, max_size=6))
def test_any_name_reads_back(ident: int, labels: list[str]) -> None:
    name = ".".join(labels) + "."
    asked = packet.question(ident, name)
    assert packet.decode_name(asked, packet.HEADER.size) == name
    assert int.from_bytes(asked[:2], "big") == ident
