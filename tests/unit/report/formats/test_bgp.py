from __future__ import annotations

import pytest
from tests.fakes.eventlines import context, items, marks, told

from edgekeeper.report.formats.bgp import FRR, GOBGP
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import NO_TIME, TRUNCATED, Kind, Skip

FRR_LOG = """\
2026/09/07 06:33:50.249 BGP: [N9HHH-F8H1M] %ADJCHANGE: neighbor 192.0.2.2(n1) in vrf default Up
2026/09/07 06:34:06.764 BGP: [HZN6M-XRM1G] %NOTIFICATION: sent to neighbor 192.0.2.6 4/0 (Hold Timer Expired) 0 bytes
2026/09/07 06:34:06.764 BGP: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(Unknown) in vrf default Down BGP Notification send
2026/09/07 06:34:07.772 BGP: [GRW2W-7XNK7] can't connect to 192.0.2.6 fd 16 : Network is unreachable
2026/09/07 06:34:26.282 BGP: [HZN6M-XRM1G] %NOTIFICATION: received from neighbor 2001:db8::2 6/3 (Cease/Peer De-configured) 0 bytes
"""


def test_frr_tells_up_down_and_notifications() -> None:
    up, sent, down, heard = marks(FRR, FRR_LOG)
    assert (up.kind, up.object, up.at, up.stamp_s, up.data) == (Kind.BGP_UP, "192.0.2.2", utc(2026, 9, 7, 6, 33, 50.249), 0.001, {"host": "n1"})
    assert (sent.kind, sent.object, sent.data["code"]) == (Kind.BGP_NOTIFY_SENT, "192.0.2.6", "4/0")
    assert (down.kind, down.object, down.data) == (Kind.BGP_DOWN, "192.0.2.6", {"reason": "BGP Notification send"})
    assert (heard.kind, heard.object, heard.data["reason"]) == (Kind.BGP_NOTIFY_HEARD, "2001:db8::2", "Cease/Peer De-configured")


@pytest.mark.parametrize(
    ("line", "at", "stamp_s", "node"),
    [
        ("2026/09/07 06:34:06 BGP: %ADJCHANGE: neighbor 192.0.2.6(Unknown) in vrf default Down Interface down", utc(2026, 9, 7, 6, 34, 6), 1.0, ""),
        ("2026/09/07 06:34:06.123456 BGP: [A1B2C-D3E4F] %ADJCHANGE: neighbor 192.0.2.6 Down", utc(2026, 9, 7, 6, 34, 6.123456), 1e-6, ""),
        ("Sep  7 06:34:06 gw-1 bgpd[812]: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(n1) in vrf default Down", utc(2026, 9, 7, 6, 34, 6), 1.0, "gw-1"),
        ("<133>Sep  7 06:34:06 gw-1 bgpd[812]: %ADJCHANGE: neighbor 192.0.2.6 in vrf default Down x", utc(2026, 9, 7, 6, 34, 6), 1.0, "gw-1"),
        ("2026-09-07T06:34:06.5+02:00 gw-1 bgpd[8]: %ADJCHANGE: neighbor 192.0.2.6 in vrf default Down x", utc(2026, 9, 7, 4, 34, 6.5), 0.1, "gw-1"),
        ("2026/09/07 06:34:06 informational: BGP: [PXVXG-TFNNT][EC 33554503] %ADJCHANGE: neighbor 192.0.2.6 Down x", utc(2026, 9, 7, 6, 34, 6), 1.0, ""),
    ],
)
def test_frr_in_every_dress(line: str, at: float, stamp_s: float, node: str) -> None:
    (mark,) = marks(FRR, line)
    assert (mark.kind, mark.object, mark.at, mark.node) == (Kind.BGP_DOWN, "192.0.2.6", pytest.approx(at, abs=1e-6), node)
    assert mark.stamp_s == pytest.approx(stamp_s)
    assert FRR.likes(line.encode())


def test_frr_s_time_without_a_zone_is_local() -> None:
    (mark,) = marks(FRR, FRR_LOG.splitlines()[0], context(local=lambda *moment: utc(*moment) - 7200))
    assert mark.at == pytest.approx(utc(2026, 9, 7, 4, 33, 50.249))


def test_frr_names_another_vrf_and_a_withdrawal() -> None:
    down, gone = marks(
        FRR,
        "2026/09/07 06:34:06 BGP: %ADJCHANGE: neighbor eth0(n1) in vrf blue Down Interface down\n"
        "2026/09/07 06:34:07 BGP: [P3GYW-PBKQG] 192.0.2.2(n1) rcvd UPDATE about 203.0.113.0/24 IPv4 unicast -- withdrawn\n",
    )
    assert down.data == {"reason": "Interface down", "host": "n1", "vrf": "blue"}
    assert (gone.kind, gone.object, gone.data["prefix"]) == (Kind.BGP_WITHDRAWN, "192.0.2.2", "203.0.113.0/24")


