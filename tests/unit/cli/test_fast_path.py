"""Which command lines are keepalived's children's, and that what they log is an event that there is."""

from __future__ import annotations

import pytest

from edgekeeper.cli.main import fast_path, global_options_first
from edgekeeper.log import Event
from edgekeeper.vip import fifo, track


@pytest.mark.parametrize("words", ["vip probe", "vip fifo", "--config /x vip probe", "vip probe --config=/x", "--debug --log-format text vip fifo x"])
def test_these_are(words):
    assert fast_path(global_options_first(words.split())) is not None


@pytest.mark.parametrize(
    "words", ["", "vip", "vip probe --help", "vip fifo --help", "vip run", "probe", "--help vip probe", "--version", "--config", "dns probe"]
)
def test_these_are_not(words):
    assert fast_path(global_options_first(words.split())) is None


@pytest.mark.parametrize(
    "words",
    [
        "", "--vip a", "--vip a --tcp x", "--vip a --tcp 127.0.0.1:1 --http http://127.0.0.1/", "--tcp 127.0.0.1:1", "--vip a --dns 127.0.0.1:53",
        "--vip a --dns 127.0.0.1:53 --qname a..b", "--vip a --dns 127.0.0.1:53 --qname a --qtype MX", "--vip a --http ftp://x", "--vip a --tcp 127.0.0.1:1 --odd 1",
        "--vip a --dns 127.0.0.1:53 --qname a --require-backends 1", "--vip a --dns 127.0.0.1:53 --qname a --require-backends x --dnsdist-api http://[::1] --dnsdist-api-key-file /k",
        "--vip a --vip b --tcp 127.0.0.1:1", "--vip a --tcp",
    ],
)  # fmt: skip
def test_a_wrong_command_line_of_the_track_script_is_refused(words):
    with pytest.raises(ValueError, match=r"."):
        track._read(words.split())


def test_a_command_line_of_the_track_script_is_read():
    words = (
        "--vip dns --dns 127.0.0.1:53 --qname health.example. --qtype=TXT --dnsdist-api http://127.0.0.1:8083 --dnsdist-api-key-file /k --require-backends 2"
    )
    vip, target, peers = track._read([*words.split(), "--peers", "/run/p"])
    assert (vip, peers) == ("dns", "/run/p")
    assert target == ("dns", "127.0.0.1:53", "health.example.", "TXT", "http://127.0.0.1:8083", "/k", 2, "")


def test_what_the_fifos_reader_logs_are_events():
    assert {fifo.READING, fifo.SKIPPED, fifo.LOST, fifo.RECOVERED} <= set(Event)
