"""``edgekeeper watch pause`` and ``resume``, and the words of ``watch run`` that end before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.cli.main import run
from edgekeeper.cli.watch import _in_shadow
from edgekeeper.config.root import Root
from edgekeeper.watch.pause import pause_file, read

WATCH = {"name": "web", "file": "/var/log/proxy.log", "fingerprints": ["it is stuck"], "cure": {"systemd": "a"}}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "edgekeeper.yaml"
    path.write_text(json.dumps({"run_dir": str(tmp_path / "run"), "watch": [WATCH]}))
    return str(path)


def test_a_pause_is_left_where_the_watch_looks_and_taken_away_again(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = pause_file(tmp_path / "run", "web")
    assert run(["--config", config, "watch", "pause", "web", "--for", "90m", "--reason", "an upgrade\x1b[2J"]) == 0
    found = read(at)
    assert found is not None
    assert found.until is not None
    assert "\x1b" not in found.why
    assert capsys.readouterr().out == "web cures nothing for 1h30m; what it would have done is told in the journal\n"
    assert run(["--config", config, "watch", "pause", "web"]) == 0
    assert "until `edgekeeper watch resume web`, or a reboot" in capsys.readouterr().out
    found = read(at)
    assert (found is not None and found.until, found is not None and found.why) == (None, "")
    for said in ("web cures again\n", "web was not paused\n"):
        assert run(["--config", config, "watch", "resume", "web"]) == 0
        assert capsys.readouterr().out == said
    assert not at.exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["pause", "wb"], "'wb' is no watch of"),
        (["resume", "../web"], "'../web' is no watch of"),
        (["pause", "web", "--for", "10"], "--for: "),
        (["pause", "web", "--for", "soon"], "--for: "),
    ],
)
def test_mistakes_are_told_and_nothing_is_paused(config: str, tmp_path: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", config, "watch", *words]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_without_the_section_it_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "edgekeeper.yaml"
    path.write_text("node: edge-a\n")
    assert run(["--config", str(path), "watch", "run"]) == 2
    assert "has no watch section" in capsys.readouterr().err


def test_a_dry_run_puts_every_watch_in_the_shadow_and_changes_nothing_else() -> None:
    root = Root.model_validate({"watch": [WATCH, {**WATCH, "name": "other"}]})
    found = _in_shadow(root)
    assert found.watch is not None
    assert [watch.shadow for watch in found.watch] == [True, True]
    assert root.watch is not None
    assert found.watch[0].model_copy(update={"shadow": False}) == root.watch[0]
