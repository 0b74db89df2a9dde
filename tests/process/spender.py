"""Spends budgets as fast as it can, in processes that are killed at any instant: ``spender.py STORE LOG SECONDS SEED``.

Each "yes" is appended to the log in one write: the key, when it was granted, when the act begins (CLOCK_BOOTTIME).
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from edgekeeper.errors import LockHeldError
from edgekeeper.host import budgets
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.budget import Bucket, Budget, Window

KEYS = {"quick": Budget((Bucket(3, 0.25), Window(12, 2.0))), "hour": Budget((Window(40, 3600.0),))}
WORKERS = 4


def work(store: str, log: int) -> None:
    clock = SystemClock()
    while True:
        for key, budget in KEYS.items():
            moment = clock.moment()
            try:
                answer = budgets.spend(store, key, budget, moment)
            except LockHeldError:
                continue
            if answer.allowed:
                granted = answer.budget.spent[-1] - moment.mono + moment.boot
                os.write(log, f"{key} {granted:.6f} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\n".encode())


def main() -> None:
    store, log, seconds, seed = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), float(sys.argv[3]), sys.argv[4]
    chance = random.Random(seed)
    running: list[int] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        while len(running) < WORKERS:
            if not (pid := os.fork()):
                work(store, log)
            running.append(pid)
        time.sleep(chance.uniform(0.0, 0.02))
        kill(running.pop(chance.randrange(len(running))))
    for pid in running:
        kill(pid)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
