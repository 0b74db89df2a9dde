from __future__ import annotations

import pytest
from tests.fakes.eventlines import context, marks

from edgekeeper.report.formats.netbird import NETBIRD
from edgekeeper.report.formats.stamps import utc
from edgekeeper.report.kinds import Kind

WEDGE = "2026-09-07T07:11:26.508Z WARN client/internal/routemanager/client/client.go:131: couldn't fetch peer state: AAAA="
HARMLESS = "2026-09-07T07:11:31.090Z DEBG client/internal/routemanager/client/client.go:112: couldn't fetch peer state AAAA=: peer not found"


def test_the_fingerprint_is_that_of_the_warning_only() -> None:
    (mark,) = marks(NETBIRD, f"{WEDGE}\n{HARMLESS}\n{WEDGE.replace('WARN', 'DEBG')}\n")
    assert (mark.kind, mark.object, mark.at, mark.stamp_s) == (Kind.FINGERPRINT, "netbird", utc(2026, 9, 7, 7, 11, 26.508), pytest.approx(0.001))
    assert mark.data == {"text": "couldn't fetch peer state", "key": "AAAA="}
    assert NETBIRD.likes(WEDGE.encode())
    assert NETBIRD.likes(HARMLESS.encode())


def test_the_container_s_name_is_the_service() -> None:
    (mark,) = marks(NETBIRD, WEDGE, context(tag="netbird-proxy", envelope_at=99.0, node="edge-1"))
    assert (mark.object, mark.node, mark.at) == ("netbird-proxy", "edge-1", utc(2026, 9, 7, 7, 11, 26.508))


def test_behind_the_head_of_a_syslog() -> None:
    (mark,) = marks(NETBIRD, f"Sep  7 07:11:26 edge-1 netbird-proxy[7]: {WEDGE}")
    assert (mark.node, mark.stamp_s) == ("edge-1", pytest.approx(0.001))


def test_its_own_milliseconds_stand_before_the_envelope_s() -> None:
    own = utc(2026, 9, 7, 7, 11, 26.508)
    (mark,) = marks(NETBIRD, WEDGE, context(envelope_at=own + 0.5))
    assert mark.at == own


def test_routes_that_go_and_come() -> None:
    found = marks(
        NETBIRD,
        "2026-09-07T07:11:40.002Z INFO [a: b] client/x/client.go:238: network [wiki.example] has not been assigned a routing peer as no peers from the list [A=] are\n"
        "2026-09-07T07:11:52.618Z INFO client/x/client.go:250: New chosen route is r1 with peer B= with score 1.000000 for network [wiki.example]\n",
    )
    assert [(m.kind, m.object, m.data["state"]) for m in found] == [(Kind.NOTE, "wiki.example", "unrouted"), (Kind.NOTE, "wiki.example", "routed")]
