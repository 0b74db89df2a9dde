from __future__ import annotations

import errno
import fcntl
import json
import os

import pytest

from edgekeeper import log
from edgekeeper.host import journal as journal_module
from edgekeeper.host.journal import FileJournal, parse_line, read_journal
from edgekeeper.log import Event
from edgekeeper.model.entry import Entry


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.now - 1_699_999_000.0

    def wall(self) -> float:
        return self.now


def entry(why: str = "ns-c joined", **data: object) -> Entry:
    return Entry("dns", Event.MEMBERS_CHANGED, "ns-c", "act", why, dict(data))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    events: list[Event] = []
    monkeypatch.setattr(journal_module, "emit", lambda event, _why, /, **_data: events.append(event))
    return events


def test_a_line_has_the_shape_of_schema_1(tmp_path) -> None:
    FileJournal(tmp_path, "edge-a", Clock()).write(entry(added=1))
    assert json.loads((tmp_path / "journal.jsonl").read_text()) == {
        "schema": 1,
        "ts": "2023-11-14T22:13:20.000Z",
        "mono": 1000.0,
        "node": "edge-a",
        "role": "dns",
        "event": "members.changed",
        "object": "ns-c",
        "decision": "act",
        "why": "ns-c joined",
        "data": {"added": 1},
    }


def test_secrets_do_not_reach_the_disk(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_secrets", {"correct-horse-battery"})
    FileJournal(tmp_path, "a", Clock()).write(entry("with correct-horse-battery", token="hunter2", note="correct-horse-battery"))
    text = (tmp_path / "journal.jsonl").read_text()
    assert "hunter2" not in text
    assert "correct-horse" not in text


def test_a_line_end_in_a_reason_does_not_make_two_lines(tmp_path) -> None:
    FileJournal(tmp_path, "a", Clock()).write(entry("one\ntwo\u2028three"))
    assert (tmp_path / "journal.jsonl").read_bytes().count(b"\n") == 1
    assert read_journal(tmp_path)[0][0].fields["why"] == "one\ntwo\u2028three"


def test_it_rotates_by_size_and_keeps_three(tmp_path) -> None:
    journal = FileJournal(tmp_path, "a", Clock(), max_bytes=1000)
    for number in range(60):
        journal.write(entry(f"{number:02}"))
    names = sorted(path.name for path in tmp_path.glob("journal.jsonl*"))
    assert names == ["journal.jsonl", "journal.jsonl.1", "journal.jsonl.2", "journal.jsonl.3"]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in names)
    kept = [record.fields["why"] for record in read_journal(tmp_path)[0]]
    assert kept == [f"{number:02}" for number in range(60 - len(kept), 60)]
    assert len(kept) >= 12


def test_two_processes_write_one_journal_also_over_a_rotation(tmp_path) -> None:
    first, second = (FileJournal(tmp_path, name, Clock(), max_bytes=1000) for name in ("a", "b"))
    for number in range(10):
        first.write(entry(f"a{number}"))
        second.write(entry(f"b{number}"))
    why = [record.fields["why"] for record in read_journal(tmp_path)[0]]
    assert why[-1] == "b9"
    assert [w for w in why if w[0] == "a"] == sorted(w for w in why if w[0] == "a")
    assert (first.lost_total, second.lost_total) == (0, 0)


def test_a_rotation_that_another_process_holds_is_not_waited_for(tmp_path) -> None:
    journal = FileJournal(tmp_path, "a", Clock(), max_bytes=500)
    handle = os.open(tmp_path / "journal.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    for number in range(10):
        journal.write(entry(f"{number}"))
    os.close(handle)
    assert len(read_journal(tmp_path)[0]) == 10
    assert not (tmp_path / "journal.jsonl.1").exists()


def test_a_full_disk_stops_nothing_is_logged_once_and_is_told_later(tmp_path, told: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FileJournal(tmp_path, "a", Clock())
    journal.write(entry("before"))

    def full(_handle: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    real = os.write
    monkeypatch.setattr(journal_module.os, "write", full)
    for _ in range(3):
        journal.write(entry("lost"))
    assert told == [Event.JOURNAL_LOST]
    assert (journal.lost, journal.lost_total) == (3, 3)
    monkeypatch.setattr(journal_module.os, "write", real)
    journal.write(entry("after"))
    assert told == [Event.JOURNAL_LOST, Event.JOURNAL_RECOVERED]
    assert (journal.lost, journal.lost_total) == (0, 3)
    records, unreadable = read_journal(tmp_path)
    assert [record.fields["why"] for record in records] == ["before", "after"]
    assert records[-1].fields["data"]["lost_before"] == 3
    assert unreadable == 0


def test_a_line_that_was_written_in_part_does_not_spoil_the_next(tmp_path, told: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    journal = FileJournal(tmp_path, "a", Clock())
    real = os.write
    monkeypatch.setattr(journal_module.os, "write", lambda handle, data: real(handle, data[:20]))
    journal.write(entry("torn"))
    monkeypatch.setattr(journal_module.os, "write", real)
    journal.write(entry("whole"))
    records, unreadable = read_journal(tmp_path)
    assert ([record.fields["why"] for record in records], unreadable) == (["whole"], 1)
    assert told == [Event.JOURNAL_LOST, Event.JOURNAL_RECOVERED]


def test_a_torn_last_line_of_a_former_process_does_not_spoil_the_next(tmp_path) -> None:
    FileJournal(tmp_path, "a", Clock()).write(entry("first"))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"schema": 1, "ts": "2023-')
    FileJournal(tmp_path, "a", Clock()).write(entry("second"))
    records, unreadable = read_journal(tmp_path)
    assert ([record.fields["why"] for record in records], unreadable) == (["first", "second"], 1)


@pytest.mark.parametrize("obstacle", ["missing", "folder", "link", "fifo"])
def test_a_place_that_cannot_be_written_never_raises_or_waits(tmp_path, told: list[Event], obstacle: str) -> None:
    folder = tmp_path / "state"
    path = folder / "journal.jsonl"
    if obstacle != "missing":
        folder.mkdir()
    if obstacle == "folder":
        path.mkdir()
    if obstacle == "link":
        path.symlink_to(tmp_path / "elsewhere")
    if obstacle == "fifo":
        os.mkfifo(path)
    journal = FileJournal(folder, "a", Clock())
    journal.write(entry())
    journal.close()
    assert journal.lost == 1
    assert told == [Event.JOURNAL_LOST]
    assert not (tmp_path / "elsewhere").exists()


def test_a_moved_journal_is_made_anew(tmp_path) -> None:
    journal = FileJournal(tmp_path, "a", Clock())
    journal.write(entry("one"))
    (tmp_path / "journal.jsonl").rename(tmp_path / "elsewhere")
    journal.write(entry("two"))
    assert [record.fields["why"] for record in read_journal(tmp_path)[0]] == ["two"]


def test_reading_from_a_time_on(tmp_path) -> None:
    clock = Clock()
    journal = FileJournal(tmp_path, "a", clock)
    for _ in range(3):
        journal.write(entry())
        clock.now += 60
    assert len(read_journal(tmp_path, since=1_700_000_060.0)[0]) == 2
    assert read_journal(tmp_path / "nowhere") == ((), 0)


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "1", '{"schema": 2, "ts": "2023-11-14T22:13:20Z"}', '{"schema": 1}', '{"schema": 1, "ts": "soon"}', "[" * 5000]
)
def test_what_is_no_entry_is_none(line: str) -> None:
    assert parse_line(line) is None
