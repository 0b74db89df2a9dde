from __future__ import annotations

import pytest
from tests.fakes.eventlines import NOON, context, marks, told

from edgekeeper.report.formats.kubectl import KUBECTL
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Kind

DRAIN = """\
node/n1 cordoned
Warning: ignoring DaemonSet-managed Pods: monitoring/node-exporter-4w8tz, storage/csi-node-hn6jd
evicting pod home/hub-pg-1
evicting pod dev/forge-0
error when evicting pods/"forge-0" -n "dev" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
pod/hub-pg-1 evicted
evicting pod dev/forge-0
error when evicting pods/"forge-0" -n "dev" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.
evicting pod dev/forge-0
pod/forge-0 evicted
node/n1 drained
node/n1 uncordoned
"""


def test_a_drain_without_times_keeps_its_order_and_finds_namespaces() -> None:
    found = marks(KUBECTL, DRAIN)
    assert [(m.kind, m.object) for m in found] == [
        (Kind.CORDONED, "n1"),
        (Kind.EVICTING, "home/hub-pg-1"),
        (Kind.EVICTING, "dev/forge-0"),
        (Kind.EVICTION_BLOCKED, "dev/forge-0"),
        (Kind.EVICTED, "home/hub-pg-1"),
        (Kind.EVICTION_BLOCKED, "dev/forge-0"),
        (Kind.EVICTED, "dev/forge-0"),
        (Kind.DRAINED, "n1"),
        (Kind.UNCORDONED, "n1"),
    ]
    assert {m.at for m in found} == {None}
    assert (found[3].data["again_s"], found[1].data["node"]) == (5.0, "n1")
    assert all(KUBECTL.likes(line.encode()) for line in DRAIN.splitlines())


def test_a_bypassed_eviction_is_a_deletion() -> None:
    assert told(KUBECTL, "node/n2 cordoned\npod/forge-0 deleted\n") == [("node.cordoned", "n2"), ("pod.deleted", "/forge-0")]


@pytest.mark.parametrize(
    ("stamp", "at", "stamp_s"),
    [
        ("2026-09-07T04:52:41.250Z ", utc(2026, 9, 7, 4, 52, 41.25), 0.001),
        ("2026-09-07T06:52:41+02:00 ", utc(2026, 9, 7, 4, 52, 41), 1.0),
        ("[2026-09-07 04:52:41] ", utc(2026, 9, 7, 4, 52, 41), 1.0),
        ("Sep 07 04:52:41 ", utc(2026, 9, 7, 4, 52, 41), 1.0),
        ("Sep  7 04:52:41.5 ", utc(2026, 9, 7, 4, 52, 41.5), 0.1),
    ],
)
def test_a_stamped_drain(stamp: str, at: float, stamp_s: float) -> None:
    lines = "".join(stamp + line + "\n" for line in DRAIN.splitlines())
    found = marks(KUBECTL, lines, context(until=NOON))
    assert len(found) == 9
    assert [m.at for m in found] == [pytest.approx(at)] * 9
    assert found[0].stamp_s == pytest.approx(stamp_s)
    assert all(KUBECTL.likes(line.encode()) for line in lines.splitlines())


def test_a_container_s_log_has_the_envelope_s_time() -> None:
    (mark,) = marks(KUBECTL, "node/n1 cordoned", context(envelope_at=5.5))
    assert mark.at == 5.5


def test_a_dry_run_drains_nothing_and_an_already_cordoned_node_is_cordoned() -> None:
    assert told(KUBECTL, "node/n1 cordoned (dry run)\npod/x evicted (dry run)\nnode/n1 drained (server dry run)\n") == []
    assert told(KUBECTL, "node/n1 already cordoned\n") == [("node.cordoned", "n1")]


def test_one_name_in_two_namespaces() -> None:
    lines = "node/n1 cordoned\nevicting pod a/redis-0\nevicting pod b/redis-0\npod/redis-0 evicted\npod/redis-0 evicted\n"
    assert [about for kind, about in told(KUBECTL, lines) if kind == "pod.evicted"] == ["a/redis-0", "b/redis-0"]


def test_old_words() -> None:
    lines = 'node "n1" cordoned\nevicting pod "forge-0"\nerror when evicting pod "forge-0" (will retry after 5s): Cannot evict\npod "forge-0" evicted\n'
    assert told(KUBECTL, lines) == [("node.cordoned", "n1"), ("pod.evicting", "/forge-0"), ("pod.eviction_blocked", "/forge-0"), ("pod.evicted", "/forge-0")]


def test_the_same_pod_on_the_next_node_is_evicted_again() -> None:
    lines = "node/n1 cordoned\nevicting pod a/x-0\nnode/n2 cordoned\nevicting pod a/x-0\npod/x-0 evicted\n"
    found = marks(KUBECTL, lines)
    assert [(m.kind, m.data["node"]) for m in found if m.object == "a/x-0"] == [(Kind.EVICTING, "n1"), (Kind.EVICTING, "n2"), (Kind.EVICTED, "n2")]
