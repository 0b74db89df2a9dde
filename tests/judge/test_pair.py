"""The files of ``edgekeeper init --pair``, accepted by real engines for each of their nodes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from edgekeeper.cli.main import run

ENGINES = Path(os.environ.get("EDGEKEEPER_ENGINES") or Path.home() / ".cache/edgekeeper/engines")


@pytest.mark.engine
@pytest.mark.parametrize("suite", ["debian12", "debian13", "testing"])
def test_both_are_accepted_where_they_lie(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", f"{ENGINES / suite / 'bin'}:{os.environ['PATH']}")
    etc = tmp_path / "etc"
    assert run(["init", "--pair", "edge-a=192.0.2.11,edge-b=192.0.2.12", "--dir", str(tmp_path / "made"), "--etc", str(etc)]) == 0
    for node in ("edge-a", "edge-b"):
        (tmp_path / "made" / node).rename(etc)
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in etc.glob("*.key"))
        capsys.readouterr()
        assert run(["check", str(etc / "edgekeeper.yaml")]) == 0
        told = capsys.readouterr()
        assert f"valid for node {node}" in told.out
        assert "vip: keepalived" in told.out
        assert "dns: dnsdist" in told.out
        assert "is not on this machine" not in told.err
        etc.rename(tmp_path / f"done-{node}")
