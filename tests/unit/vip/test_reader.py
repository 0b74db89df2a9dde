"""Whether somebody reads keepalived's FIFO, and what the state file says while nobody does."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from edgekeeper.errors import EdgekeeperError
from edgekeeper.vip.reader import correct, reads


def test_a_reader_is_known_by_its_lock(tmp_path: Path) -> None:
    fifo = tmp_path / "vrrp.fifo"
    assert reads(fifo) is None
    os.mkfifo(fifo)
    assert reads(fifo) is False
    handle = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert reads(fifo) is True
    assert reads(fifo) is True, "looking takes nothing away"
    os.close(handle)
    assert reads(fifo) is False


def test_looking_leaves_no_lock_behind(tmp_path: Path) -> None:
    fifo = tmp_path / "vrrp.fifo"
    os.mkfifo(fifo)
    assert reads(fifo) is False
    handle = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError if not
    os.close(handle)


def told(file: Path) -> dict[str, str]:
    return {name: said["state"] for name, said in json.loads(file.read_text())["vips"].items()}


def test_the_kernel_corrects_the_file_and_touches_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "vip-state.json"
    assert correct(file, "edge-a", {"dns": True, "web": False})
    assert told(file) == {"dns": "MASTER"}, "of what is not held and was never told nothing is known"
    assert not correct(file, "edge-a", {"dns": True, "web": False})
    before = json.loads(file.read_text())
    before["vips"]["web"] = {"state": "FAULT", "priority": 253, "since": 5.0}
    file.write_text(json.dumps(before))
    assert correct(file, "edge-a", {"dns": False, "web": False})
    assert told(file) == {"dns": "BACKUP", "web": "FAULT"}
    assert json.loads(file.read_text())["vips"]["web"]["since"] == 5.0


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1}', '{"schema": 2, "vips": {"dns": {"state": "MASTER"}}}', "[]", "\x00\xff"])
def test_a_damaged_file_is_written_anew(tmp_path: Path, text: str) -> None:
    file = tmp_path / "vip-state.json"
    file.write_bytes(text.encode("latin-1"))
    assert correct(file, "edge-a", {"dns": True})
    assert told(file) == {"dns": "MASTER"}


def test_a_file_that_cannot_be_written_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EdgekeeperError, match="cannot be written"):
        correct(tmp_path / "gone" / "vip-state.json", "edge-a", {"dns": True})
