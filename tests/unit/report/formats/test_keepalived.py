from __future__ import annotations

import pytest
from tests.fakes.eventlines import context, items, marks

from edgekeeper.report.formats.keepalived import KEEPALIVED, KEEPALIVED_FIFO
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import TRUNCATED, Kind, Skip

CONSOLE = """\
Mon Sep  7 06:35:03 2026: VRRP_Script(chk) succeeded
Mon Sep  7 06:35:03 2026: (VI_dns) Entering BACKUP STATE (init)
Mon Sep  7 06:35:07 2026: (VI_dns) Receive advertisement timeout
Mon Sep  7 06:35:07 2026: (VI_dns) Entering MASTER STATE
Mon Sep  7 06:35:13 2026: (VI_dns) Entering FAULT STATE
Mon Sep  7 06:35:13 2026: (VI_dns) sent 0 priority
Mon Sep  7 06:35:20 2026: (VI_dns) received lower priority (190) advert from 192.0.2.12 - discarding
Mon Sep  7 06:35:21 2026: (VI_dns) Backup received priority 0 advertisement
Mon Sep  7 06:35:23 2026: Stopping
Mon Sep  7 06:35:24 2026: Stopped Keepalived v2.2.7 (01/16,2022)
"""


def test_the_console_log() -> None:
    found = marks(KEEPALIVED, CONSOLE)
    assert [(m.kind, m.data.get("state")) for m in found] == [
        (Kind.VRRP_STATE, "BACKUP"),
        (Kind.VRRP_TIMEOUT, None),
        (Kind.VRRP_STATE, "MASTER"),
        (Kind.VRRP_STATE, "FAULT"),
        (Kind.VRRP_ZERO_SENT, None),
        (Kind.VRRP_ZERO_HEARD, None),
        (Kind.VRRP_STATE, "STOP"),
    ]
    assert {m.object for m in found} == {"VI_dns"}
    assert {m.stamp_s for m in found} == {1.0}
    assert (found[2].at, found[6].at) == (utc(2026, 9, 7, 6, 35, 7), utc(2026, 9, 7, 6, 35, 23))
    assert all(KEEPALIVED.likes(line.encode()) for line in CONSOLE.splitlines())


def test_the_second_stop_is_no_news() -> None:
    assert len(marks(KEEPALIVED, CONSOLE + "Mon Sep  7 06:35:25 2026: Stopping\n")) == 7


@pytest.mark.parametrize(
    "line",
    [
        "Sep  7 06:35:07 n1 Keepalived_vrrp[12]: (VI_dns) Entering MASTER STATE",
        "Sep  7 06:35:07 n1 Keepalived_vrrp[12]: VRRP_Instance(VI_dns) Entering MASTER STATE",
        "2026-09-07T08:35:07.000+02:00 n1 Keepalived_vrrp[12]: (VI_dns) Entering MASTER STATE",
        "<30>1 2026-09-07T06:35:07Z n1 Keepalived_vrrp 12 - - (VI_dns) Entering MASTER STATE",
    ],
)
def test_both_generations_in_a_syslog(line: str) -> None:
    (mark,) = marks(KEEPALIVED, line)
    assert (mark.kind, mark.object, mark.at, mark.node) == (Kind.VRRP_STATE, "VI_dns", utc(2026, 9, 7, 6, 35, 7), "n1")


def test_an_old_fault() -> None:
    (mark,) = marks(KEEPALIVED, "Sep  7 06:35:07 n1 Keepalived_vrrp[12]: VRRP_Instance(VI_1) Now in FAULT state")
    assert mark.data["state"] == "FAULT"


def test_a_fault_at_the_start_is_told_twice_and_counts_once() -> None:
    found = marks(
        KEEPALIVED,
        "Mon Sep  7 06:35:03 2026: (VI_dns): entering FAULT state (interface eth0 down)\n"
        "Mon Sep  7 06:35:03 2026: (VI_dns) entering FAULT state\n"
        "Mon Sep  7 06:35:05 2026: (VI_dns) Entering BACKUP STATE\n",
    )
    assert [m.data for m in found] == [{"state": "FAULT", "reason": "interface eth0 down"}, {"state": "BACKUP"}]


def test_a_journal_s_message_has_the_journal_s_time() -> None:
    (mark,) = marks(KEEPALIVED, "(VI_dns) Entering MASTER STATE", context(envelope_at=77.5, node="n1"))
    assert (mark.at, mark.stamp_s, mark.node) == (77.5, 0.001, "n1")


def test_the_fifo_is_exact_and_leaves_groups_and_side_notes_out() -> None:
    lines = """\
2026-09-07T06:35:13.845 INSTANCE "VI_dns" FAULT 200
2026-09-07T06:35:13.845 GROUP "VG" FAULT 200
2026-09-07T06:35:14.119 INSTANCE "VI_dns" MASTER_RX_LOWER_PRI 200
2026-09-07T06:35:14.119Z INSTANCE "VI dns 2" MASTER 190
2026-09-07T06:35:15.000 INSTANCE "VI_dns" DELETED 200
"""
    found = marks(KEEPALIVED_FIFO, lines)
    assert [(m.object, m.data["state"]) for m in found] == [("VI_dns", "FAULT"), ("VI dns 2", "MASTER"), ("VI_dns", "STOP")]
    assert [m.stamp_s for m in found] == [pytest.approx(0.001)] * 3
    assert (found[1].at or 0) - (found[0].at or 0) == pytest.approx(0.274)
    assert found[1].data["priority"] == 190.0
    assert all(KEEPALIVED_FIFO.likes(line.encode()) for line in lines.splitlines())
    assert not any(KEEPALIVED.likes(line.encode()) for line in lines.splitlines())


def test_a_torn_change_of_state_is_counted() -> None:
    assert items(KEEPALIVED, "Mon Sep  7 06:35:05 2026: (VI_dns) Entering BACKUP STA") == [Skip(TRUNCATED)]


def test_a_torn_line_of_the_fifo_is_counted() -> None:
    assert items(KEEPALIVED_FIFO, '2026-09-07T06:35:13.845 INSTANCE "VI_d') == [Skip(TRUNCATED)]
