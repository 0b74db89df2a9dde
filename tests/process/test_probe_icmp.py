"""ICMP in a network namespace of its own: with a raw socket, with the kernel's ping sockets, and with neither."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.root

BARE = "setpriv --bounding-set -net_raw --inh-caps -net_raw "
"""Root's rights but for raw sockets."""


def probe(before: str, *words: str, wrapper: str = "") -> subprocess.CompletedProcess[str]:
    script = f'ip link set lo up; ip route add unreachable 192.0.2.9; {before}; exec {wrapper}{sys.executable} -m edgekeeper probe "$@"'
    argv = ["unshare", "-n", "sh", "-c", script, "sh", *words, "--every", "50ms", "-o", "json"]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize(
    ("before", "wrapper"),
    [("true", ""), ("echo 0 0 >/proc/sys/net/ipv4/ping_group_range", BARE)],
    ids=["raw socket", "ping socket"],
)
def test_an_echo_is_answered_over_ipv4_and_ipv6(before: str, wrapper: str) -> None:
    done = probe(before, "icmp://127.0.0.1", "icmp://[::1]", "icmp://192.0.2.9", "--count", "3", wrapper=wrapper)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)["targets"]
    assert [one["unanswered"] for one in said] == [0, 0, 3]
    assert [one["asked"] for one in said] == [3, 3, 3]


def test_without_the_right_nothing_is_asked_and_the_exit_code_says_so() -> None:
    done = probe("true", "icmp://127.0.0.1", wrapper=BARE)
    assert done.returncode == 6, done.stderr
    assert "may not ask by ICMP" in done.stderr
    assert "CAP_NET_RAW" in done.stderr
    assert not done.stdout


def test_replies_to_others_are_not_ours() -> None:
    """A raw socket hears every reply of the machine, also those to a second meter that asks the same address."""
    other = f"{sys.executable} -m edgekeeper probe icmp://127.0.0.1 --every 10ms --duration 6s -o json >/dev/null & sleep 1"
    done = probe(other, "icmp://127.0.0.1", "icmp://127.0.0.2", "--count", "20")
    said = json.loads(done.stdout)["targets"]
    assert [(one["asked"], one["unanswered"]) for one in said] == [(20, 0), (20, 0)]
