from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.watch.fingerprint import Burst, BurstState, Fingerprint, Matcher, add

WEDGED = "couldn't fetch peer state"
PROXY = Matcher([Fingerprint(text=WEDGED, level="warning")], [" path=", " host="])


def line(text: str, level: str = "WARN") -> bytes:
    return f"2026-09-07T06:58:01.123Z {level} client/internal/routemanager/client/client.go:126: {text}\n".encode()


def test_a_hit_tells_the_fingerprint_the_line_and_what_tells_it_from_others():
    (hit,) = PROXY.hits(line("all is well") + line(f"{WEDGED}: AAAA=") + line("all is well"))
    assert hit.name == WEDGED
    assert hit.line == line(f"{WEDGED}: AAAA=").decode().rstrip()
    assert hit.rest == f"{WEDGED}: AAAA="


def test_what_a_client_wrote_into_a_line_is_not_searched():
    forged = line(f"proxy error: status=502 host=git.example path=/{WEDGED} err=Request Canceled")
    assert PROXY.hits(forged) == []
    assert [hit.rest for hit in PROXY.hits(line(f"{WEDGED}: B path=/x"))] == [f"{WEDGED}: B path="]


def test_a_line_forged_whole_is_a_hit_and_only_the_probe_can_tell():
    assert PROXY.hits(line(f"proxy error: path=/\n{WEDGED}: x err=")) != []


@pytest.mark.parametrize(("level", "hit"), [("DEBG", False), ("INFO", False), ("WARN", True), ("ERRO", True), ("", True)])
def test_a_level_asks_for_at_least_that_and_takes_a_line_without_one(level, hit):
    assert bool(PROXY.hits(line(f"{WEDGED}: A", level))) is hit


def test_a_later_fingerprint_finds_a_line_that_an_earlier_ones_level_excludes():
    both = Matcher([Fingerprint(text="state", level="error"), Fingerprint(regex=r"peer st\w+ [A-Z]$")])
    assert [hit.name for hit in both.hits(line("peer state A"))] == [r"peer st\w+ [A-Z]$"]


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        (b"\x1b[33mWARN\x1b[0m couldn't \x1b[1mfetch\x1b[m peer state", True),
        (b"WARN couldn't fetch peer state\r", True),
        (b"\xff\xfe\x00 couldn't fetch peer state \xc3", True),
        (b"x" * 1_000_000 + b"couldn't fetch peer state" + b"y" * 1_000_000, True),
        (b"couldn't\nfetch peer state", False),
        (b"", False),
    ],
)
def test_colours_line_ends_and_bytes_of_any_kind(text, hit):
    found = PROXY.hits(text + b"\n")
    assert bool(found) is hit
    assert all(len(one.line) <= 400 and one.line.isprintable() and one.rest.isprintable() for one in found)


def test_ends_of_a_line_are_ends_in_the_middle_of_a_chunk_too():
    ends = Matcher([Fingerprint(regex="^wedged$")])
    assert len(ends.hits(b"a\nwedged\r\nwedged b\nwedged\nxwedged\nwedged")) == 3


def test_a_text_is_no_pattern_and_a_dot_takes_what_is_not_utf_8():
    found = Matcher([Fingerprint(text="a.b($"), Fingerprint(regex="^x.y$")]).hits(b"a.b($\naxb($\nx\xffy\n")
    assert [hit.name for hit in found] == ["a.b($", "^x.y$"]


def test_what_is_written_out_is_cut_too():
    (hit,) = PROXY.hits(b"\x01" * 300 + b"couldn't fetch peer state" + b"\x02" * 300)
    assert (len(hit.line), len(hit.rest)) == (400, 200)


def test_a_regex_that_would_hang_a_backtracking_engine_does_not():
    Matcher([Fingerprint(regex=r"(x+x+)+y")]).hits(b"x" * 100_000 + b"\n")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "either a text or a regex"),
        ({"text": "a", "regex": "b"}, "either a text or a regex"),
        ({"text": "a\nb"}, "line end"),
        ({"regex": "a("}, "not understood by RE2 (missing ): a()"),
        ({"regex": "a)|(b"}, "not understood by RE2"),
        ({"regex": "(?=a)"}, "look-around"),
        ({"regex": r"(a)\1"}, "back-references"),
        ({"regex": "a*"}, "every line"),
        ({"regex": r"\Aa"}, "beyond its line"),
        ({"regex": "(?s-m)^a"}, "beyond its line"),
        ({"regex": "\ud800"}, "not understood by RE2"),
        ({"text": "a", "level": "loud"}, "there are trace, debug"),
    ],
)
def test_what_cannot_be_looked_for_is_refused_with_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Fingerprint(**given)


def test_an_escaped_backslash_is_not_the_start_of_the_text():
    assert Matcher([Fingerprint(regex=r"\\A")]).hits(rb"\A")


def test_an_empty_marker_is_refused_and_no_fingerprints_find_nothing():
    with pytest.raises(ValueError, match="nothing to search"):
        Matcher([], [""])
    assert Matcher([]).hits(line(WEDGED)) == []


PIECES = [b"couldn't", b"fetch", b" ", b"a", b"b", b"\xff", b"\x00", "é".encode(), b" path=", b"\x1b[1m", b"\r", b"WARN ", b"$", b"INFO ", b"\x1b"]
CONTENT = st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)
SEARCHED = Matcher(
    [Fingerprint(text="a$"), Fingerprint(regex="^(WARN )?fetch"), Fingerprint(text="é", level="warning"), Fingerprint(regex=r"b\b.+$")], [" path="]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(CONTENT, min_size=1, max_size=12), st.integers(0, 12))
def test_the_same_hits_as_line_by_line_wherever_the_chunks_are_cut(lines, cut):
    ended = [one + b"\n" for one in lines]
    naive = [name for one in ended if (name := _naive(one)) is not None]
    chunks = [b"".join(ended[:cut]), b"".join(ended[cut:])]
    assert [hit.name for chunk in chunks for hit in SEARCHED.hits(chunk)] == naive


def _naive(raw: bytes) -> str | None:
    text = re.sub(rb"\x1b\[[0-9;:?]*[@-~]", b"", raw).decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
    before, marker, _ = text.partition(" path=")
    trusted = before + marker
    if "a$" in trusted:
        return "a$"
    if trusted.startswith(("fetch", "WARN fetch")):
        return "^(WARN )?fetch"
    words = re.findall(r"(?:(?<=[\s\[<|])|^)(WARN|INFO)(?=[\s\]>|:,]|$)", trusted)
    if "é" in trusted and words[:1] != ["INFO"]:
        return "é"
    return r"b\b.+$" if re.search(r"b\b.+$", trusted, re.ASCII) else None


def test_texts_of_long_ago_do_not_count_as_distinct():
    burst = Burst(lines=1, distinct=2, within_s=10.0)
    state, _ = add(burst, BurstState(), "a", 0.0)
    state, reached = add(burst, state, "b", 20.0)
    assert not reached
    assert add(burst, state, "a", 21.0)[1]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 4)), max_size=20), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_burst_is_reached_when_counting_everything_says_so(arrivals, lines, distinct):
    burst, state, now, seen = Burst(lines, distinct, 5.0), BurstState(), 0.0, []
    for text, pause in arrivals:
        now += pause
        seen.append((text, now))
        state, reached = add(burst, state, text, now)
        recent = [text for text, at in seen if at >= now - 5.0]
        assert reached is (len(recent) >= lines and len(set(recent)) >= distinct)
        assert len(state.times) <= lines
        assert len(state.texts) <= distinct
