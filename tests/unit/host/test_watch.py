from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgekeeper.host import watch
from edgekeeper.host.watch import changes, fingerprint


def noticed(files: list[Path], act: Callable[[], object], *, every_s: float = 30.0, wait_s: float = 2.0) -> bool:
    """Whether an act is noticed; the watch is set before it, and nothing happens by itself."""

    async def work() -> bool:
        found = changes(files, every_s)
        first = asyncio.ensure_future(anext(found))  # type: ignore[arg-type]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not first.done()
        act()
        done, _ = await asyncio.wait({first}, timeout=wait_s)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return bool(done)

    return asyncio.run(work())


def replace(file: Path, text: str) -> None:
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


def test_a_file_that_is_written_replaced_made_or_removed_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "x"
    assert noticed([file], lambda: file.write_text("made"))
    assert noticed([file], lambda: file.write_text("written"))
    assert noticed([file], lambda: replace(file, "replaced"))
    assert noticed([file], file.unlink)


def test_a_stranger_beside_it_is_no_change(tmp_path: Path) -> None:
    assert not noticed([tmp_path / "x"], lambda: (tmp_path / "y").write_text("y"), wait_s=0.05)


def test_the_link_that_kubernetes_flips_under_a_secret_is_noticed_by_its_files(tmp_path: Path) -> None:
    for name, text in (("..1", "old"), ("..2", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tls.crt").write_text(text)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "tls.crt").symlink_to("..data/tls.crt")

    def flip() -> None:
        (tmp_path / "..data_tmp").symlink_to("..2")
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")  # noqa: PTH105 - as the kubelet does it

    assert noticed([tmp_path / "tls.crt"], flip)


def test_a_change_between_the_call_and_the_first_wait_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")

    async def work() -> None:
        found = changes([file], 30.0)
        replace(file, "new")
        async with asyncio.timeout(2):
            await anext(found)

    asyncio.run(work())


def test_a_folder_that_comes_later_is_noticed_by_looking_now_and_then(tmp_path: Path) -> None:
    def act() -> None:
        (tmp_path / "late").mkdir()
        (tmp_path / "late" / "x").write_text("x")

    assert noticed([tmp_path / "late" / "x"], act, every_s=0.01)


def test_a_folder_that_is_removed_and_made_again_is_watched_again(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()

    async def work() -> bool:
        first = asyncio.ensure_future(anext(changes([folder / "x"], 30.0)))  # type: ignore[arg-type]
        for step in (None, folder.rmdir, folder.mkdir, lambda: (folder / "x").write_text("x")):
            if step is not None:
                step()
            if step != folder.rmdir:
                for _ in range(20):
                    await asyncio.sleep(0)
        done, _ = await asyncio.wait({first}, timeout=2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return bool(done)

    assert asyncio.run(work())


def test_without_inotify_it_looks_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(watch, "Inotify", none_left)
    assert noticed([tmp_path / "x"], lambda: (tmp_path / "x").write_text("x"), every_s=0.01)


def test_it_reminds_of_what_the_calendar_changes(tmp_path: Path) -> None:
    async def work() -> None:
        found = changes([tmp_path / "x"], every_s=0.005, remind_s=0.01)
        async with asyncio.timeout(2):
            await anext(found)
            await anext(found)

    asyncio.run(work())


def test_a_fingerprint_tells_a_file_from_its_successor(tmp_path: Path) -> None:
    file = tmp_path / "x"
    assert fingerprint(file) is None
    file.write_text("1")
    first = fingerprint(file)
    replace(file, "2")
    assert fingerprint(file) != first
