from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgekeeper.cli.lb_guard import _settings
from edgekeeper.cli.main import run
from edgekeeper.errors import UsageError


def read(**said: str) -> Any:
    words = {"socket": "/run/haproxy/admin.sock", "hold": "2s", "probe": "on", "budget": "6/10m", **said}
    return _settings(words["socket"], words["hold"], words["probe"], words["budget"], tls=True, backends=("api",), dry_run=False)


def test_what_is_said_on_the_command_line() -> None:
    found = read(hold="500ms", probe="/livez?verbose", budget="2/90s")
    assert (found.rules.hold_s, found.probe, found.limit, found.window_s) == (0.5, "/livez?verbose", 2, 90.0)
    assert read().probe == "/readyz"
    assert read(probe="off").probe is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"hold": "2"}, "--hold: '2' is not a duration"),
        ({"budget": "6"}, "write it as 6/10m"),
        ({"budget": "many/10m"}, "write it as 6/10m"),
        ({"budget": "6/soon"}, "write it as 6/10m"),
        ({"probe": "readyz"}, "neither on, off nor a path"),
        ({"probe": "/readyz HTTP/1.1\r\nX: y"}, "neither on, off nor a path"),
    ],
)
def test_mistakes_are_told_with_the_right_way(said: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(**said)


def test_no_name_can_carry_a_second_command() -> None:
    with pytest.raises(UsageError):
        _settings("/run/x", "2s", "on", "6/10m", tls=True, backends=("api; disable server api/cp1",), dry_run=False)


def test_a_dry_run_releases_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lb", "guard", "--socket", str(tmp_path / "s"), "--state-dir", str(tmp_path / "state"), "--release-all", "--dry-run"]) == 2
    assert "nothing was done" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
