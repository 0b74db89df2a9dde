from __future__ import annotations

from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms


class Journal:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)


def test_an_alarm_is_raised_and_cleared_once_each_with_its_reason() -> None:
    journal = Journal()
    alarms = Alarms("dns", journal)
    alarms.set("disk", None)
    alarms.set("disk", "it is full")
    alarms.set("disk", "it is full")
    assert alarms.raised == {"disk": "it is full"}
    alarms.set("disk", None)
    alarms.set("disk", None)
    assert alarms.raised == {}
    assert [(str(e.event), e.object, e.decision, e.why) for e in journal.entries] == [
        ("alarm.raised", "disk", "alarm", "it is full"),
        ("alarm.cleared", "disk", "act", "no longer so: it is full"),
    ]


def test_a_reason_that_changes_is_shown_but_not_journalled_anew() -> None:
    journal = Journal()
    alarms = Alarms("dns", journal)
    for age in range(5):
        alarms.set("membership", f"{age} s old")
    assert alarms.raised == {"membership": "4 s old"}
    assert len(journal.entries) == 1


def test_who_reads_the_alarms_cannot_change_them() -> None:
    alarms = Alarms("dns", Journal())
    dict(alarms.raised)["x"] = "y"
    assert alarms.raised == {}
