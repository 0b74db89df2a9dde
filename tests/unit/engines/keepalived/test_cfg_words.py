from __future__ import annotations

import pytest

from edgekeeper.engines.keepalived.cfg_words import LONGEST, filled, uncommented, words


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("  priority 100 # most", "priority 100"),
        ("priority 100! most", "priority 100"),
        ('script "/x # y ! z" # no', 'script "/x # y ! z"'),
        (r"auth_pass a\#b # c", "auth_pass a#b"),
        (r'script "a \" # b"', r'script "a \" # b"'),
        ("# all", ""),
        ("x\\", "x\\"),
    ],
)
def test_a_comment_ends_a_line_outside_of_quotes(line: str, kept: str) -> None:
    assert uncommented(line) == kept


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("virtual_ipaddress { 192.0.2.1/24 }", ("virtual_ipaddress", "{", "192.0.2.1/24", "}")),
        ("track_script{chk}", ("track_script", "{", "chk", "}")),
        ("address ${NET}.5", ("address", "${NET}.5")),
        ("script \"/a b\" 'c d'", ("script", "/a b", "c d")),
        ("""abc" efg h "x""", ("abc efg h x",)),
        (r'x "\x41\102\t\q"', ("x", "AB\tq")),
        ('x "{" y', ("x", '"{"', "y")),
        ('x "never closed', ("x", "never closed")),
    ],
)
def test_words(line: str, said: tuple[str, ...]) -> None:
    assert words(line) == said


def test_variables_count_before_white_space_or_in_braces() -> None:
    values = {"A": "1", "B": "${A}2", "LOOP": "${LOOP}"}
    assert filled("$A ${B} $Ab ${C} $A", values) == "1 12 $Ab ${C} 1"
    assert filled("${LOOP}", values) == "${LOOP}"
    assert len(filled("${X}" * 1000, {"X": "y" * 5000})) <= LONGEST
