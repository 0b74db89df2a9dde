from __future__ import annotations

import pytest

from edgekeeper.cli import dns
from edgekeeper.cli.context import settings
from edgekeeper.cli.main import run

GOOD = 'node: edge-a\ndns:\n  listen: ["127.0.0.1:5300"]\n  members: {static: ["127.0.0.1:5301"]}\n'


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The config files that the dns role was started with."""
    files: list[str | None] = []
    monkeypatch.setattr(dns, "run", lambda ctx: files.append(settings(ctx).config))
    return files


def test_the_configured_roles_are_run_with_the_config_that_was_named(tmp_path, started: list[str | None]) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(GOOD)
    assert run(["run", str(path)]) == 0
    assert run(["run", "--config", str(path), "--only", "dns"]) == 0
    assert started == [str(path), str(path)]


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [("node: a\n", [], "configures no role to run"), (GOOD, ["--only", "dns,vip"], "this version runs dns"), ("nod: a\n", [], "unknown key")],
)
def test_what_cannot_be_run_is_two(tmp_path, started: list[str | None], capsys, text: str, words: list[str], told: str) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(text)
    assert run(["run", str(path), *words]) == 2
    assert told in capsys.readouterr().err
    assert started == []
