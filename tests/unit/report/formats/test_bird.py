from __future__ import annotations

from tests.fakes.eventlines import context, items, marks, told

from edgekeeper.report.formats.bird import BIRD
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Kind

LOG = """\
2026-09-07 06:33:49.102 <TRACE> gw1: Initializing
2026-09-07 06:33:49.102 <TRACE> gw1: State changed to start
2026-09-07 06:33:49.960 <TRACE> gw1: State changed to up
2026-09-07 06:34:04.454 <TRACE> gw1: State changed to stop
2026-09-07 06:34:04.454 <TRACE> gw1: State changed to flush
2026-09-07 06:34:04.454 <TRACE> gw1: State changed to down
2026-09-07 06:34:04.454 <TRACE> gw1: State changed to start
2026-09-07 06:34:13.896 <TRACE> gw1: State changed to up
2026-09-07 06:35:02.021 <TRACE> gw1: State changed to start
2026-09-07 06:35:02.134 <TRACE> gw1: State changed to stop
"""


def test_a_session_that_goes_through_several_states_goes_once() -> None:
    found = marks(BIRD, LOG)
    assert [(m.kind, m.at) for m in found] == [
        (Kind.BGP_UP, utc(2026, 9, 7, 6, 33, 49.960)),
        (Kind.BGP_DOWN, utc(2026, 9, 7, 6, 34, 4.454)),
        (Kind.BGP_UP, utc(2026, 9, 7, 6, 34, 13.896)),
        (Kind.BGP_DOWN, utc(2026, 9, 7, 6, 35, 2.021)),
    ]
    assert {m.object for m in found} == {"gw1"}
    assert all(BIRD.likes(line.encode()) for line in LOG.splitlines())


def test_a_log_that_begins_in_the_middle_tells_the_first_loss() -> None:
    assert told(BIRD, "2026-09-07 06:34:04.454 <TRACE> gw1: State changed to stop\n") == [("bgp.down", "gw1")]
    assert told(BIRD, "2026-09-07 06:34:04.454 <TRACE> gw1: State changed to start\n") == []


def test_protocols_that_are_no_sessions_say_nothing() -> None:
    lines = "".join(f"2026-09-07 06:34:04 <TRACE> {name}: State changed to up\n" for name in ("device1", "kernel2", "direct1", "static1", "bfd1"))
    assert marks(BIRD, lines) == []
    assert marks(BIRD, "".join(f"2026-09-07 06:34:04 <TRACE> ospf1: State changed to {state}\n" for state in ("start", "up", "stop"))) == []
    own = "".join(f"2026-09-07 06:34:0{n} <TRACE> own: State changed to {state}\n" for n, state in enumerate(("up", "flush", "down", "up", "flush")))
    assert marks(BIRD, own) == []  # a static protocol that the operator has named


def test_debug_of_events_and_a_syslog() -> None:
    lines = """\
Sep  7 06:33:49 gw-1 bird[77]: gw1: BGP session established
Sep  7 06:33:49 gw-1 bird[77]: gw1: State changed to up
Sep  7 06:34:04 gw-1 bird[77]: gw1: Received: Administrative shutdown
Sep  7 06:34:04 gw-1 bird[77]: gw1: BGP session closed
Sep  7 06:34:04 gw-1 bird[77]: gw1: State changed to stop
"""
    found = marks(BIRD, lines)
    assert [m.kind for m in found] == [Kind.BGP_UP, Kind.BGP_NOTIFY_HEARD, Kind.BGP_DOWN]
    assert [m.node for m in found] == ["gw-1"] * 3
    assert found[1].data == {"reason": "Administrative shutdown"}


def test_two_sources_are_told_apart() -> None:
    one, other = context(source="a"), context(source="b")
    line = b"2026-09-07 06:33:49.960 <TRACE> gw1: State changed to start\n2026-09-07 06:33:49.960 <TRACE> gw1: State changed to up"
    assert len(items(BIRD, line, one)) == 1
    assert len(items(BIRD, line, other)) == 1
    assert [str(m.kind) for m in marks(BIRD, line.decode(), one)] == ["bgp.down", "bgp.up"]
