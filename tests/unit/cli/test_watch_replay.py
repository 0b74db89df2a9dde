"""``edgekeeper watch replay``: the door for newcomers, what it says, and what it assumes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from edgekeeper.cli.main import run

SIGN = "WARN client/internal/routemanager/client/client.go:126: couldn't fetch peer state: AAAAexampleAAAA="
BEGIN = 1788760800.0


def stamp(at: float) -> str:
    return datetime.fromtimestamp(BEGIN + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def wedge(begin: int, end: int) -> list[tuple[float, str]]:
    return [*((float(at), SIGN) for at in range(begin, end, 2)), (float(end), "INFO proxy started")]


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., str]:
    def write(*lines: tuple[float, str], name: str = "proxy.log") -> str:
        path = tmp_path / name
        path.write_text("".join(f"{stamp(at)} {text}\n" for at, text in lines))
        return str(path)

    return write


@pytest.fixture
def incident(log: Callable[..., str]) -> str:
    """Three wedges 280 s apart, of which a cooldown of 600 s kept the second one dark for 211 s."""
    return log((0.0, "INFO begin"), *wedge(1000, 1004), *wedge(1280, 1491), *wedge(1560, 1563), (2000.0, "INFO end"))


def test_the_incident_and_what_another_cooldown_would_have_changed(incident: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "replay", incident, "--preset", "netbird-proxy", "--started", "proxy started", "--cooldown", "600s"]) == 0
    said = capsys.readouterr()
    assert "the longest time without service: 3 min 30 s to 3 min 31 s with a cooldown of 600 s; 3 s to 4 s with a cooldown of 60 s" in said.out
    assert "1 cure, 2 held back, 2 wedges over before a cure" in said.out
    assert "note: no recorded answers are given (--probes): it is assumed that the probe fails" in said.err


def test_fingerprints_need_no_config_either_and_json_has_it_all(incident: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "replay", incident, "--fingerprint", "couldn't fetch peer state", "--started", "proxy started", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert document["totals"]["cures"] == 3
    assert [one["ended_by"] for one in document["dark"]] == ["cure", "cure", "cure"]
    (held,) = [one for one in document["with_other_settings"] if one["cooldown_s"] == 600 and one["confirm"]]
    assert held["longest_s"] == [210.0, 211.0]
    assert document["files"][0]["hits"] == 2 + 106 + 2
    assert document["assumed"]


def test_forged_lines_restart_nothing_but_a_script_that_believes_them(log: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = log(*((float(at), "GET /couldn't fetch peer state: x") for at in range(100, 200)))
    probes = tmp_path / "probes.jsonl"
    record = {"schema": 1, "target": "tls://192.0.2.1:443", "conn": "fresh", "ok": True, "error": None}
    probes.write_text("".join(json.dumps({**record, "ts": BEGIN + at, "sent": at, "done": at + 0.01}) + "\n" for at in range(400)) + "torn {\n")
    assert run(["watch", "replay", forged, "--fingerprint", "couldn't fetch peer state", "--probes", str(probes), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["totals"]["cures"] == 0
    assert document["totals"]["false_alarms"] == 1
    (script,) = [one for one in document["with_other_settings"] if one["cooldown_s"] == 0 and not one["confirm"]]
    assert script["cures"] == script["cures_of_a_well_service"] > 1
    assert any("1 lines are not recorded answers" in note for note in document["assumed"])


def test_a_watch_of_the_config_is_replayed_with_its_own_settings(incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(
        'watch:\n  - {name: mesh, docker: netbird-proxy, fingerprints: ["couldn\'t fetch peer state"], recovered: [proxy started],'
        " probe: 'tcp://192.0.2.1:443', budget: {cooldown: 600s}}\n"
    )
    assert run(["watch", "replay", incident, "--watch", "mesh", "--config", str(config), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"] == {"cooldown_s": 600.0, "confirm": True}
    assert document["totals"]["suppressed"] == 2
    assert run(["watch", "replay", incident, "--watch", "other", "--config", str(config)]) == 2
    assert "has no watch 'other'; it has mesh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name what is replayed"),
        (["--preset", "none"], "--preset"),
        (["--fingerprint", "x"], "--fingerprint"),
        (["--preset", "netbird-proxy", "--cooldown", "soon"], "--cooldown: 'soon' is not a duration"),
        (["--preset", "netbird-proxy", "--probes", "/nonexistent/probes"], "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(incident: str, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert run(["watch", "replay", incident, *words]) in {2, 6}
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_log_without_times_cannot_be_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.log"
    path.write_text("couldn't fetch peer state: A\n")
    assert run(["watch", "replay", str(path), "--preset", "netbird-proxy"]) == 2
    assert "`docker logs -t` writes times" in capsys.readouterr().err


def test_lines_of_a_log_reach_no_terminal(log: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    path = log((10.0, "WARN couldn't fetch peer state: \x1b[2J\u202e"), (20.0, "INFO end"))
    assert run(["watch", "replay", path, "--fingerprint", "couldn't fetch peer state"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "cure" in out
