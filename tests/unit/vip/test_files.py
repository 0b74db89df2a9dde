"""The small files of the role's folder: track files, and what a person has drained."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.errors import StepFailedError
from edgekeeper.vip.drained import Drained
from edgekeeper.vip.weight import TrackFile, Weight


def test_a_track_file_is_one_number_that_everybody_may_read(tmp_path: Path) -> None:
    file = TrackFile(tmp_path, "weight")
    assert file.read("dns") == Weight.SERVING, "keepalived takes a missing file for 0"
    file.write("dns", Weight.FAULT)
    assert file.read("dns") == 300
    assert (tmp_path / "weight-dns").read_bytes() == b"300\n"
    assert (tmp_path / "weight-dns").stat().st_mode & 0o777 == 0o644
    file.write("dns", Weight.SERVING)
    assert file.read("dns") == 0
    assert TrackFile(tmp_path, "health").read("dns") == 0


def test_it_is_replaced_and_never_rewritten_in_place(tmp_path: Path) -> None:
    """keepalived could read half of it; and it notices a rename."""
    file = TrackFile(tmp_path, "weight")
    file.write("dns", 0)
    before = (tmp_path / "weight-dns").stat().st_ino
    with (tmp_path / "weight-dns").open() as kept:
        file.write("dns", 300)
        assert kept.read() == "0\n"
    assert (tmp_path / "weight-dns").stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir()] == ["weight-dns"]


@pytest.mark.parametrize("text", ["", "\n", "x", "1 2", "\0"])
def test_what_cannot_be_read_counts_as_keepalived_counts_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "weight-dns").write_text(text)
    assert TrackFile(tmp_path, "weight").read("dns") == 0


def test_a_weight_means_fault_where_it_takes_the_whole_priority() -> None:
    assert Weight.FAULT >= 254
    assert Weight.PREFER_NOT < 254


def test_what_was_drained_is_known_after_a_restart(tmp_path: Path) -> None:
    first = Drained(tmp_path)
    first.set("dns", drained=True)
    first.set("web", drained=True)
    first.set("web", drained=False)
    first.set("web", drained=False)
    assert first.names == Drained(tmp_path).names == {"dns"}


@pytest.mark.parametrize("text", ["", "[]", "null", '{"names": 5}', '{"schema": 1}', "{", '"names"'])
def test_a_damaged_record_drains_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "drained.json").write_text(text)
    assert Drained(tmp_path).names == frozenset()


def test_what_could_not_be_written_is_not_remembered(tmp_path: Path) -> None:
    drained = Drained(tmp_path / "gone" / "\0")
    with pytest.raises((StepFailedError, ValueError)):
        drained.set("dns", drained=True)
    assert drained.names == frozenset()
