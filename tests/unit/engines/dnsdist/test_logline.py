"""dnsdist's own words, read and made fit to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.dnsdist.logline import parse_log, tidy


def test_pairs_become_fields():
    line = 'msg="Updating status for backend" subsystem="backend" level="0" prio="Info" ts="1795984539.721" backend.name="b \\"x\\"" empty=""\n'
    assert parse_log(line) == {
        "msg": "Updating status for backend", "subsystem": "backend", "level": "0", "prio": "Info", "ts": "1795984539.721",
        "backend.name": 'b "x"', "empty": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "Marking downstream ns-a (192.0.2.21:53) as 'down'",
            {"backend.name": "ns-a", "backend.address": "192.0.2.21:53", "backend.health_check.status": "down"},
        ),
        ("Marking downstream 192.0.2.21:53 as 'up'", {"backend.address": "192.0.2.21:53", "backend.health_check.status": "up"}),
    ],
)
def test_sentences_about_members_get_the_same_fields(line, fields):
    assert parse_log(line) == {"msg": "Updating status for backend", **fields}


@pytest.mark.parametrize("line", ["", "Listening on 127.0.0.1:53", "msg=", 'x="1"', "Marking downstream as 'sideways'"])
def test_any_other_line_is_its_own_message(line):
    assert parse_log(line) == {"msg": line}


@given(st.text())
def test_no_line_breaks_it_and_every_line_has_a_message(line):
    assert "msg" in parse_log(line)
    assert all(isinstance(value, str) for value in parse_log('msg="' + line).values())


@pytest.mark.parametrize("secret", ["A" * 43 + "=", "0f" * 32, "$scrypt$ln=10,p=1,r=8$c2FsdA==$aGFzaA==", "0123456789abcdef-0123456789ABCDEF#{}"])
def test_nothing_secret_is_shown(secret):
    for text in (f"unknown value {secret}, expected", f'invalid string "{secret}"', f"key={secret}", f"setKey('{secret}')"):
        assert secret not in tidy(text), text


def test_a_text_for_people_has_one_line_and_an_end():
    assert tidy("a\x1b[31m\nb  ") == "a [31m b"
    assert tidy("word " * 100) == ("word " * 100)[:297] + "..."
    path = "/var/lib/edgekeeper/dns/generations/0001-abcdef/dnsdist.yml"
    assert path in tidy(f"Unable to read configuration file from {path}")
