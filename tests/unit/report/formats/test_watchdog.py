from __future__ import annotations

import pytest
from tests.fakes.eventlines import marks

from edgekeeper.report.formats.watchdog import WATCHDOG
from edgekeeper.report.kinds import Kind

LOG = """\
Sep 07 08:20:15 edge-1 wiki-flood-watchdog[2207]: fingerprint "upstream gave up" seen, restarting wiki
Sep 07 08:20:17 edge-1 wiki-flood-watchdog[2207]: restarted wiki
Sep 07 08:23:01 edge-1 wiki-flood-watchdog[2207]: fingerprint "upstream gave up" seen, restart suppressed: cooldown 300s, last restart 166s ago
Sep 07 08:31:40 edge-1 wiki-watchdog[2311]: probe https://wiki.example round 1/3 failed: http_code=000
Sep 07 08:31:50 edge-1 wiki-watchdog[2311]: probe https://wiki.example ok
Sep 07 08:31:50 edge-1 wiki-watchdog[2311]: nothing to do
"""


def test_what_a_script_saw_did_and_held_back() -> None:
    found = marks(WATCHDOG, LOG)
    assert [(m.kind, m.object) for m in found] == [
        (Kind.FINGERPRINT, "wiki"),
        (Kind.WATCH_ACTING, "wiki"),
        (Kind.WATCH_RESTARTED, "wiki"),
        (Kind.FINGERPRINT, "wiki"),
        (Kind.WATCH_SUPPRESSED, "wiki"),
        (Kind.WATCH_PROBE, "https://wiki.example"),
        (Kind.WATCH_PROBE, "https://wiki.example"),
    ]
    assert {m.node for m in found} == {"edge-1"}
    assert found[2].data["took_s"] == pytest.approx(2.0)
    assert found[4].data == {"cooldown_s": 300.0, "since_s": 166.0}
    assert found[5].data == {"ok": False, "service": "wiki", "error": "http_code=000", "round": 1.0, "rounds": 3.0}
    assert found[6].data["ok"] is True
    assert all(WATCHDOG.likes(line.encode()) for line in LOG.splitlines())


def test_a_suppression_that_tells_no_numbers() -> None:
    (mark,) = marks(WATCHDOG, "Sep 07 08:23:01 edge-1 x-watchdog[811]: restart suppressed")
    assert (mark.kind, mark.object, mark.data) == (Kind.WATCH_SUPPRESSED, "x", {"cooldown_s": None, "since_s": None})
