from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.admin import _checked
from edgekeeper.engines.haproxy.quote import command_word, seconds, word


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("/run/edgekeeper/lb/admin-1.sock", "/run/edgekeeper/lb/admin-1.sock"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("", '""'),
        ("a b", '"a b"'),
        ('a"b\\c$d', '"a\\"b\\\\c\\$d"'),
        ("#x", '"#x"'),
        ("a'b", '"a\'b"'),
    ],
)
def test_words_of_the_file(text: str, written: str) -> None:
    assert word(text) == written


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_what_no_quoting_carries_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="line end"):
        word(text)


@given(st.text(max_size=30))
def test_a_word_of_a_command_is_one_or_none(text: str) -> None:
    try:
        written = command_word(text)
    except ValueError:
        return
    assert written == text != ""
    assert _checked(f"set server {written} weight 1")
    assert not set(text) & set(" \t;\\\"'<\n\r\0$#|")


@pytest.mark.parametrize(
    ("value", "written"),
    [(0, "1ms"), (0.0001, "1ms"), (0.75, "750ms"), (1, "1s"), (1.5, "1500ms"), (60, "1m"), (90, "90s"), (3600, "1h"), (129600, "36h"), (5400, "90m")],
)
def test_durations(value: float, written: str) -> None:
    assert seconds(value) == written


@given(st.integers(1, 10**9))
def test_a_duration_is_the_same_when_it_is_read_again(ms: int) -> None:
    written = seconds(ms / 1000)
    number = int("".join(char for char in written if char.isdigit()))
    assert number * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}[written.lstrip("0123456789")] == ms
