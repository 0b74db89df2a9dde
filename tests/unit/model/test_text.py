from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.model.text import printable


def test_a_terminal_escape_is_written_out() -> None:
    assert printable("red \x1b[31m\nnext\x07") == "red \\x1b[31m\\nnext\\x07"


def test_what_hides_or_turns_words_is_written_out() -> None:
    assert printable("a\u202eb\u200bc\u2028d\x9be") == "a\\u202eb\\u200bc\\u2028d\\x9be"


def test_plain_text_and_backslashes_stay() -> None:
    assert printable("zażółć \\n 東京") == "zażółć \\n 東京"


def test_a_limit_cuts_with_dots() -> None:
    assert printable("x" * 20, 10) == "xxxxxxx..."


@given(st.text(st.characters()))
def test_anything_becomes_one_printable_line_and_twice_is_once(text: str) -> None:
    once = printable(text)
    assert once.isprintable()
    assert printable(once) == once
