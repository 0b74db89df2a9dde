"""Records are appended whole; a file that cannot be written stops no question, and one that is full is moved aside."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from edgekeeper.errors import UsageError
from edgekeeper.meter.record import Recording, line
from edgekeeper.model.sample import Sample

SAMPLE = Sample(1.5, "tcp://192.0.2.60:6443", "fresh", 10.0, 10.2, ok=False, error="refused\x1b[2J\n")


def test_a_line_is_one_object_of_schema_1() -> None:
    found = json.loads(line(SAMPLE))
    assert (found["schema"], found["target"], found["ok"], found["error"]) == (1, SAMPLE.target, False, SAMPLE.error)
    assert line(SAMPLE).count(b"\n") == 1


def test_it_appends_and_never_replaces(tmp_path: Path) -> None:
    for _ in range(2):
        with Recording(tmp_path / "a.jsonl") as recording:
            recording.write(SAMPLE)
    assert (tmp_path / "a.jsonl").read_bytes() == 2 * line(SAMPLE)


def test_a_line_that_a_crash_tore_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(line(SAMPLE)[:20])
    with Recording(tmp_path / "a.jsonl") as recording:
        recording.write(SAMPLE)
    assert (tmp_path / "a.jsonl").read_bytes() == line(SAMPLE)[:20] + b"\n" + line(SAMPLE)


def test_a_full_file_is_moved_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    with Recording(tmp_path / "a.jsonl", most_bytes=2 * len(line(SAMPLE)), keep=2) as recording:
        for _ in range(9):
            recording.write(SAMPLE)
    sizes = {file.name: file.stat().st_size // len(line(SAMPLE)) for file in tmp_path.iterdir()}
    assert sizes == {"a.jsonl": 1, "a.jsonl.1": 2, "a.jsonl.2": 2}


def test_a_full_disk_is_counted_and_the_next_line_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with Recording(tmp_path / "a.jsonl") as recording:
        monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:10]))
        recording.write(SAMPLE)
        assert (recording.lost, "no space left" in recording.why) == (1, True)

        def full(_file: int, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "write", full)
        recording.write(SAMPLE)
        assert recording.lost == 2
        monkeypatch.setattr(os, "write", real)
        recording.write(SAMPLE)
        assert (recording.lost, recording.why) == (2, "")
    assert (tmp_path / "a.jsonl").read_bytes() == line(SAMPLE)[:10] + b"\n" + line(SAMPLE)


@pytest.mark.parametrize("name", [".", "missing/a.jsonl", "fifo", "link"])
def test_what_is_no_file_is_refused_before_anything_is_asked(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError, match="cannot be written"):
        Recording(tmp_path / name)
