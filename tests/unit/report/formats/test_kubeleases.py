from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.eventlines import items, marks

from edgekeeper.report.formats import FORMATS
from edgekeeper.report.formats.kubeleases import K8S_LEASES
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import NO_TIME, Kind, Skip


def lease(node: str, second: float, namespace: str = "kube-node-lease") -> dict[str, Any]:
    stamp = f"2026-09-07T04:{int(second) // 60:02d}:{second % 60:09.6f}Z"
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": namespace, "managedFields": [{"f": {}}]},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": stamp},
    }


RENEWED = [("n1", 0), ("n2", 1), ("n1", 10.2), ("n2", 11.1), ("n1", 20.4), ("n2", 71.5), ("n2", 81.7), ("n2", 81.7)]
OBJECTS = [lease(node, second) for node, second in RENEWED]
FORMS = {
    "one a line": "\n".join(json.dumps(o) for o in OBJECTS),
    "as kubectl prints a watch": "\n".join(json.dumps(o, indent=4) for o in OBJECTS),
    "a watch with what changed": "\n".join(json.dumps({"type": "MODIFIED", "object": o}) for o in OBJECTS),
    "lists now and then": "\n".join(json.dumps({"kind": "List", "items": OBJECTS[n : n + 2]}, indent=4) for n in range(0, 8, 2)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_missed_renewal_is_told_and_that_leases_were_looked_at(form: str) -> None:
    found = marks(K8S_LEASES, FORMS[form])
    assert [(m.kind, m.object, round(float(m.data["age_s"] or 0), 3)) for m in found] == [
        (Kind.LEASE_AGE, "n1", 0.0),
        (Kind.LEASE_AGE, "n2", 0.0),
        (Kind.LEASE_AGE, "n2", 60.4),
    ]
    assert found[2].at == pytest.approx(utc(2026, 9, 7, 4, 1, 11.5))
    liked = [[one.name for one in FORMATS if one.likes(line.encode())] for line in FORMS[form].splitlines()]
    assert {name for names in liked for name in names} == {"k8s-leases"}


def test_one_look_is_no_gap() -> None:
    assert marks(K8S_LEASES, json.dumps(lease("n1", 0))) == []


def test_a_lease_that_is_told_late_makes_no_gap() -> None:
    found = marks(K8S_LEASES, "\n".join(json.dumps(lease("n1", second)) for second in (0, 10, 20, 11, 30)))
    assert [m.data["age_s"] for m in found] == [0.0]


def test_other_leases_say_nothing_and_a_torn_time_is_counted() -> None:
    assert marks(K8S_LEASES, "\n".join(json.dumps(lease("x", second, "kube-system")) for second in (0, 50))) == []
    broken = lease("n1", 0)
    broken["spec"]["renewTime"] = "now"
    assert items(K8S_LEASES, json.dumps(broken)) == [Skip(NO_TIME)]
