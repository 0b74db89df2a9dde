from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgekeeper.host.tail import Seen
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.file import _Following
from edgekeeper.watch.sources.mark import Mark


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        self.now += 0.01  # so that no piece waits for the next one
        return self.now

    def wall(self) -> float:
        return 1e9


class Log:
    """A follower that looks when it is told to."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "app.log"
        self.clock = Clock()
        self.out: list[bytes] = []
        self.sights: list[Sight] = []
        self.following: _Following | None = None

    def begin(self) -> None:
        mark = Mark(self.path.with_name("mark"), self.clock)
        self.following = _Following(self.path, self.clock, mark, lambda chunk, _: self.out.append(chunk), self.sights.append)
        self.following.begin()

    def look(self) -> str:
        """What arrives at one look."""
        assert self.following is not None
        self.out.clear()
        asyncio.run(self.following.look())
        self.following.tell(deaf=False)
        return b"".join(self.out).decode()

    def write(self, text: str, name: str = "app.log") -> None:
        with self.path.with_name(name).open("a", encoding="utf-8") as file:
            file.write(text)

    def rename(self, old: str, new: str) -> None:
        self.path.with_name(old).rename(self.path.with_name(new))

    def end(self) -> None:
        if self.following is not None:
            self.following.end()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    made.end()


def test_lines_of_before_are_none_of_ours_not_even_the_end_of_one(log: Log) -> None:
    log.write("before\nalso bef")
    log.begin()
    log.write("ore\nnow\npar")
    assert log.look() == "now\n"
    log.write("t\n")
    assert log.look() == "part\n"


def test_a_file_that_comes_later_is_read_from_its_beginning(log: Log) -> None:
    log.begin()
    assert log.look() == ""
    assert log.sights == [Sight(seeing=False, why=f"{log.path} cannot be read: No such file or directory; it is tried again each second")]
    log.write("first\n")
    assert log.look() == "first\n"
    assert log.sights[1:] == [Sight(seeing=True, why=f"{log.path} is followed")]


def test_of_a_file_behind_a_closed_door_only_what_is_written_later_counts(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(_: Path) -> Seen:
        raise PermissionError(13, "Permission denied")

    log.write("old\n")
    with monkeypatch.context() as patch:
        patch.setattr("edgekeeper.watch.sources.file.seen", closed)
        log.begin()
        assert log.look() == ""
        assert "Permission denied" in log.sights[-1].why
    assert log.look() == ""
    log.write("new\n")
    assert log.look() == "new\n"


def test_a_former_file_that_ends_without_the_end_of_a_line_has_that_line_too(log: Log) -> None:
    log.write("")
    log.begin()
    log.look()
    log.write("the last words")
    log.rename("app.log", "app.log.1")
    log.write("new\n")
    assert log.look() == "new\n"
    log.clock.now += 31
    assert log.look() == "the last words\n"


@pytest.mark.parametrize(("make", "word"), [(os.mkfifo, "a FIFO"), (os.mkdir, "a folder"), (lambda path: path.symlink_to("/dev/zero"), "a device")])
def test_what_is_no_file_is_refused_and_not_opened(log: Log, make: object, word: str) -> None:
    make(log.path)  # type: ignore[operator]
    log.begin()
    assert log.look() == ""
    assert not log.sights[-1].seeing
    assert f"it is {word}, not a file" in log.sights[-1].why


def test_links_in_a_circle_are_told(log: Log) -> None:
    log.path.symlink_to("app.log")
    log.begin()
    log.look()
    assert "Too many levels of symbolic links" in log.sights[-1].why


def test_a_name_that_is_away_for_a_moment_is_no_blindness_and_its_file_is_read_on(log: Log) -> None:
    log.write("")
    log.begin()
    log.look()
    log.rename("app.log", "app.log.1")
    log.write("late\n", "app.log.1")
    assert log.look() == "late\n"
    assert [sight.seeing for sight in log.sights] == [True]
    log.clock.now += 2
    log.write("later\n", "app.log.1")
    assert log.look() == "later\n"
    assert [sight.seeing for sight in log.sights] == [True, False]
    log.write("new\n")
    assert log.look() == "new\n"
    assert [sight.seeing for sight in log.sights] == [True, False, True]


def test_a_former_file_is_read_for_half_a_minute_more_and_then_let_go_of(log: Log) -> None:
    log.write("")
    log.begin()
    log.look()
    log.rename("app.log", "app.log.1")
    log.write("new\n")
    assert log.look() == "new\n"
    log.write("old\n", "app.log.1")
    log.clock.now += 29
    log.write("newer\n")
    assert log.look() == "old\nnewer\n"
    assert log.following is not None
    assert len(log.following.held()) == 2
    log.clock.now += 31
    log.look()
    assert len(log.following.held()) == 1


def test_a_name_that_comes_back_goes_on_where_it_was(log: Log) -> None:
    log.begin()
    log.write("one\n")
    log.look()
    log.rename("app.log", "app.log.1")
    log.write("two\n")
    assert log.look() == "two\n"
    log.path.unlink()
    log.rename("app.log.1", "app.log")
    log.write("three\n")
    assert log.look() == "three\n"
    log.rename("app.log", "app.log.1")
    log.look()
    log.clock.now += 40
    log.look()  # now it is let go of
    assert log.following is not None
    assert [held.identity for held in log.following.held()] == []
    log.rename("app.log.1", "app.log")
    log.write("four\n")
    assert log.look() == "four\n"


def test_a_truncation_is_noticed_when_the_file_has_grown_past_the_old_place(log: Log) -> None:
    log.begin()
    log.write("old line\n")
    assert log.look() == "old line\n"
    log.path.write_text("new line that is longer than the old\n", encoding="utf-8")
    assert log.look() == "new line that is longer than the old\n"
    log.path.write_text("short\n", encoding="utf-8")
    assert log.look() == "short\n"


def test_what_a_copying_rotation_took_away_is_read_from_the_copies_in_their_order(log: Log) -> None:
    log.begin()
    log.write("1\n")
    assert log.look() == "1\n"
    stamp = log.path.stat().st_mtime_ns
    for number, former in (("2", "app.log.2"), ("3", "app.log.1")):
        log.write(f"{number}\n")
        copy = log.path.with_name(former)
        copy.write_bytes(log.path.read_bytes())
        stamp += 10**9
        os.utime(copy, ns=(stamp, stamp))
        os.truncate(log.path, 0)
    log.write("4\n")
    assert log.look() == "2\n3\n4\n"


def test_another_log_beside_ours_is_never_read(log: Log) -> None:
    log.begin()
    log.write("1\n")
    log.look()
    log.rename("app.log", "app.log.1")
    log.write("not ours\n", "app.log.errors")
    log.write("not ours\n", "other.log.1")
    log.write("2\n")
    assert log.look() == "2\n"


def test_a_link_that_is_flipped_leads_to_the_beginning_of_the_new_file(log: Log) -> None:
    log.write("old\n", "a")
    log.write("new\n", "b")
    log.path.symlink_to("a")
    log.begin()
    log.write("old again\n", "a")
    assert log.look() == "old again\n"
    log.path.unlink()
    log.path.symlink_to("b")
    log.write("and again\n", "a")
    assert log.look() == "and again\nnew\n"


def test_the_mark_ends_at_a_whole_line(log: Log) -> None:
    log.begin()
    log.write("one\ntw")
    assert log.look() == "one\n"
    log.end()
    log.write("o\nthree\n")
    log.begin()
    assert log.look() == "two\nthree\n"


def test_a_mark_of_another_log_and_one_without_its_file_are_not_followed_blindly(log: Log) -> None:
    log.begin()
    log.write("one\n")
    log.look()
    log.end()
    log.path.unlink()
    log.write("another file\n")  # perhaps with the inode of the former
    log.begin()
    assert log.look() == "another file\n"
    log.end()
    log.path = log.path.with_name("other.log")
    log.write("before\n", "other.log")
    log.begin()
    assert log.look() == ""
