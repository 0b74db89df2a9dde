from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from edgekeeper.supervise import enginelog as unit
from edgekeeper.supervise.enginelog import BURST, CHUNK, follow


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "EVERY_S", 0.0)


def followed(path: Path, *steps: str | bytes) -> list[str]:
    """The lines that a follower passes on while these texts are appended, one after the other."""
    told: list[str] = []

    async def settle() -> None:
        for _ in range(40):
            await asyncio.sleep(0)

    async def work() -> None:
        task = asyncio.create_task(follow(path, told.append))
        await settle()
        for text in steps:
            with path.open("ab") as file:
                file.write(text if isinstance(text, bytes) else text.encode())
            await settle()
        assert not task.done(), task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(work())
    return told


def test_lines_are_passed_on_once_and_a_half_one_waits(tmp_path: Path) -> None:
    assert followed(tmp_path / "e.log", "one\ntw", "o\n", "three\n") == ["one", "two", "three"]


def test_a_restart_repeats_nothing_and_misses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "e.log"
    assert followed(path, "one\nhal") == ["one"]
    with path.open("a") as file:
        file.write("f\nwhile nobody looked\n")
    assert followed(path) == ["half", "while nobody looked"]
    assert followed(path) == []


@pytest.mark.parametrize("mark", ["", "x", "-5", "999999"])
def test_a_damaged_mark_or_one_beyond_the_end_begins_anew(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "e.log"
    path.write_text("one\n")
    path.with_suffix(".offset").write_text(mark)
    assert followed(path) == ["one"]


def test_a_file_that_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "e.log"
    followed(path, "one\ntwo\n")
    path.write_text("3\n")
    assert followed(path) == ["3"]


def test_a_flood_is_cut_and_counted(tmp_path: Path) -> None:
    told = followed(tmp_path / "e.log", "".join(f"{i}\n" for i in range(BURST + 7)))
    assert len(told) == BURST + 1
    assert told[-1] == f"7 more lines are in {tmp_path / 'e.log'}"


def test_a_line_without_end_does_not_grow_without_end(tmp_path: Path) -> None:
    told = followed(tmp_path / "e.log", b"x" * (3 * CHUNK), "end\n")
    assert len(told) == 1
    assert len(told[0]) <= 2 * CHUNK
    assert told[0].endswith("xend")


def test_the_file_is_emptied_once_it_was_read_and_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "LIMIT", 20)
    path = tmp_path / "e.log"
    assert followed(path, "a long first line of it\n", "two\n") == ["a long first line of it", "two"]
    assert path.stat().st_size < 20


def test_bytes_that_are_no_text_are_passed_on_readable(tmp_path: Path) -> None:
    assert followed(tmp_path / "e.log", b"\xff\xfeab\n") == ["\ufffd\ufffdab"]
