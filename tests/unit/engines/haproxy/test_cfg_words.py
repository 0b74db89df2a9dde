from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.cfg_words import expand, words
from edgekeeper.engines.haproxy.quote import word

ENV = {"FOO": "bar", "TWO": "x y"}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        # what HAProxy 2.6 and 3.2 make of these was read from their errors about a server's name
        ('server "1$FOO!" a', ("server", "1bar!", "a")),
        ('"2${FOO}!"', ("2bar!",)),
        ('"3${NOPE-def}!"', ("3def!",)),
        ('"4${NOPE}!"', ("4${NOPE}!",)),
        (r'"5a\zb\n!"', ("5a\\zb\n!",)),
        ('7"${TWO[*]}!" a', ("7x", "y!", "a")),
        (r'"8\$FOO!"', ("8$FOO!",)),
        (r"9a\$FOO!", (r"9a\$FOO!",)),
        ("\"10'x'!\"", ("10'x'!",)),
        (r'"11\'!"', ("11'!",)),
        (r"""'12"$FOO\'! a""", ('12"$FOO\\!', "a")),
        ("s$FOO ${FOO}y", ("s$FOO", "${FOO}y")),
        (r"a\ b\#c", ("a b#c",)),
        ("a 127.0.0.1:1#x", ("a", "127.0.0.1:1")),
        (r"'q#\n' x", (r"q#\n", "x")),
        (r"u\x41\"z w\zz \x4", ('uA"z', r"w\zz", r"\x4")),
        ("\tserver\va\fb\r", ("server", "a", "b")),
        ("", ()),
        ("# only a comment", ()),
        ('a ""', ("a", "")),
        ('"never closed # here', ("never closed # here",)),
        ("ends with \\", ("ends", "with", "\\")),
    ],
)
def test_words_are_those_that_haproxy_sees(line: str, wanted: tuple[str, ...]) -> None:
    assert words(line, ENV) == wanted


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"])), max_size=5))
def test_what_is_quoted_reads_back(many: list[str]) -> None:
    assert words(" ".join(word(one) for one in many) + " # a comment") == tuple(many)


@given(st.text(alphabet="ab \\\"'#${}[*]-x\t\n", max_size=40))
def test_no_line_raises(line: str) -> None:
    words(line, ENV)


def test_addresses_expand_without_quotes_too() -> None:
    assert expand("${FOO}:80", ENV) == "bar:80"
    assert expand("${NOPE}:80", ENV) == "${NOPE}:80"
