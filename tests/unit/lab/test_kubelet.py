"""The status that the test kubelet gives a pod."""

from __future__ import annotations

from typing import Any

from edgekeeper.lab.kubelet import pod_status, said, stamp

NOW = "2026-01-01T00:00:00Z"


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {"lab.example/ready": "false"}}, "spec": {"containers": [{"name": "dns", "image": "none"}]}, "status": status}


def test_a_pod_that_has_its_status_is_left_alone_and_one_whose_readiness_or_address_changes_is_not() -> None:
    first = pod_status(pod(phase="Pending"), "203.0.113.1", ready=True, stamp=NOW)
    assert first is not None
    assert {c["type"]: c["status"] for c in first["conditions"]}["Ready"] == "True"
    assert first["containerStatuses"][0]["ready"]
    assert pod_status(pod(**first), "203.0.113.1", ready=True, stamp="later") is None
    changed = pod_status(pod(**first), "203.0.113.1", ready=False, stamp="later")
    assert changed is not None
    assert changed["startTime"] == NOW
    assert pod_status(pod(**first), "203.0.113.2", ready=True, stamp="later") is not None


def test_what_a_test_wants_is_read_from_annotations() -> None:
    assert said(pod()["metadata"], "ready") == "false"
    assert not said({"annotations": None}, "ready")


def test_a_lease_gets_the_six_digits_that_its_server_insists_on() -> None:
    assert len(stamp(micro=True)) == len("2026-01-01T00:00:00.000000Z")
