from __future__ import annotations

import json
import os
import re

import pytest

from edgekeeper.cli import preflight
from edgekeeper.cli.main import run
from edgekeeper.cli.preflight import warnings
from edgekeeper.cli.run import configured
from edgekeeper.cli.starter import SECTIONS, starter
from edgekeeper.config.load import parse
from edgekeeper.config.root import Root
from edgekeeper.model.verdict import EngineVerdict

STARTER = starter(["dns"])
GOOD = 'node: edge-a\ndns:\n  listen: ["127.0.0.1:5300"]\n  members: {static: ["127.0.0.1:5301"]}\n'


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "edge.yaml"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch):
    """What the engine says."""

    def says(refusal: str | None = None, notes: tuple[str, ...] = (), doubts: tuple[str, ...] = ()) -> None:
        async def verdicts(root: Root, node: str) -> dict[str, EngineVerdict]:
            return {role: EngineVerdict("dnsdist 9.9", refusal, notes, doubts) for role in configured(root)}

        monkeypatch.setattr(preflight, "engine_verdicts", verdicts)

    says()
    return says


@pytest.mark.parametrize("roles", [[role] for role in SECTIONS] + [list(SECTIONS)])
def test_the_starter_is_a_config_without_mistakes(roles) -> None:
    root = parse(starter(roles), "edgekeeper.yaml").root
    assert [role for role in SECTIONS if getattr(root, role) is not None] == roles


@pytest.mark.parametrize("role", SECTIONS)
def test_every_line_of_the_starter_that_is_commented_out_is_right_too(role) -> None:
    """Each commented key, put in alone, gives no mistake but that two sources of members exclude each other."""
    lines = starter([role]).splitlines()
    found = [(number, match) for number, line in enumerate(lines) if (match := re.fullmatch(r"( *)# ([a-z_]+: +[^# ].*)", line))]
    assert len(found) > 6
    for number, match in found:
        changed = [*lines[:number], match[1] + match[2], *lines[number + 1 :]]
        if match[2].startswith(("file:", "dns:")):
            changed = [row for row in changed if not row.lstrip().startswith(("static: ", "- ns-"))]
        parse("\n".join(changed), "edgekeeper.yaml")


def test_init_writes_the_starter_and_never_over_a_file(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init"]) == 0
    assert (tmp_path / "edgekeeper.yaml").read_text() == STARTER
    (tmp_path / "edgekeeper.yaml").write_text("mine")
    assert run(["init"]) == 3
    assert (tmp_path / "edgekeeper.yaml").read_text() == "mine"
    assert "nothing was written" in capsys.readouterr().err
    assert run(["init", "--role", "dns,roll", "--config", "other.yaml"]) == 2
    assert not (tmp_path / "other.yaml").exists()
    assert run(["init", "--config", "nowhere/x.yaml"]) == 6


def test_check_says_what_was_accepted(config, engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine(notes=("retry is off",))
    assert run(["check", config]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [f"{config}: valid for node edge-a", "dns: dnsdist 9.9 accepts the rendered configuration", "note: retry is off"]
    assert told.err == ""


def test_a_refusal_of_the_engine_is_two(config, engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine(refusal="bad \x1b line")
    assert run(["check", "--config", config]) == 2
    assert capsys.readouterr().err == "edgekeeper: dns: dnsdist 9.9: bad \\x1b line; nothing was changed\n"


def test_warnings_are_one_only_when_strict(config, engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine(doubts=("not judged here",))
    assert run(["check", config]) == 0
    assert capsys.readouterr().err == "warning: not judged here\n"
    assert run(["check", config, "--strict"]) == 1
    capsys.readouterr()
    assert run(["check", config, "--strict", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["warnings"] == ["not judged here"]


def test_check_tells_the_defaults_in_force(config, engine, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", config, "--defaults", "-o", "json"]) == 0
    told = {row["key"]: row for row in json.loads(capsys.readouterr().out)["defaults"]}
    assert told["dns.debounce"]["value"] == "5s"
    assert told["dns.debounce"]["why"]
    assert "dns.listen" not in told
    assert run(["check", config, "--defaults"]) == 0
    assert "dns.debounce" in capsys.readouterr().out


def test_a_config_without_a_role_is_valid_and_says_so(tmp_path, engine, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text("node: edge-a\n")
    assert run(["check", str(path)]) == 0
    assert "no role is configured" in capsys.readouterr().out


def test_check_is_for_the_node_that_is_asked_for(tmp_path, engine, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text("nodes: {edge-a: {address: 192.0.2.1}, edge-b: {address: 192.0.2.2}}\n")
    assert run(["check", str(path), "--node", "edge-b"]) == 0
    assert "valid for node edge-b" in capsys.readouterr().out
    assert run(["check", str(path), "--node", "edge-x"]) == 2


def test_what_is_elsewhere_is_in_doubt_and_not_wrong(tmp_path) -> None:
    root = Root.model_validate(
        {
            "nodes": {"edge-a": {"address": "192.0.2.1"}, "edge-b": {"address": "192.0.2.2"}},
            "ops": {"listen": "127.0.0.1:8084", "token_file": str(tmp_path / "none")},
            "dns": {"listen": ["192.0.2.77:53", "127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}},
        }
    )
    told = warnings(root, "edge-a")
    assert len(told) == 3
    assert "edge-b has no ops address" in told[0]
    assert "192.0.2.77 is not an address of this machine" in told[1]
    assert "not judged here" in told[2]


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "edgekeeper.yaml"


def test_the_environment_names_no_config(config, engine, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.rename(config, tmp_path / "edgekeeper.yaml")  # noqa: PTH104
    assert run(["check"]) == 0
