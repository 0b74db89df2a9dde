from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.eventlines import context, items, marks

from edgekeeper.report.formats.kubeevents import K8S_EVENTS
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import MISSING_FIELD, NO_TIME, TRUNCATED, Kind, Mark, Skip


def event(kind: str, name: str, reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """An Event of the old API."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{reason}", "namespace": "git"},
        "involvedObject": {"kind": kind, "namespace": "git", "name": name},
        "reason": reason,
        "message": message or f'{reason} {{of}} [it] "quoted"',
        "source": {"component": "kubelet", "host": "n1"},
        "firstTimestamp": "2026-09-07T04:52:41Z",
        "lastTimestamp": "2026-09-07T04:52:41Z",
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        **more,
    }


NEW = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "gitea-0.1", "namespace": "git", "uid": "u-1"},
    "regarding": {"kind": "Pod", "namespace": "git", "name": "gitea-0"},
    "reason": "Scheduled",
    "note": "Successfully assigned git/gitea-0 to n2",
    "eventTime": "2026-09-07T04:53:00.250000Z",
    "reportingController": "default-scheduler",
    "series": {"count": 3, "lastObservedTime": "2026-09-07T04:53:09.500000Z"},
}
EVENTS = [event("Pod", "gitea-0", "Killing"), event("Pod", "gitea-0", "Pulled"), NEW, event("Node", "n1", "NodeNotReady")]
FORMS = {
    "one a line": "\n".join(json.dumps(e) for e in EVENTS),
    "a list on one line": json.dumps({"apiVersion": "v1", "kind": "List", "items": EVENTS}),
    "a list as kubectl prints it": json.dumps({"apiVersion": "v1", "items": EVENTS, "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4),
    "a watch as kubectl prints it": "\n".join(json.dumps(e, indent=4) for e in EVENTS),
    "a watch with what changed": "\n".join(json.dumps({"type": "ADDED", "object": e}) for e in EVENTS),
    "a list at the top": json.dumps(EVENTS, indent=2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form: str) -> None:
    found = marks(K8S_EVENTS, FORMS[form])
    assert [(m.kind, m.object, m.data.get("reason")) for m in found] == [
        (Kind.POD, "git/gitea-0", "Killing"),
        (Kind.POD, "git/gitea-0", "Pulled"),
        (Kind.POD, "git/gitea-0", "Scheduled"),
        (Kind.POD, "git/gitea-0", "Scheduled"),
        (Kind.NODE_STATE, "n1", "NodeNotReady"),
    ]
    assert sum(K8S_EVENTS.likes(line.encode()) for line in FORMS[form].splitlines()) >= 1


def test_times_and_how_coarse_they_are() -> None:
    old, new, again = marks(K8S_EVENTS, json.dumps(EVENTS[0]) + "\n" + json.dumps(NEW))
    assert (old.at, old.stamp_s, old.node) == (utc(2026, 9, 7, 4, 52, 41), 1.0, "n1")
    assert (new.at, again.at) == (utc(2026, 9, 7, 4, 53, 0.25), utc(2026, 9, 7, 4, 53, 9.5))
    assert (new.stamp_s, new.node, new.data["count"]) == (pytest.approx(1e-6), "n2", 3.0)


def test_an_event_that_changes_is_told_once_for_each_of_its_times() -> None:
    once = event("Pod", "x", "BackOff", uid="u")
    again = {**once, "count": 2, "lastTimestamp": "2026-09-07T04:52:51Z"}
    found = marks(K8S_EVENTS, "\n".join(json.dumps({"type": "MODIFIED", "object": e}) for e in (once, once, again)))
    assert [m.at for m in found] == [utc(2026, 9, 7, 4, 52, 41), utc(2026, 9, 7, 4, 52, 51)]


def test_an_event_that_is_deleted_is_no_happening() -> None:
    assert marks(K8S_EVENTS, json.dumps({"type": "DELETED", "object": EVENTS[0]})) == []


@pytest.mark.parametrize(
    ("reason", "state"), [("NodeNotReady", "NotReady"), ("NodeReady", "Ready"), ("NodeNotSchedulable", "NotSchedulable"), ("Rebooted", "Rebooted")]
)
def test_states_of_nodes(reason: str, state: str) -> None:
    (mark,) = marks(K8S_EVENTS, json.dumps(event("Node", "n1", reason)))
    assert (mark.kind, mark.object, mark.node, mark.data["state"]) == (Kind.NODE_STATE, "n1", "n1", state)


@pytest.mark.parametrize(
    ("reason", "message", "kind", "before", "after"),
    [
        ("SwitchingOver", "Current primary is running on unschedulable node n1, switching over from pg-1 to pg-2", Kind.DB_SWITCHOVER, "pg-1", "pg-2"),
        ("FailingOver", "Current primary isn't healthy, initiating a failover from pg-1", Kind.DB_FAILOVER, "pg-1", None),
        ("FailoverTarget", "Failing over from pg-1 to pg-2", Kind.DB_FAILOVER, "pg-1", "pg-2"),
    ],
)
def test_a_database_that_moves(reason: str, message: str, kind: Kind, before: str, after: str | None) -> None:
    (mark,) = marks(K8S_EVENTS, json.dumps(event("Cluster", "pg", reason, message)))
    assert (mark.kind, mark.object, mark.data["from"], mark.data["to"]) == (kind, "git/pg", before, after)


def test_warnings_of_other_things_are_notes_and_the_rest_is_silent() -> None:
    found = marks(
        K8S_EVENTS, json.dumps(event("StatefulSet", "x", "FailedCreate", type="Warning")) + "\n" + json.dumps(event("ReplicaSet", "x", "SuccessfulCreate"))
    )
    assert [(m.kind, m.object) for m in found] == [(Kind.NOTE, "StatefulSet git/x")]


def test_what_cannot_be_read_is_counted_and_loses_no_other() -> None:
    good = json.dumps(EVENTS[0])
    nameless = json.dumps({"kind": "Event", "reason": "x"})
    timeless = json.dumps({**EVENTS[0], "firstTimestamp": None, "lastTimestamp": "yesterday"})
    found = items(K8S_EVENTS, "\n".join((good[:-5] + "}", nameless, timeless, "null", "[]", '{"a":1}', good)))
    assert [one for one in found if isinstance(one, Skip)] == [Skip(TRUNCATED), Skip(MISSING_FIELD), Skip(NO_TIME)]
    assert [one.object for one in found if isinstance(one, Mark)] == ["git/gitea-0"]


def test_a_list_that_was_cut_short_loses_only_its_end() -> None:
    lines = FORMS["a list as kubectl prints it"].splitlines()
    assert len(marks(K8S_EVENTS, "\n".join(lines[: len(lines) * 3 // 4]), context())) >= 2
