"""`edgekeeper probe`: wrong command lines, and how a summary reads."""

from __future__ import annotations

import pytest

from edgekeeper.cli.main import run
from edgekeeper.cli.probe import _json, _latency, _live_line, _show
from edgekeeper.measure.outages import summarize
from edgekeeper.model.sample import Sample

KEY = ("tcp://192.0.2.60:6443", "fresh")


def sample(sent: float, *, ok: bool = True, error: str | None = None) -> Sample:
    return Sample(sent, KEY[0], "fresh", sent, sent + 0.01, ok, error=error)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["tcp://192.0.2.60"], "the port is missing"),
        (["tcp://192.0.2.60:1", "--every", "5"], "is not a duration"),
        (["tcp://192.0.2.60:1", "--every", "1ms"], "at least 10ms"),
        (["tcp://192.0.2.60:1", "--fail-if", "x"], "is not a condition"),
        (["tcp://192.0.2.60:1", "--record", "/nonexistent/folder/file"], "cannot be written"),
        (["tcp://192.0.2.60:1", "--count", "0"], "--count"),
    ],
)
def test_wrong_command_lines_exit_2(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", *words, "-o", "json"]) == 2
    assert why in capsys.readouterr().err


def test_a_summary_shows_bounds_and_the_last_error(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [sample(0), sample(1, ok=False, error="refused\x1b[2J"), sample(2)]
    _show({KEY: summarize(kept)}, {KEY: kept})
    out = capsys.readouterr().out
    assert "less than 2.01 s" in out
    assert "refused" in out
    assert "\x1b" not in out


def test_json_has_no_infinity() -> None:
    found = _json(KEY, summarize([sample(0, ok=False)]))
    assert found["outages"][0]["max_s"] is None
    assert found["unseen_below_s"] is None


def test_the_live_line() -> None:
    assert _live_line({KEY: []}) == "tcp://192.0.2.60:6443 ..."
    assert _live_line({KEY: [sample(0)]}) == "tcp://192.0.2.60:6443 ok 10 ms, 0/1 lost"
    assert _live_line({KEY: [sample(0), sample(2, ok=False, error="refused")]}) == "tcp://192.0.2.60:6443 OUT for 2.0 s (refused)"


def test_latency() -> None:
    assert _latency([]) == "-"
    assert _latency([0.001, 0.002, 0.5]) == "2.0 / 500.0 ms"
