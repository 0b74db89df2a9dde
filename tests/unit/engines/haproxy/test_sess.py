from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.sess import Session, SessionReader, parse_session_line, parse_session_record

SAID = Path(__file__).resolve().parents[3] / "golden" / "haproxy" / "said"
VERSIONS = ("2.6", "3.0", "3.2")
FORMS = ("show_sess", "show_sess_all", "show_sess_old", "show_sess_all_old")


def said(version: str, name: str) -> str:
    return (SAID / version / f"{name}.txt").read_text(encoding="utf-8")


def read(text: str, *cuts: int) -> list[Session]:
    reader = SessionReader()
    places = [0, *sorted(cuts), len(text)]
    found = [s for start, end in itertools.pairwise(places) for s in reader.feed(text[start:end])]
    return found + reader.end()


@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_tell_of_the_same_sessions(version: str) -> None:
    short, long = read(said(version, "show_sess")), read(said(version, "show_sess_all"))
    assert sorted(s.server for s in short) == ["cp1", "cp2", "cp3"], "the command line's own session is none"
    assert {(s.id, s.source, s.frontend, s.backend, s.server, s.proto) for s in short} == {
        (s.id, s.source, s.frontend, s.backend, s.server, s.proto) for s in long
    }
    assert all((s.bytes_in, s.bytes_out) == (1, 3) for s in long)
    assert all(s.bytes_in is None and not s.address for s in short)
    assert all(s.address.startswith("127.0.0.1:") for s in long)
    assert all(s.age_s is not None for s in (*short, *long))


@given(st.sampled_from(VERSIONS), st.sampled_from(FORMS), st.lists(st.integers(0, 5000), max_size=6))
@settings(max_examples=40)
def test_pieces_of_any_length_give_the_same(version: str, form: str, cuts: list[int]) -> None:
    text = said(version, form)
    assert read(text, *(min(cut, len(text)) for cut in cuts)) == read(text)


@given(st.sampled_from(VERSIONS), st.sampled_from(FORMS), st.integers(0, 6000), st.integers(0, 400), st.text(max_size=20))
@settings(max_examples=60)
def test_damage_loses_sessions_and_never_pairs_one_with_anothers_server(version: str, form: str, place: int, removed: int, noise: str) -> None:
    text = said(version, form)
    truth = {s.id: s for s in read(text)}
    if any(c in noise for c in "0x=\n"):
        read(noise)
        return
    for s in read(text[:place] + noise + text[place:]):
        known = truth.get(s.id)
        if known is not None and s.server in {t.server for t in truth.values()}:
            assert s.server == known.server
    read(text[:place] + text[place + removed :])


def test_a_session_that_lost_its_end_takes_nothing_from_the_next() -> None:
    first, second = said("3.2", "show_sess_all").split("\n0x")[:2]
    cut = first[: first.index("\n  backend=")]
    assert parse_session_record(cut) is None
    assert read(cut + "\n0x" + second) == read("0x" + second)


def test_lines_that_are_no_sessions() -> None:
    line = "0x7f00: proto=tcpv4 src=192.0.2.7:40000 fe=in be={} srv={} ts=00 epoch=0 age=1m5s calls=2 rq[f=0h] exp=1s rc=0 c_exp="
    full = parse_session_line(line.format("api", "cp1"))
    assert full == Session("0x7f00", "192.0.2.7:40000", "192.0.2.7", "in", "api", "cp1", 65.0, None, None, "tcpv4")
    assert parse_session_line(line.format("<NONE>", "<none>")) is None
    assert parse_session_line(line.format("api", "<none>")) is None
    assert parse_session_line("Unknown command") is None
    assert parse_session_line("") is None
    v6 = parse_session_line(line.format("api", "cp1").replace("192.0.2.7:40000", "2001:db8::7:40000"))
    assert v6 is not None
    assert v6.source_host == "2001:db8::7"
    unknown = parse_session_line(line.format("api", "cp1").replace(" src=192.0.2.7:40000", ""))
    assert unknown is not None
    assert (unknown.source, unknown.source_host) == ("?", "?")


def test_memory_stays_flat_when_something_else_answers() -> None:
    reader = SessionReader()
    for _ in range(20):
        reader.feed("x" * 100_000)
    assert len(reader._rest) <= 1 << 18
    reader = SessionReader()
    reader.feed("0x7f00: [x] id=1 ")
    for _ in range(20):
        reader.feed("y" * 100_000)
    assert len(reader._rest) <= 1 << 19
