from __future__ import annotations

from collections.abc import Mapping

import pytest

from edgekeeper.cli import run as command
from edgekeeper.cli.context import Settings
from edgekeeper.cli.main import run
from edgekeeper.config.root import Root

GOOD = 'node: edge-a\ndns:\n  listen: ["127.0.0.1:5300"]\n  members: {static: ["127.0.0.1:5301"]}\n'


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, tuple[str, ...], str]]:
    """What was started: the config file, the roles, and where they speak."""
    found: list[tuple[str | None, tuple[str, ...], str]] = []

    def start(chosen: Settings, _loaded: object, makers: Mapping[str, object], listen: str) -> None:
        found.append((chosen.config, tuple(makers), listen))

    monkeypatch.setattr(command, "start", start)
    return found


def test_the_configured_roles_are_run_with_the_config_that_was_named(tmp_path, started) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(GOOD)
    assert run(["run", str(path)]) == 0
    assert run(["run", "--config", str(path), "--only", "dns"]) == 0
    assert run(["--config", str(path), "dns", "run"]) == 0
    assert started == [(str(path), ("dns",), "127.0.0.1:8084")] * 3


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [("node: a\n", [], "configures no role to run"), (GOOD, ["--only", "dns,roll"], "this version runs dns"), ("nod: a\n", [], "unknown key")],
)
def test_what_cannot_be_run_is_two(tmp_path, started, capsys, text: str, words: list[str], told: str) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(text)
    assert run(["run", str(path), *words]) == 2
    assert told in capsys.readouterr().err
    assert started == []


def test_every_role_of_this_version_can_be_made_and_has_a_place_to_speak_at() -> None:
    assert "dns" in command.known_roles()
    for role in command.known_roles():
        assert callable(command.maker(role))
        assert role in command.LISTEN
        assert role in Root.model_fields
