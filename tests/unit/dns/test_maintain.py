from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.config.root import Root
from edgekeeper.dns import drained, maintain
from edgekeeper.engines.dnsdist.view import EngineView, Server
from edgekeeper.errors import MissingError, RefusedError, StepFailedError


def folder(root: Root) -> Path:
    return Path(root.state_dir) / "dns"


class Engine:
    """A running engine that follows what is drained, or does not."""

    def __init__(self, root: Root, *, follows: bool = True) -> None:
        self.root, self.follows = root, follows

    async def view(self) -> EngineView:
        gone = drained.read(folder(self.root)).names if self.follows else ()
        found = [("ns-a", "192.0.2.1:5353"), ("ns-b", "192.0.2.2:5353")]
        return EngineView(tuple(Server("", n, a, (), "up", 0, 0) for n, a in found if n not in gone))


@pytest.fixture
def root(tmp_path) -> Root:
    dns = {"listen": ["127.0.0.1:53"], "members": {"static": ["ns-a=192.0.2.1", "ns-b=192.0.2.2"]}, "proxy_protocol": "off"}
    return Root.model_validate({"state_dir": str(tmp_path), "run_dir": str(tmp_path / "run"), "dns": dns})


def engine(monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    async def running(_root: object) -> object:
        if isinstance(found, Exception):
            raise found
        return found

    async def states(_root: object) -> dict[str, str]:
        return {}

    monkeypatch.setattr(maintain, "running", running)
    monkeypatch.setattr(maintain, "states", states)
    monkeypatch.setattr(maintain, "LOOK_S", 0.0)


def change(root: Root, name: str, *, drain: bool = True, force: bool = False, wait_s: float = 1.0) -> str:
    return asyncio.run(maintain.change(root, name, drain=drain, force=force, wait_s=wait_s))


def test_a_drain_is_done_when_the_engine_shows_it(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, Engine(root))
    assert change(root, "ns-a") == "ns-a is drained"
    assert change(root, "ns-a", drain=False) == "ns-a is back in service"
    assert change(root, "ns-a", drain=False) == "ns-a is not drained; nothing was changed"


def test_the_last_one_needs_force_and_a_stranger_is_refused_even_with_it(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, Engine(root))
    change(root, "ns-a")
    with pytest.raises(RefusedError, match="--force"):
        change(root, "ns-b")
    assert drained.read(folder(root)).names == {"ns-a"}
    assert change(root, "ns-b", force=True) == "ns-b is drained"
    with pytest.raises(RefusedError, match="is not a member"):
        change(root, "ns-x", force=True)


def test_without_an_engine_it_counts_from_the_next_start(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, MissingError("no engine runs here"))
    assert change(root, "ns-a") == "ns-a is drained from the next start on (no engine runs here)"


def test_an_engine_that_does_not_follow_is_told_and_what_is_written_stays(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, Engine(root, follows=False))
    with pytest.raises(StepFailedError, match="is the supervisor running"):
        change(root, "ns-a", wait_s=0.01)
    assert drained.read(folder(root)).names == {"ns-a"}


@pytest.mark.parametrize("drain", [True, False])
def test_a_damaged_file_is_written_anew_by_the_next_change_as_its_error_says(root: Root, monkeypatch: pytest.MonkeyPatch, drain: bool) -> None:
    engine(monkeypatch, Engine(root))
    folder(root).mkdir()
    (folder(root) / "drained.json").write_text("{")
    change(root, "ns-a", drain=drain)
    assert drained.read(folder(root)).names == ({"ns-a"} if drain else set())
