from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from edgekeeper.host import tail
from edgekeeper.host.tail import Bell, Held, roads


def test_a_file_is_read_on_under_any_name_and_a_truncated_one_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * 1000)
    held = Held(path)
    assert held.read(600) == b"a" * 600
    path.rename(tmp_path / "other")
    assert held.read() == b"a" * 400
    assert held.read() == b""
    os.truncate(tmp_path / "other", 0)
    assert held.read() is None
    (tmp_path / "other").write_bytes(b"b" * 2000)
    assert held.read(0) is None
    held.close()
    held.close()


def test_a_place_is_known_again_by_what_stands_before_it_also_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\n")
    (tmp_path / "copy").write_bytes(b"one\ntwo\nthree\n")
    (tmp_path / "other").write_bytes(b"two\none\nthree\n")
    held = Held(tmp_path / "log")
    held.read()
    place = held.place()
    copy, other = Held(tmp_path / "copy"), Held(tmp_path / "other")
    assert copy.holds(place)
    assert not other.holds(place)
    assert copy.holds(held.place(4))
    copy.resume(place)
    assert copy.read() == b"three\n"
    other.resume(place)
    assert other.read() is None


def test_a_hole_at_the_beginning_is_passed_over(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        file.seek(2**40)
        file.write(b"line\n")
    held = Held(tmp_path / "log")
    held.go(0)
    assert held.read() == b"line\n"


def test_every_folder_that_can_change_what_a_name_leads_to_is_watched(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "name").symlink_to("a/link")
    (tmp_path / "a" / "link").symlink_to("../b/file")
    assert roads(tmp_path / "name") == [tmp_path, tmp_path / "a", tmp_path / "b"]


def test_the_bell_rings_for_a_line_and_for_a_new_name(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "log"
        path.write_bytes(b"")
        bell, held = Bell(), Held(path)
        try:
            assert bell.listen(roads(path), [held])
            assert not bell.listen(roads(path), [held])
            for change in (lambda: path.write_bytes(b"x"), lambda: path.rename(tmp_path / "old"), lambda: path.write_bytes(b"y")):
                change()
                async with asyncio.timeout(5):
                    await bell.ring(60)
                bell.listen(roads(path), [held])
            assert not bell.deaf
            bell.listen(roads(path), [])  # not for a file that we let go of
        finally:
            bell.close()

    asyncio.run(story())


def test_a_bell_without_watches_rings_when_the_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(**_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(tail, "Inotify", none_left)

    async def story() -> None:
        (tmp_path / "log").touch()
        bell = Bell()
        assert not bell.listen([tmp_path], [Held(tmp_path / "log")])
        assert bell.deaf
        await bell.ring(0)
        bell.close()

    asyncio.run(story())
