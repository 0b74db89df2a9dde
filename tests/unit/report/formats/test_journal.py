from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.eventlines import items, marks

from edgekeeper.log import Event
from edgekeeper.report.formats import journal
from edgekeeper.report.formats.journal import JOURNAL
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import MISSING_FIELD, NO_TIME, NOT_THIS_FORMAT, TRUNCATED, WRONG_TYPE, Kind, Skip


def line(role: str, event: str, about: str, decision: str = "act", **data: Any) -> str:
    """An entry as the journal writes it."""
    entry = {
        "schema": 1,
        "ts": "2026-09-07T04:52:41.250Z",
        "mono": 77.5,
        "node": "edge-1",
        "role": role,
        "event": event,
        "object": about,
        "decision": decision,
        "why": f"{about}: because",
        "data": data,
    }
    return json.dumps(entry, separators=(",", ":"))


WATCH = [
    (
        line("watch", "watch.armed", "proxy", "hold", state="armed", line="couldn't fetch peer state: A"),
        Kind.FINGERPRINT,
        {"text": "couldn't fetch peer state: A"},
    ),
    (line("watch", "watch.confirmed", "proxy", "hold", state="wanted"), Kind.WATCH_PROBE, {"ok": False, "error": "proxy: because"}),
    (line("watch", "watch.suppressed", "proxy", "suppress", held_by="budget", until_s=42.5), Kind.WATCH_SUPPRESSED, {"held_by": "budget", "left_s": 42.5}),
    (line("watch", "watch.disarmed", "proxy", "hold", failed=2, by="answer"), Kind.WATCH_PROBE, {"ok": True, "by": "answer"}),
    (line("watch", "watch.cancelled", "proxy", "hold", failed=2, by="start"), Kind.NOTE, {}),
    (line("watch", "watch.proved", "proxy", "hold", recovered_s=[1.5, 2.5]), Kind.WATCH_PROVEN, {"min_s": 1.5, "max_s": 2.5}),
    (line("lb", "lb.server_marked", "cp/cp-1"), Kind.SERVER_DOWN, {"reason": "cp/cp-1: because"}),
    (line("lb", "lb.server_released", "cp/cp-1"), Kind.SERVER_UP, {"reason": "cp/cp-1: because"}),
    (line("probe", "probe.outage", "https://git.example/", "alarm", min_s=1.5, max_s=None, bad=7), Kind.OUTAGE, {"min_s": 1.5, "bad": 7.0}),
    (line("drill", "drill.outage", "d/c", min_s=0, max_s=0.25, asked=90), Kind.OUTAGE, {"min_s": 0.0, "max_s": 0.25, "asked": 90.0}),
    (line("drill", "drill.note", "d/c"), Kind.NOTE, {}),
    (line("lb", "lb.sessions_freed", "cp/cp-1", sessions=3, workers={"7": 3}), Kind.NOTE, {"sessions": 3.0, "state": "freed"}),
]


@pytest.mark.parametrize(("entry", "kind", "data"), WATCH)
def test_what_an_entry_is_to_a_report(entry: str, kind: Kind, data: dict[str, Any]) -> None:
    (mark,) = marks(JOURNAL, entry)
    assert (mark.kind, mark.data) == (kind, data)
    assert (mark.at, mark.stamp_s, mark.node) == (utc(2026, 9, 7, 4, 52, 41.25), 0.001, "edge-1")
    assert mark.what.endswith("because")
    assert JOURNAL.likes(entry.encode())


def test_a_cure_is_a_decision_and_an_act() -> None:
    found = marks(JOURNAL, line("watch", "watch.cured", "proxy", state="curing", step="restart"))
    assert [(m.kind, m.data) for m in found] == [(Kind.WATCH_ACTING, {"step": "restart"}), (Kind.WATCH_RESTARTED, {"step": "restart"})]


def test_a_vip_by_keepalived_and_in_a_cluster() -> None:
    (state,) = marks(JOURNAL, line("vip", "vip.master_changed", "dns", **{"vip": "dns", "address": "192.0.2.53", "from": "BACKUP", "to": "MASTER"}))
    assert (state.kind, state.object, state.node, state.data["state"]) == (Kind.VRRP_STATE, "dns", "edge-1", "MASTER")
    moved = marks(JOURNAL, line("vip", "vip.master_changed", "dns", **{"vip": "dns", "from": "n1", "to": "n2", "audit": True}))
    assert [(m.node, m.data["state"]) for m in moved] == [("n2", "MASTER"), ("n1", "BACKUP")]
    first = marks(JOURNAL, line("vip", "vip.master_changed", "dns", **{"vip": "dns", "from": None, "to": "n2"}))
    assert [(m.node, m.data["state"]) for m in first] == [("n2", "MASTER")]


@pytest.mark.parametrize("first_bad", [utc(2026, 9, 7, 4, 52, 30), "2026-09-07T04:52:30.000Z"])
def test_an_outage_is_dated_by_its_begin(first_bad: float | str) -> None:
    (mark,) = marks(JOURNAL, line("probe", "probe.outage", "t", min_s=1, max_s=2, first_bad=first_bad))
    assert mark.at == utc(2026, 9, 7, 4, 52, 30)


def test_a_roll_names_its_events_as_marks_are_named() -> None:
    lines = [
        line("roll", "roll.begun", "r-7", roll="r-7"),
        line("roll", "node.cordoned", "n1", roll="r-7"),
        line("roll", "pod.evicting", "git/gitea-0", node="n1"),
        line("roll", "pod.eviction_blocked", "git/gitea-0", "hold", again_s=5),
        line("roll", "node.uncordoned", "n1"),
    ]
    found = marks(JOURNAL, "\n".join(lines))
    assert [(m.kind, m.object, m.node) for m in found] == [
        (Kind.ROLL, "r-7", ""),
        (Kind.CORDONED, "n1", "n1"),
        (Kind.EVICTING, "git/gitea-0", ""),
        (Kind.EVICTION_BLOCKED, "git/gitea-0", ""),
        (Kind.UNCORDONED, "n1", "n1"),
    ]
    assert found[0].data == {"step": "begun", "state": "act", "roll": "r-7"}
    assert (found[2].data, found[3].data) == ({"node": "n1"}, {"again_s": 5})


def test_events_of_other_roles_say_nothing() -> None:
    assert marks(JOURNAL, line("expose", "expose.pass", "pass")) == []
    assert marks(JOURNAL, line("dns", "node.cordoned", "n1")) == []


def test_every_event_in_the_table_is_one_that_is_logged() -> None:
    assert {event for event in journal._EVENTS if not event.startswith("drill.")} - {"note"} <= {str(event) for event in Event}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (WATCH[0][0].replace('"schema":1', '"schema":2'), NOT_THIS_FORMAT),
        (WATCH[0][0].replace("2026-09-07T", "2026-99-07T"), NO_TIME),
        (WATCH[0][0][:-30], TRUNCATED),
        (WATCH[0][0].replace('"ts"', '"tz"'), MISSING_FIELD),
        (WATCH[0][0].replace('"proxy"', "7"), WRONG_TYPE),
    ],
)
def test_what_cannot_be_read_is_counted(entry: str, reason: str) -> None:
    assert items(JOURNAL, entry) == [Skip(reason)]
