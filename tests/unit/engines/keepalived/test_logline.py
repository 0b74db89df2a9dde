"""keepalived's log lines: what is news, and how loud."""

from __future__ import annotations

import pytest

from edgekeeper.engines.keepalived.logline import INFO, WARNING, parse_log

STAMP = "Mon Nov 30 06:25:07 2026: "


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("(VI_dns) Entering MASTER STATE", INFO),
        ("(VI_dns) Entering FAULT STATE", WARNING),
        ("Script `chk_dns` now returning 1", INFO),
        ("Unable to load ipset library", WARNING),
        ("Keepalived_vrrp(123) died: Respawning", WARNING),
        ("(VI_dns) Received advert from 192.0.2.12 with lower priority 190, ours 200, forcing new election", WARNING),
        ("daemon is already running", WARNING),
    ],
)
def test_with_and_without_a_stamp(line: str, level: int) -> None:
    assert parse_log(STAMP + line + "\n") == (level, line)
    assert parse_log(line) == (level, line)
    assert parse_log("Mon Nov  3 06:25:07 2026: " + line) == (level, line)


@pytest.mark.parametrize(
    "line",
    ["", "   ", "Sending gratuitous ARP on eth0 for 192.0.2.53", "(VI_dns) Sending/queueing gratuitous ARPs on eth0 for 192.0.2.53",
     "(VI_dns6) Sending/queueing Unsolicited Neighbour Adverts on eth0 for 2001:db8::53", "VI_dns: sending gratuitous ARP for 192.0.2.11", "Printing VRRP data for process(1) on signal",
     "Command line: '/usr/sbin/keepalived'", "              '--dont-fork'"],
)  # fmt: skip
def test_what_says_nothing_new(line: str) -> None:
    assert parse_log(STAMP + line) is None
