"""A client that asks too much is refused, or dropped in the kernel, and its neighbour is not."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import socket
import subprocess
import time

import pytest

from edgekeeper.model.backend import Member

pytestmark = [pytest.mark.engine, pytest.mark.root]

LISTEN, FLOODER, NEIGHBOUR = "198.51.100.1", "198.51.100.9", "198.51.100.7"
CLONE_NEWNET = 0x40000000
REFUSED = 5
QUESTION = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\1x\3net\0\0\x10\0\1"


def asker(address):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind((address, 0))
    client.connect((LISTEN, 53))
    client.settimeout(0.3)
    return client


def outcome(address):
    """The rcode that a client gets, None for silence."""
    with asker(address) as client:
        client.send(QUESTION)
        try:
            return client.recv(512)[3] & 15
        except TimeoutError:
            return None


def flood(dnsdist, answerer, ebpf, tell):
    """In a network namespace of its own: what the flooder and its neighbour get afterwards."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (LISTEN, FLOODER, NEIGHBOUR):
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", "lo"], check=True)
    said = {"dynblocks": {"query_rate": 50, "window": "1s", "block": "60s"}, "health": {"name": "health.example."}}
    if ebpf:
        said["ebpf"] = {}
    topology = dnsdist.topology((Member("ns-a", "127.0.0.1", answerer("ns-a").port),), listen=[f"{LISTEN}:53"], acl=["198.51.100.0/24"], **said)
    seat, _ = dnsdist.start(topology)
    try:
        with asker(FLOODER) as client:
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                client.send(QUESTION)
                time.sleep(0.004)
        time.sleep(1.2)
        proven = asyncio.run(dnsdist.hands.prove(topology, seat, dnsdist.pids()[-1]))
        tell.put((outcome(FLOODER), outcome(NEIGHBOUR), proven))
    finally:
        dnsdist.stop()


@pytest.mark.parametrize("ebpf", [False, True], ids=["refused", "dropped in the kernel"])
def test_a_client_that_asks_too_much_is_blocked_and_its_neighbour_is_not(dnsdist, answerer, ebpf):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    forked = multiprocessing.get_context("fork")
    tell = forked.SimpleQueue()
    child = forked.Process(target=flood, args=(dnsdist, answerer, ebpf, tell))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert tell.get() == (None if ebpf else REFUSED, 0, None)
