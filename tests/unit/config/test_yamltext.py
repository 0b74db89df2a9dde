from __future__ import annotations

import pytest

from edgekeeper.config.yamltext import Place, decode, dotted, read_yaml
from edgekeeper.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"), ("NO", "NO"), ("true", True), ("False", False), ("~", None), ("", None), ("12", 12), ("-3", -3), ("1.5", 1.5), ("010", "010"),
        ("1_000", "1_000"), ("0x1F", "0x1F"), ("2001-12-14", "2001-12-14"), ("53:53", "53:53"), ("'12'", "12"), ("9" * 30, "9" * 30), (".nan", ".nan"),
        ('"\\x41"', "A"), ("1e3", 1000.0),
    ],
)  # fmt: skip
def test_values_are_what_a_person_reads(text: str, value: object) -> None:
    got = read_yaml(f"key: {text}\n", "f").value["key"]
    assert got == value
    assert type(got) is type(value)


def test_keys_are_always_text() -> None:
    assert read_yaml("1: a\nnull: b\ntrue: c\n", "f").value == {"1": "a", "null": "b", "true": "c"}


def test_every_key_and_value_has_its_place() -> None:
    document = read_yaml("a:\n  b: [x, {c: d}]\n", "f")
    assert document.place(("a", "b"), key=True) == Place(2, 3)
    assert document.place(("a", "b")) == Place(2, 6)
    assert document.place(("a", "b", 1, "c")) == Place(2, 14)
    assert document.place(("a", "z")) == Place(1, 1)
    assert document.place(("a", "b", 7)) == Place(2, 3)
    assert document.raw(("a", "b", 1, "c")) == "d"
    assert document.raw(("a", 0, "x")) is None


def test_an_empty_value_stands_at_its_key() -> None:
    assert read_yaml("a:\n  b:\n\n\nc: 1\n", "f").place(("a", "b")) == Place(2, 3)


def test_every_second_key_is_told_not_the_first_only() -> None:
    document = read_yaml("a: 1\na: 2\nb: {c: 1, c: 2}\n", "f")
    assert [(m.line, m.column, m.where) for m in document.mistakes] == [(2, 1, "a"), (3, 11, "b.c")]
    assert document.value == {"a": 1, "b": {"c": 1}}


def test_half_a_character_is_a_mistake_in_keys_and_values() -> None:
    document = read_yaml('"a\\ud800": "\\udc00"\n', "f")
    assert [(m.line, m.column) for m in document.mistakes] == [(1, 1), (1, 12)]
    assert "\ud800" not in str(document.value)


def test_a_byte_order_mark_is_no_content() -> None:
    assert decode(b"\xef\xbb\xbfnode: a", "f") == "node: a"


def test_a_character_beyond_unicode_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="not YAML"):
        read_yaml('a: "\\U99999999"', "f")


def test_columns_count_characters_not_bytes() -> None:
    with pytest.raises(ConfigError) as caught:
        decode("ż: \u00ff".encode() + b"\xff", "f")
    assert (caught.value.mistakes[0].line, caught.value.mistakes[0].column) == (1, 5)


def test_a_path_is_printable() -> None:
    assert dotted(("dns", "a\x1bb", 0)) == "dns.a\\x1bb.0"
