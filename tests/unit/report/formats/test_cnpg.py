from __future__ import annotations

from tests.fakes.eventlines import items, marks

from edgekeeper.report.formats.cnpg import CNPG
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import NO_TIME, TRUNCATED, Kind, Skip

LOG = """\
{"level":"info","ts":"2026-09-07T05:20:08.604417352Z","msg":"Current primary is running on unschedulable node, triggering a switchover","controllerKind":"Cluster",\
"namespace":"home","name":"ha-pg","currentPrimary":"ha-pg-1","targetPrimary":"ha-pg-2"}
{"level":"info","ts":"2026-09-07T04:52:42Z","msg":"Failing over","newPrimary":"tr-pg-2","controllerKind":"Cluster"}
{"level":"info","ts":"2026-09-07T04:52:43.5Z","logger":"instance-manager","msg":"Setting myself as primary","logging_pod":"ha-pg-2"}
{"level":"info","ts":"2026-09-07T04:52:44.5Z","logger":"instance-manager","msg":"Finished setting myself as primary","logging_pod":"ha-pg-2"}
{"level":"info","ts":"2026-09-07T04:52:44.5Z","msg":"Cluster is healthy, no failover","controllerKind":"Cluster"}
"""


def test_a_primary_that_moves() -> None:
    wanted, lost, done = marks(CNPG, LOG)
    assert (wanted.kind, wanted.object, wanted.data) == (Kind.DB_SWITCHOVER, "home/ha-pg", {"from": "ha-pg-1", "to": "ha-pg-2"})
    assert (lost.kind, lost.object, lost.data, lost.stamp_s) == (Kind.DB_FAILOVER, "/tr-pg", {"to": "tr-pg-2"}, 1.0)
    assert (done.kind, done.object, done.data) == (Kind.DB_PROMOTED, "/ha-pg", {"to": "ha-pg-2"})
    assert done.at == utc(2026, 9, 7, 4, 52, 44.5)
    assert all(CNPG.likes(line.encode()) for line in LOG.splitlines())


def test_torn_and_timeless_lines_are_counted() -> None:
    line = LOG.splitlines()[1]
    assert items(CNPG, line[:-10]) == [Skip(TRUNCATED)]
    assert items(CNPG, line.replace("2026-09-07T04:52:42Z", "soon")) == [Skip(NO_TIME)]
