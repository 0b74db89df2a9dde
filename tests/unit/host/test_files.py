from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgekeeper.errors import LockHeldError, MissingError, StepFailedError, UsageError
from edgekeeper.host.files import locked, make_folder, point, read_secret, read_text, write_text


def test_a_file_is_replaced_whole_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_text(file, "old")
    inode = file.stat().st_ino
    write_text(file, "new", mode=0o640)
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.stat().st_ino != inode
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("step", ["fsync", "fchmod"])
def test_a_disk_that_is_full_leaves_the_old_text_and_no_crumbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    write_text(tmp_path / "x", "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(StepFailedError, match=r"x cannot be written: No space left on device; what was there stays"):
        write_text(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="No such file"):
        read_text(tmp_path / "x")
    with pytest.raises(MissingError, match="Is a directory"):
        read_text(tmp_path)
    (tmp_path / "x").write_bytes(b"ab\xff")
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 2\)"):
        read_text(tmp_path / "x")
    with pytest.raises(UsageError, match="larger than 2 bytes"):
        read_text(tmp_path / "x", 2)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="is not a file"):
        read_text(tmp_path / "fifo")


def test_a_link_moves_in_one_step_also_over_a_crumb_of_a_crash(tmp_path: Path) -> None:
    link = tmp_path / "current"
    point(link, "a")
    (tmp_path / f".current.{os.getpid()}").symlink_to("crumb")
    point(link, "b")
    assert link.readlink() == Path("b")
    assert [p.name for p in tmp_path.iterdir()] == ["current"]


def test_a_folder_has_exactly_its_mode(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir(mode=0o755)
    assert make_folder(tmp_path / "x").stat().st_mode & 0o777 == 0o700
    assert make_folder(tmp_path / "a" / "b", 0o750).stat().st_mode & 0o777 == 0o750
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    assert make_folder(tmp_path / "tmp", ours=False).stat().st_mode & 0o7777 == 0o1777
    assert make_folder(tmp_path / "new", ours=False).stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(MissingError, match="cannot be made"):
        make_folder(tmp_path / "file" / "x")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_secret_that_others_may_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "s"
    file.write_text("a secret\n")
    file.chmod(mode)
    with pytest.raises(UsageError, match=r"chmod 600") as caught:
        read_secret(file)
    assert "a secret\n" not in str(caught.value)
    file.chmod(0o600)
    assert read_secret(file) == "a secret"


def test_a_mounted_kubernetes_secret_may_have_the_mode_that_kubernetes_gives(tmp_path: Path) -> None:
    (tmp_path / "..1").mkdir()
    (tmp_path / "..1" / "s").write_text("a secret")
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "s").symlink_to("..data/s")
    assert read_secret(tmp_path / "s") == "a secret"


def test_a_missing_or_empty_secret_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        read_secret(tmp_path / "s")
    (tmp_path / "s").write_text("\r\n")
    (tmp_path / "s").chmod(0o600)
    with pytest.raises(UsageError, match="is empty"):
        read_secret(tmp_path / "s")


def test_a_lock_is_held_by_one_and_says_by_whom(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock", "the work"),
        pytest.raises(LockHeldError, match=rf"the work is already running \(pid {os.getpid()}\)"),
        locked(tmp_path / "lock", "the work"),
    ):
        pass
    with locked(tmp_path / "lock", "the work"):
        pass


def test_a_lock_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be locked"), locked(tmp_path / "none" / "lock", "the work"):
        pass


def test_a_full_disk_does_not_keep_the_lock_from_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with locked(tmp_path / "lock", "the work"), pytest.raises(LockHeldError), locked(tmp_path / "lock", "the work"):
        pass
