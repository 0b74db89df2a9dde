"""The parts of a look that need no network; the rest is in tests/process/test_vip_probe.py and tests/judge/test_dnsdist_self.py."""

from __future__ import annotations

import json

import pytest

from edgekeeper.vip import dialogue
from edgekeeper.vip.look import Target, drains, look, usable_servers


def servers(*found):
    return json.dumps({"servers": [{"state": state, "pools": pools} for state, pools in found]}).encode()


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (servers(), 0),
        (servers(("up", ["resolver"]), ("UP", ["a", "b"]), ("down", ["resolver"]), ("DOWN", [])), 2),
        (servers(("up", ["forward-lan."]), ("up", ["forward-lan.", "resolver"]), ("up", [])), 2),
        (json.dumps({"servers": ["x", {"state": None}, {"state": "up", "pools": 3}]}).encode(), 1),
    ],
)
def test_members_that_get_queries_are_counted(body, count):
    assert usable_servers(body) == count


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"servers": 3}', b'{"servers": [', b"\xff"])
def test_an_answer_that_names_no_servers_is_no_count(body):
    with pytest.raises(ValueError, match=r"."):
        usable_servers(body)


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        (b"http/1.1 503 x\r\nedgekeeper-state: draining", b"", True),
        (b"http/1.1 503 x\r\nedgekeeper-state: lameduck", b"", True),
        (b"http/1.1 503 x\r\nedgekeeper-state: broken", b"draining", False),
        (b"http/1.1 503 x", b"We are Draining", True),
        (b"http/1.1 503 x", b"no server is available", False),
    ],
)
def test_told_to_drain_is_told_from_broken(head, body, expected):
    assert drains(head, body) is expected


@pytest.mark.parametrize(
    ("text", "address", "path"),
    [
        ("http://127.0.0.1:8404/", "127.0.0.1:8404", "/"),
        ("http://127.0.0.1", "127.0.0.1:80", "/"),
        ("https://[::1]/x?y=1", "[::1]:443", "/x?y=1"),
        ("https://localhost:6443/readyz", "localhost:6443", "/readyz"),
    ],
)
def test_a_url_is_taken_apart(text, address, path):
    found = dialogue.url(text)
    assert (found.address, found.path, found.tls) == (address, path, text.startswith("https"))


@pytest.mark.parametrize(
    "text", ["", "ftp://x/", "http://", "http://a b/", "http://u@h/", "http://h:0/", "http://h:x/", "http://h/\r\nX: y", "http://::1/", "http://ü/"]
)
def test_what_is_no_url_is_refused(text):
    with pytest.raises(ValueError, match="is not"):
        dialogue.url(text)


@pytest.mark.parametrize("target", [Target("http", "", url="gopher://x"), Target("tcp", "nonsense"), Target("dns", "127.0.0.1:53", "a..b", "A")])
def test_what_cannot_be_asked_is_blind_and_nothing_raises(target):
    assert look(target, 0.05).kind == "blind"
