from __future__ import annotations

from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.status import RoleStatus, document, readiness


def role(health: Health, ready: Health) -> RoleStatus:
    return RoleStatus(Verdict(health, "so it is"), Verdict(ready, f"ready is {ready}"), {"engine": {"pid": 7}})


def test_the_document_keeps_its_shape() -> None:
    made = document("edge-a", "1.2", "2026-01-01T00:00:00.000Z", {"dns": role(Health.OK, Health.OK)})
    assert made == {
        "schema": 1,
        "node": "edge-a",
        "ts": "2026-01-01T00:00:00.000Z",
        "version": "1.2",
        "roles": {"dns": {"verdict": "ok", "why": "so it is", "ready": True, "engine": {"pid": 7}}},
    }


def test_ready_is_only_who_is_ready_in_every_role() -> None:
    well, ill, unknown = role(Health.OK, Health.OK), role(Health.OK, Health.BAD), role(Health.OK, Health.UNKNOWN)
    assert readiness({"dns": well}) == (True, "dns: ready is ok")
    assert readiness({"dns": well, "vip": ill}) == (False, "dns: ready is ok; vip: ready is bad")
    assert not readiness({"dns": unknown})[0]
    assert readiness({}) == (False, "no role has reported yet")
