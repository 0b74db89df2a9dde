"""No string means anything but itself once it is written down."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from edgekeeper.engines.dnsdist.quote import lua_string, lua_value, yaml_string, yaml_text

texts = st.text(st.characters(exclude_categories=["Cs"]))
trees = st.recursive(
    st.one_of(texts, st.integers(-(2**31), 2**31), st.booleans(), st.floats(0, 1e6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda k: k not in WORDS), inner, max_size=3)
    ),
    max_leaves=12,
)
WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def read_lua(text):
    """What Lua makes of one of our strings; fails on anything that is more than one string."""
    assert re.fullmatch(r'"(?:[^"\\\n\r]|\\\d{3})*"', text)
    raw = re.sub(rb"\\(\d{3})", lambda found: bytes([int(found[1])]), text[1:-1].encode("ascii"))
    return raw.decode()


@given(texts)
def test_a_lua_string_reads_back_as_itself(text):
    assert read_lua(lua_string(text)) == text


@given(texts)
def test_a_yaml_string_reads_back_as_itself(text):
    written = yaml_string(text)
    assert "\n" not in written
    assert written.isascii()
    assert YAML(typ="safe").load(f"key: {written}\n") == {"key": text}


@given(st.dictionaries(st.from_regex(r"k[a-z_]{1,8}", fullmatch=True), trees, min_size=1, max_size=4))
def test_a_tree_reads_back_as_itself(tree):
    assert YAML(typ="safe").load(yaml_text(tree)) == tree


@pytest.mark.parametrize("text", ['"', "'", "\\", "\n", '"})os.execute("x")--', "a: b # c", "\x00", "${x}", "%s"])
def test_what_would_leave_the_quotes_is_escaped(text):
    assert read_lua(lua_string(text)) == text
    assert YAML(typ="safe").load(yaml_string(text)) == text


def test_lua_values():
    assert lua_value({"a": True, "b": [1, "x"], "c": 1.25, "d": ()}) == '{a=true, b={1, "x"}, c=1.25, d={}}'
    assert lua_value(False) == "false"


def test_empty_and_nested_yaml():
    assert yaml_text({"a": {}, "b": [], "c": [[1, 2], {}], "d": {"e": [{"f": 1, "g": [2]}]}, "h": 1.5}) == (
        "a: {}\nb: []\nc:\n  - - 1\n    - 2\n  - {}\nd:\n  e:\n    - f: 1\n      g:\n        - 2\nh: 1.5\n"
    )


def test_what_has_no_form_is_a_bug():
    with pytest.raises(TypeError, match="no Lua literal for a NoneType"):
        lua_value(None)
    with pytest.raises(TypeError, match="no YAML scalar for a NoneType"):
        yaml_text({"a": None})
