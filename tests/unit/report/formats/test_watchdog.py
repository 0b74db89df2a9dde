from __future__ import annotations

import pytest
from tests.fakes.eventlines import marks

from edgekeeper.report.formats.watchdog import WATCHDOG
from edgekeeper.report.kinds import Kind

LOG = """\
Sep 07 06:52:08 edge-1 netbird-proxy-flood-watchdog[811]: fingerprint "couldn't fetch peer state" seen, restarting netbird-proxy
Sep 07 06:52:10 edge-1 netbird-proxy-flood-watchdog[811]: restarted netbird-proxy
Sep 07 06:56:46 edge-1 netbird-proxy-flood-watchdog[811]: fingerprint "couldn't fetch peer state" seen, restart suppressed: cooldown 600s, last restart 278s ago
Sep 07 07:03:31 edge-1 netbird-proxy-watchdog[902]: probe https://git.example.net round 1/3 failed: http_code=000
Sep 07 07:03:41 edge-1 netbird-proxy-watchdog[902]: probe https://git.example.net ok
Sep 07 07:03:41 edge-1 netbird-proxy-watchdog[902]: nothing to do
"""


def test_what_a_script_saw_did_and_held_back() -> None:
    found = marks(WATCHDOG, LOG)
    assert [(m.kind, m.object) for m in found] == [
        (Kind.FINGERPRINT, "netbird-proxy"),
        (Kind.WATCH_ACTING, "netbird-proxy"),
        (Kind.WATCH_RESTARTED, "netbird-proxy"),
        (Kind.FINGERPRINT, "netbird-proxy"),
        (Kind.WATCH_SUPPRESSED, "netbird-proxy"),
        (Kind.WATCH_PROBE, "https://git.example.net"),
        (Kind.WATCH_PROBE, "https://git.example.net"),
    ]
    assert {m.node for m in found} == {"edge-1"}
    assert found[2].data["took_s"] == pytest.approx(2.0)
    assert found[4].data == {"cooldown_s": 600.0, "since_s": 278.0}
    assert found[5].data == {"ok": False, "service": "netbird-proxy", "error": "http_code=000", "round": 1.0, "rounds": 3.0}
    assert found[6].data["ok"] is True
    assert all(WATCHDOG.likes(line.encode()) for line in LOG.splitlines())


def test_a_suppression_that_tells_no_numbers() -> None:
    (mark,) = marks(WATCHDOG, "Sep 07 06:56:46 edge-1 x-watchdog[811]: restart suppressed")
    assert (mark.kind, mark.object, mark.data) == (Kind.WATCH_SUPPRESSED, "x", {"cooldown_s": None, "since_s": None})
