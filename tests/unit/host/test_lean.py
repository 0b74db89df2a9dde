"""What keepalived's children do with files and waits."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

from edgekeeper.host import lean


def test_a_call_returns_raises_or_is_left_behind():
    assert lean.within("a", lambda: 3, 5) == 3

    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        lean.within("b", broken, 5)
    gate, calls = threading.Event(), []

    def hangs():
        calls.append(1)
        gate.wait(10)
        return 7

    for _ in range(3):
        with pytest.raises(TimeoutError):
            lean.within("c", hangs, 0.01)
    assert len(calls) == 1, "one that hangs is not joined by others"
    gate.set()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "state"
    lean.replace(str(path), b"one")
    lean.replace(str(path), b"two", 0o600)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"."):
        lean.replace(str(tmp_path / "folder"), b"three")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["folder", "state"]


def test_a_fifo_and_a_large_file_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="is not a file"):
        lean.read(str(tmp_path / "fifo"))
    (tmp_path / "large").write_bytes(b"x" * 20)
    with pytest.raises(ValueError, match="is larger than 10 bytes"):
        lean.read(str(tmp_path / "large"), 10)
    assert lean.read(str(tmp_path / "large")) == b"x" * 20


def test_a_line_is_written_only_where_nobody_has_to_wait():
    reader, writer = os.pipe()
    lean.tell(writer, "hello \ud800")
    assert os.read(reader, 100) == b"hello \\ud800\n"
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"x" * 65536):
            pass
    os.set_blocking(writer, True)
    lean.tell(writer, "lost")
    os.close(reader)
    os.close(writer)
    lean.tell(writer, "nobody")


def test_the_age_of_a_process_is_known():
    assert 0 < lean.age_s() < 86_400
