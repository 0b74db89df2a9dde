"""Which answers are to our question, and what they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.model.selfname import SELF_NAME, SELF_TYPE
from edgekeeper.probe import packet as other
from edgekeeper.vip.question import packet, rcode, said, section

ASKED = section("health.example.", "A")
HEAD = b"\x12\x34"


def answer(code, asked=ASKED, ident=HEAD, count=b"\0\1"):
    return ident + b"\x81" + bytes([0x80 | code]) + count + b"\0\0\0\0\0\0" + asked


@pytest.mark.parametrize(("name", "qtype"), [("health.example.", "A"), ("Example", "SOA"), (".", "NS"), (SELF_NAME, SELF_TYPE)])
def test_a_question_is_what_the_other_packet_module_writes(name, qtype):
    assert packet(0x1234, section(name, qtype)) == other.question(0x1234, name.lower(), qtype)


@pytest.mark.parametrize(("name", "qtype"), [("a..b.", "A"), ("a" * 64, "A"), ("x." * 130, "A"), ("ü.example.", "A"), ("a.", "MX")])
def test_what_is_no_question_is_refused(name, qtype):
    with pytest.raises(ValueError, match="is"):
        section(name, qtype)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (answer(0), 0),
        (answer(3), 3),
        (answer(2, ASKED.upper()), 2),
        (answer(5, b"", count=b"\0\0"), 5),
        (answer(0, b"", count=b"\0\0"), None),  # a good answer repeats its question
        (answer(0, section("other.example.", "A")), None),
        (answer(0, section("health.example.", "AAAA")), None),
        (answer(0, ident=b"\x12\x35"), None),
        (packet(0x1234, ASKED), None),  # a question
        (answer(0)[:11], None),
        (b"", None),
    ],
)
def test_only_an_answer_to_this_very_question_counts(raw, expected):
    assert rcode(raw, 0x1234, ASKED) == expected


@given(st.binary(max_size=60))
def test_nothing_that_comes_raises(raw):
    assert rcode(raw, 0x1234, ASKED) in (None, *range(16))


def test_codes_have_names():
    assert (said(2), said(11)) == ("SERVFAIL", "RCODE11")
