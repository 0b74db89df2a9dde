"""``edgekeeper check`` with each real dnsdist: it accepts, it refuses, it changes nothing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from edgekeeper.cli.main import run
from edgekeeper.cli.starter import starter

ENGINES = Path(os.environ.get("EDGEKEEPER_ENGINES") or Path.home() / ".cache/edgekeeper/engines")


@pytest.fixture(params=["debian12", "debian13", "testing"])
def binary(request) -> str:
    found = ENGINES / request.param / "bin" / "dnsdist"
    assert found.exists(), f"{found} is missing; run script/engines"
    return str(found)


def config(tmp_path, binary: str, extra: str = "") -> str:
    head, _, tail = starter(["dns"]).partition("\ndns:\n")
    path = tmp_path / "edge.yaml"
    path.write_text(f"{head}\ndns:\n  engine: {{binary: {json.dumps(binary)}}}\n{extra}{tail}")
    return str(path)


def test_the_starter_is_accepted_and_nothing_is_left_behind(tmp_path, binary: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    path = config(tmp_path, binary)
    assert run(["check", path, "--node", "edge-a", "--strict"]) == 0
    assert "accepts the rendered configuration" in capsys.readouterr().out
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_listener_that_the_build_lacks_is_refused(tmp_path, binary: str, capsys) -> None:
    path = config(tmp_path, binary, '  tls: {dir: /nowhere, doq: ["127.0.0.1:853"]}\n')
    assert run(["check", path, "--node", "edge-a"]) == 2
    assert "was built without" in capsys.readouterr().err


def test_a_certificate_that_dnsdist_would_die_of_is_refused(tmp_path, binary: str, capsys) -> None:
    (tmp_path / "tls.crt").write_text("no certificate")
    (tmp_path / "tls.key").write_text("no key")
    path = config(tmp_path, binary, f'  tls: {{dir: {tmp_path}, dot: ["127.0.0.1:853"]}}\n')
    assert run(["check", path, "--node", "edge-a"]) == 2
    assert "is not PEM; dnsdist would not start" in capsys.readouterr().err


def test_an_engine_that_is_not_installed_is_six_and_the_config_is_judged_all_the_same(tmp_path, capsys) -> None:
    path = config(tmp_path, "/nowhere/dnsdist")
    assert run(["check", path, "--node", "edge-a"]) == 6
    assert "the config is valid" in capsys.readouterr().err


def test_what_is_no_dnsdist_is_six(tmp_path, capsys) -> None:
    path = config(tmp_path, shutil.which("true") or "/bin/true")
    assert run(["check", path, "--node", "edge-a"]) == 6
    assert "is not dnsdist's" in capsys.readouterr().err
