"""The question that dnsdist answers itself, and what the look at a service behind a VIP makes of a real dnsdist in every state."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace

import pytest

from edgekeeper.model.backend import Member
from edgekeeper.vip.look import Target, look

pytestmark = pytest.mark.engine

HEALTH = {"name": "health.example.", "type": "TXT", "interval": "1s", "timeout": "200ms", "fall": 1}


def target(topology, seat, folder, require=1):
    (folder / "key").write_text(seat.api_key + "\n")
    address = topology.listeners[0].address
    return Target("dns", address, "www.example.", "TXT", f"http://127.0.0.1:{seat.api_port}", str(folder / "key"), require)


def until(kind, asked, within_s=6.0):
    """Look until it is so; the last sample."""
    end = time.monotonic() + within_s
    while (found := look(asked, 0.4)).kind != kind and time.monotonic() < end:
        time.sleep(0.1)
    return found


def test_a_look_tells_members_from_the_engine_itself(dnsdist, answerer, tmp_path):
    behind = answerer("x")
    topology = dnsdist.topology((Member("ns-a", "127.0.0.1", behind.port),), health=HEALTH)
    seat, pid = dnsdist.start(topology)
    asked = target(topology, seat, tmp_path)
    assert until("good", asked).usable == 1
    heard = len([packet for packet in behind.heard if b"edgekeeper" in packet])
    assert heard == 0, "a member was asked the engine's own question"

    behind.silent = True
    ill = look(asked._replace(name="other.example.", api="", api_key_file=""), 0.4)  # the first is in the cache
    assert (ill.kind, ill.usable) == ("members", None), ill
    down = until("members", asked)
    assert down.kind == "members"

    os.kill(pid, signal.SIGSTOP)
    assert look(asked, 0.4).kind == "silent"
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    assert until("dead", asked).kind == "dead"


def test_fewer_members_than_wanted_are_counted_and_forwarded_zones_are_not_among_them(newest, answerer, tmp_path):
    one, lan = answerer("x"), answerer("lan")
    topology = newest.topology((Member("ns-a", "127.0.0.1", one.port),), forward={"lan.": (Member("", "127.0.0.1", lan.port),)}, health=HEALTH)
    seat, _ = newest.start(topology)
    asked = target(topology, seat, tmp_path, require=2)
    time.sleep(0.1)
    found = until("members", asked)
    assert (found.kind, found.usable) == ("members", 1), found
    assert look(asked._replace(require=1), 0.4).kind == "good"
    wrong = tmp_path / "wrong"
    wrong.write_text("no-such-key\n")
    unknown = look(asked._replace(api_key_file=str(wrong)), 0.4)
    assert (unknown.kind, unknown.usable) == ("good", None)
    assert "its API answers 401" in unknown.why
    assert "no-such-key" not in unknown.why


def test_an_engine_from_before_the_self_answer_gets_it_without_a_restart(dnsdist, answerer):
    behind = answerer("x")
    wanted = dnsdist.topology((Member("ns-a", "127.0.0.1", behind.port),), health=HEALTH)
    before = replace(wanted, rules=wanted.rules[1:])
    seat, _ = dnsdist.start(before)
    assert asyncio.run(dnsdist.hands.live(before, wanted, seat)) is None
    behind.silent = True
    assert look(Target("dns", wanted.listeners[0].address, "www.example.", "TXT"), 0.4).kind == "members"
