"""What a watch leaves for its successor: the same back, and whatever else stands there means that something was wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.watch.memory import Memory, file, recall, remember


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file(tmp_path, "mesh")


def test_what_was_left_comes_back_and_goes(path: Path) -> None:
    assert recall(path) is None
    for kept in (Memory("WARN couldn't fetch: \x1b \ud7ff", curing=True, ours=True, step=1, since_s=12.5, boot_id="b"), Memory()):
        assert remember(path, kept) is None
        assert recall(path) == kept
    assert path.stat().st_mode & 0o777 == 0o600
    assert remember(path, None) is None
    assert recall(path) is None
    assert remember(path, None) is None, "it is gone already"


WHOLE = json.dumps({"schema": 1, "line": "x", "curing": True, "ours": True, "step": 0, "since_s": 1.0, "boot_id": "b"})


@pytest.mark.parametrize(
    "text",
    ["", "{", WHOLE[:-9], "[]", "null", "7", '"x"', "[" * 9999, WHOLE.replace('"schema": 1', '"schema": 2'), WHOLE.replace("1.0", '"soon"'),
     WHOLE.replace('"step": 0', '"step": 1e999'), WHOLE.replace('"step"', '"pets"')],
    ids=range(12),
)  # fmt: skip
def test_a_torn_or_foreign_file_is_a_sign_that_something_was_wrong_and_no_cure_is_believed(path: Path, text: str) -> None:
    path.write_text(text)
    found = recall(path)
    assert found is not None
    assert (found.line.startswith("something"), found.curing, found.ours) == (True, False, False)


def test_a_step_that_cannot_be_is_the_first(path: Path) -> None:
    path.write_text(WHOLE.replace('"step": 0', '"step": -3'))
    assert (recall(path) or Memory(step=9)).step == 0


def test_what_is_no_file_and_what_cannot_be_written_is_told(path: Path) -> None:
    path.mkdir()
    found = recall(path)
    assert found is not None
    assert found.line.startswith("something")
    assert "would forget that the watch is armed" in (remember(path, Memory("x")) or "")
    assert "cannot be removed" in (remember(path, None) or "")
    assert "would forget" in (remember(path.parent / "gone" / "armed-x.json", Memory("x")) or "")
    assert sorted(one.name for one in path.parent.iterdir()) == ["armed-mesh.json"], "nothing half written is left"
