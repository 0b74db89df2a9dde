"""The store of budgets among processes that are killed, frozen, and in each other's way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from edgekeeper.errors import LockHeldError
from edgekeeper.host import budgets
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.budget import Bucket, Window

from .spender import KEYS

HOLDER = """
import sys, time
from pathlib import Path
from edgekeeper.host.budgets import _locked
with _locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def granted(log: Path, key: str) -> list[tuple[float, float]]:
    """When each act of a key was granted and begun, in the order of granting."""
    lines = [line.split() for line in log.read_text().splitlines()]
    return sorted((float(at), float(began)) for name, at, began in lines if name == key)


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_instant_the_processes_together_never_act_more_often_than_is_allowed(tmp_path: Path, seed: int) -> None:
    store, log, seconds = tmp_path / "budgets.json", tmp_path / "log", 3.0
    began = time.monotonic()
    with subprocess.Popen([sys.executable, str(Path(__file__).with_name("spender.py")), str(store), str(log), str(seconds), str(seed)]) as spender:
        looks = 0
        while spender.poll() is None:
            if store.exists():
                assert json.loads(store.read_text())["schema"] == budgets.SCHEMA, "also in the middle it is whole"
                looks += 1
            time.sleep(0.01)
        assert spender.returncode == 0
    took = time.monotonic() - began
    assert looks > 50
    moment = SystemClock().moment()
    hour = granted(log, "hour")
    kept = len(budgets.ages(store, "hour", moment))
    assert len(hour) <= kept <= 40, "who was killed between the answer and the act has lost an act, nobody has won one"
    assert kept == 40, "killing did not keep the others from what is allowed"
    quick = granted(log, "quick")
    bucket, window = KEYS["quick"].rules
    assert isinstance(bucket, Bucket)
    assert isinstance(window, Window)
    assert len(quick) <= bucket.capacity + took / bucket.every_s
    assert len(quick) >= 4, "kills lose acts, but not all"
    for i, (first, _) in enumerate(quick):
        for number, (last, _) in enumerate(quick[i:], 1):
            assert number <= bucket.capacity + (last - first + 1e-5) / bucket.every_s
            assert number <= window.limit or last - first >= window.window_s - 1e-5
    assert all(at <= act for at, act in hour + quick), "the answer comes before the act"
    assert all(a <= b for (a, _), (b, _) in pairwise(hour))
    assert {path.name for path in tmp_path.iterdir()} - {"budgets.json", "budgets.json.lock", "log"} == left_over(tmp_path)
    budgets.spend(store, "after", KEYS["hour"], moment)
    assert not left_over(tmp_path), "what killed writers have left is removed by the next"


def left_over(folder: Path) -> set[str]:
    """Files that a killed writer did not rename: one at most, since the next writer removes it."""
    left = {path.name for path in folder.glob(".budgets.json.*")}
    assert len(left) <= 1
    return left


def test_a_frozen_process_with_the_lock_makes_others_refuse_in_two_seconds_and_say_whose_it_is(tmp_path: Path) -> None:
    store, clock = tmp_path / "budgets.json", SystemClock()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(store)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        os.kill(holder.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(LockHeldError, match=rf"another process \(pid {holder.pid}\) holds .* no automatic act is allowed meanwhile"):
            budgets.spend(store, "restart", KEYS["hour"], clock.moment())
        assert 1.9 < time.monotonic() - began < 3.0
        assert budgets.look(store, "restart", KEYS["hour"], clock.moment()).spent == (), "looking waits for nobody"
        holder.kill()
    assert budgets.spend(store, "restart", KEYS["hour"], clock.moment()).allowed, "a lock ends with its process"
