from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.config.members import parse_members
from edgekeeper.errors import ConfigError


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_members(text, "members.yaml")
    return str(caught.value).splitlines()


def test_entries_are_short_or_long() -> None:
    entries = parse_members("members:\n- ns-a=192.0.2.21\n- {name: ns-b, host: '2001:db8::2', port: 53, pools: [resolver]}\n- '[2001:db8::3]:54'\n", "m")
    assert [(e.name, e.host, e.port, e.pools) for e in entries] == [
        ("ns-a", "192.0.2.21", 5353, ()),
        ("ns-b", "2001:db8::2", 53, ("resolver",)),
        ("", "2001:db8::3", 54, ()),
    ]


def test_no_members_is_said_on_purpose() -> None:
    assert parse_members("members: []\n", "m") == ()


@pytest.mark.parametrize("text", ["", "# gone\n", "members:\n"])
def test_a_file_that_was_cut_short_is_a_mistake_and_never_no_members(text: str) -> None:
    assert len(mistakes(text)) == 1


def test_all_mistakes_at_once_with_their_places() -> None:
    assert mistakes("members:\n  - ns-a=192.0.2.21\n  - ns-a=192.0.2.22:x\n  - {hots: b}\nmember: []\n") == [
        "members.yaml:3:5: members.1: 'x' is not a port (1 to 65535)",
        "members.yaml:4:5: members.2.host: missing; address or host name; host names are resolved and watched",
        "members.yaml:4:6: members.2.hots: unknown key; did you mean host?",
        "members.yaml:5:1: member: unknown key; did you mean members?",
    ]


def test_a_bare_list_is_told_what_is_missing() -> None:
    assert mistakes("- ns-a=192.0.2.21\n") == ["members.yaml:1:1: write members: and the list below it"]


def test_two_members_cannot_share_a_name_or_an_address() -> None:
    assert mistakes("members: [a=192.0.2.1, a=192.0.2.2, b=192.0.2.1]\n") == [
        "members.yaml:1:24: members.1: the name a is taken by another member; remove one",
        "members.yaml:1:37: members.2: the address 192.0.2.1:5353 is taken by another member; remove one",
    ]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60) | st.text(max_size=40).map(lambda text: f"members: [{text}]"))
def test_no_text_makes_anything_but_entries_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_members(text, "m")
