"""`edgekeeper probe`: wrong command lines, and how a summary reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.cli.main import run
from edgekeeper.cli.probe import _json, _latency, _show
from edgekeeper.measure.running import Times
from edgekeeper.meter.kept import Kept
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


def kept_of(*samples: Sample) -> Kept:
    kept = Kept((KEY,))
    for one in samples:
        kept.take(one, one.done)
    kept.finish()
    return kept


def test_a_summary_shows_bounds_and_the_last_error(capsys: pytest.CaptureFixture[str]) -> None:
    _show(kept_of(sample(0), sample(1, ok=False, error="refused\x1b[2J"), sample(2)))
    out = capsys.readouterr().out
    assert "less than 2.01 s" in out
    assert "refused" in out
    assert "\x1b" not in out


def test_json_has_no_infinity() -> None:
    found = _json(KEY, kept_of(sample(0, ok=False)).running[KEY].summary())
    assert found["outages"][0]["max_s"] is None
    assert found["unseen_below_s"] is None


def test_latency() -> None:
    assert _latency(Times()) == "-"
    times = Times()
    for took in (0.001, 0.002, 0.5):
        times.add(took)
    median, p99 = (float(part) for part in _latency(times).removesuffix(" ms").split(" / "))
    assert 2.0 <= median <= 2.1
    assert 500 <= p99 <= 520


def test_run_is_the_role_and_takes_nothing_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text("node: edge-a\n")
    assert run(["probe", "run", "tcp://192.0.2.60:1"]) == 2
    assert "takes no targets" in capsys.readouterr().err
    assert run(["--config", str(config), "probe", "run"]) == 2
    assert "has no probe section" in capsys.readouterr().err
