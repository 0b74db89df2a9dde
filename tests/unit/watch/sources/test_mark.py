from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.watch.sources.mark import OLDEST_S, Mark


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + 1e9


def test_a_mark_is_kept_for_five_minutes(tmp_path: Path) -> None:
    clock = Clock()
    Mark(tmp_path / "m", clock).keep(lambda: {"cursor": "c"})
    clock.now += OLDEST_S - 1
    assert (Mark(tmp_path / "m", clock).load() or {})["cursor"] == "c"
    clock.now += 2
    assert Mark(tmp_path / "m", clock).load() is None
    clock.now -= OLDEST_S + 10  # the clock was set back: nobody knows how old it is
    assert Mark(tmp_path / "m", clock).load() is None


def test_it_is_written_twice_a_second_at_most_when_it_changes_and_at_the_end(tmp_path: Path) -> None:
    clock = Clock()
    mark = Mark(tmp_path / "m", clock)
    asked = []

    def place(value: int) -> dict[str, int]:
        asked.append(value)
        return {"value": value}

    for value in range(100):
        mark.keep(lambda value=value: place(value))  # type: ignore[misc]
        clock.now += 1 / 64
    assert asked == [0, 32, 64, 96]
    mark.flush()
    assert (mark.load() or {})["value"] == 99


def test_what_has_not_changed_is_written_once_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    mark = Mark(tmp_path / "m", clock)
    for _ in range(59):
        mark.keep(lambda: {"value": 1})
        clock.now += 1
    assert (mark.load() or {})["at"] == pytest.approx(1e9 + 1000, abs=0.1)
    clock.now += 1
    mark.keep(lambda: {"value": 1})
    assert (mark.load() or {})["at"] == pytest.approx(1e9 + 1060, abs=0.1)


def test_a_place_that_cannot_be_told_leaves_what_is_there(tmp_path: Path) -> None:
    mark = Mark(tmp_path / "m", Clock())
    mark.keep(lambda: {"value": 1})
    mark.keep(lambda: None)
    mark.flush()
    assert (mark.load() or {})["value"] == 1


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"at": "x"}', '{"at": null}', "[" * 5000, "{"])
def test_what_is_no_mark_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "m").write_text(text, encoding="utf-8")
    assert Mark(tmp_path / "m", Clock()).load() is None


def test_without_a_file_or_a_folder_for_it_nothing_is_kept(tmp_path: Path) -> None:
    for path in (None, tmp_path / "gone" / "m"):
        mark = Mark(path, Clock())
        mark.keep(lambda: {"value": 1})
        mark.flush()
        assert mark.load() is None
