"""`edgekeeper drill`: what is listed, what is shown, and the exit code."""

from __future__ import annotations

import json

import pytest

from edgekeeper.cli.drill import _exit_code, _show
from edgekeeper.cli.main import run
from edgekeeper.lab.referee import Promise, judge
from edgekeeper.lab.report import CaseResult, DrillResult, Run

PROMISE = (Promise("unanswered_3s", "unanswered within 3 s", 2),)


def result(lost: float, **more: object) -> tuple[DrillResult, ...]:
    figures = {"asked": 2500.0, "unanswered_3s": lost}
    case = CaseResult("dns-x", "a", "testing", "2.1.3", "unanswered_3s", (Run(figures, None, ((1.0, "killed\x1b[2J"),)),), (), judge(PROMISE, [figures]))
    broken = CaseResult("dns-x", "a", "testing", "2.1.3", "unanswered_3s", **more) if more else case  # type: ignore[arg-type]
    return (DrillResult("dns-x", "2.1.3", "testing", (broken,)),)


def test_the_list_names_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["drill", "list", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    promises = {d["drill"]: d["promises"] for d in found["drills"]}
    assert promises["dns-member-killed/defaults"] == "unanswered within 3 s: at most 0.4 %; unanswered within 5 s: at most 0 queries (from 2.0)"


def test_exit_codes() -> None:
    assert _exit_code(result(2)) == 0
    assert _exit_code(result(3)) == 1
    assert _exit_code(result(0, error="it did not start")) == 1
    assert _exit_code(result(0, error="unbound not found", missing=True)) == 6
    assert _exit_code(result(0, error="unbound not found", missing=True) + result(3)) == 1
    assert _exit_code(result(0, skipped="not on 1.7.3")) == 0


def test_what_is_shown_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    _show(result(3))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "BROKEN" in out
    assert "broken: unanswered within 3 s: 3 queries, promised at most 2" in out


@pytest.mark.parametrize(
    "words", [["drill", "run"], ["drill", "run", "nope"], ["drill", "run", "dns-bad-config", "--policy", "x"], ["drill", "run", "--repeat", "0", "x"]]
)
def test_wrong_command_lines_exit_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
