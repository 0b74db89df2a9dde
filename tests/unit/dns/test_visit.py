from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from edgekeeper.config.root import Root
from edgekeeper.dns.visit import members, running, states
from edgekeeper.errors import MissingError
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.backend import Member


@pytest.fixture
def root(tmp_path: Path) -> Root:
    dns = {"listen": ["127.0.0.1:53"], "members": {"static": ["ns-b=192.0.2.2", "ns-a=192.0.2.1"]}, "proxy_protocol": "off"}
    return Root.model_validate({"state_dir": str(tmp_path / "state"), "run_dir": str(tmp_path / "run"), "dns": dns})


def test_an_engine_that_never_ran_is_told_and_no_folder_is_made(root: Root, tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="start it with: edgekeeper dns run"):
        asyncio.run(running(root))
    assert list(tmp_path.iterdir()) == []
    assert asyncio.run(states(root)) == {}


@pytest.mark.parametrize("record", [{}, {"schema": 1, "serving": None}, {"schema": 1, "serving": {"pid": 1, "started": 0, "generation": "x"}}])
def test_a_record_of_one_that_is_gone_is_no_engine(root: Root, tmp_path: Path, record: dict[str, object]) -> None:
    (tmp_path / "run" / "dns").mkdir(parents=True)
    (tmp_path / "run" / "dns" / "engine.json").write_text(json.dumps(record))
    with pytest.raises(MissingError, match="no engine of this config runs here"):
        asyncio.run(running(root))


def test_what_the_source_says_now_is_sorted_and_named(root: Root) -> None:
    assert root.dns is not None
    found, where, notes = asyncio.run(members(root, SystemClock()))
    assert found == (Member("ns-a", "192.0.2.1", 5353), Member("ns-b", "192.0.2.2", 5353))
    assert (where, notes) == ("the config", ())