def test_a_torn_line_of_frr_is_counted() -> None:
    assert items(FRR, "2026/09/07 06:34:06.764 BGP: [PXVXG-TFNNT] %ADJCHANGE: neighbor 192.0.2.6(Unk") == [Skip(TRUNCATED)]


GOBGP_LINES = {
    "json": '{"Key":"198.51.100.9","Reason":"dying","State":"BGP_FSM_ESTABLISHED","Topic":"Peer","level":"info","msg":"Peer Down","time":"2026-09-07T06:34:06Z"}',
    "json in another order": '{"time":"2026-09-07T06:34:06Z","level":"INFO","msg":"Peer Down","Topic":"Peer","Key":"198.51.100.9","Reason":"dying"}',
    "logfmt": 'time="2026-09-07T06:34:06Z" level=info msg="Peer Down" Key=198.51.100.9 Reason=dying State=BGP_FSM_ESTABLISHED Topic=Peer',
    "slog": 'time=2026-09-07T06:34:06Z level=info source=/x.go:1 msg="Peer Down" module=agent asn=64620 component=gobgp.BgpServerInstance Topic=Peer '
    "Reason=dying Key=198.51.100.9 subsys=bgp-control-plane",
}


@pytest.mark.parametrize("dress", GOBGP_LINES)
def test_gobgp_by_its_keys_whatever_their_order(dress: str) -> None:
    line = GOBGP_LINES[dress]
    (mark,) = marks(GOBGP, line)
    assert (mark.kind, mark.object, mark.at, mark.stamp_s, mark.data) == (Kind.BGP_DOWN, "198.51.100.9", utc(2026, 9, 7, 6, 34, 6), 1.0, {"reason": "dying"})
    assert GOBGP.likes(line.encode())
    assert not FRR.likes(line.encode())


def test_cilium_without_a_time_takes_the_envelope_s() -> None:
    line = 'level=info msg="Peer Up" Key=198.51.100.9 State=BGP_FSM_OPENCONFIRM Topic=Peer asn=64620 subsys=bgp-control-plane'
    assert items(GOBGP, line) == [Skip(NO_TIME)]
    (mark,) = marks(GOBGP, line, context(envelope_at=1000.25))
    assert (mark.kind, mark.at, mark.stamp_s) == (Kind.BGP_UP, 1000.25, 0.001)


def test_the_envelope_is_finer_than_a_whole_second_unless_it_is_of_another_day() -> None:
    at = utc(2026, 9, 7, 6, 34, 6)
    (near,) = marks(GOBGP, GOBGP_LINES["json"], context(envelope_at=at + 0.75))
    (far,) = marks(GOBGP, GOBGP_LINES["json"], context(envelope_at=at + 86400))
    assert (near.at, near.stamp_s) == (at + 0.75, 0.001)
    assert (far.at, far.stamp_s) == (at, 1.0)


def test_gobgp_s_notifications_and_soft_resets() -> None:
    lines = """\
{"Code":4,"Data":null,"Key":"198.51.100.9","Subcode":0,"Topic":"Peer","level":"warning","msg":"sent notification","time":"2026-09-07T06:34:06Z"}
{"Code":6,"Data":null,"Key":"198.51.100.9","Subcode":3,"Topic":"Peer","level":"warning","msg":"received notification","time":"2026-09-07T06:34:06Z"}
time="2026-09-07T06:34:06Z" level=info msg="Neighbor soft reset out" Key=198.51.100.9 Topic=Operation
{"Key":"198.51.100.9","Topic":"Peer","level":"info","msg":"Add a peer configuration","time":"2026-09-07T06:34:06Z"}
"""
    found = marks(GOBGP, lines)
    assert [m.kind for m in found] == [Kind.BGP_NOTIFY_SENT, Kind.BGP_NOTIFY_HEARD, Kind.BGP_WITHDRAWN]
    assert [m.data.get("code") for m in found] == ["4/0", "6/3", None]


def test_what_a_peer_is_called_cannot_reach_a_terminal() -> None:
    (mark,) = marks(GOBGP, '{"Key":"\\u001b[2J' + "x" * 999 + '","Topic":"Peer","msg":"Peer Up","time":"2026-09-07T06:34:06Z"}')
    assert mark.object.isprintable()
    assert len(mark.object) == 256
    assert mark.what.isprintable()
    assert told(FRR, "2026/09/07 06:34:06 BGP: %ADJCHANGE: neighbor \x1b[31mx Up") == [("bgp.up", "\\x1b[31mx")]
