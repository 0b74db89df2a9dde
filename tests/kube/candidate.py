"""One candidate as a process of its own: ``candidate.py KUBECONFIG NAMESPACE NAME LOG``. Short times, so that a test does not take long.

Each act is one line in the log, written in one go: the name, and when it began (CLOCK_BOOTTIME, taken after the term was asked).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time

from edgekeeper import log
from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import connect
from edgekeeper.kube.lease import Election, Term

LEASE_S, RENEW_S, RETRY_S = 3.0, 2.0, 0.3


async def main() -> None:
    kubeconfig, namespace, name, path = sys.argv[1:]
    log.setup("text", node=name)
    out = os.open(path, os.O_WRONLY | os.O_APPEND)

    async def work(term: Term) -> None:
        while True:
            term.check()
            os.write(out, f"{name} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\n".encode())
            await asyncio.sleep(0.005)

    async with connect(Kubernetes(kubeconfig=kubeconfig, timeout=1.0)) as api:
        election = Election(api, "writer", namespace, name, SystemClock(), lease_s=LEASE_S, renew_s=RENEW_S, retry_s=RETRY_S)
        task = asyncio.ensure_future(election.lead(work))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task


asyncio.run(main())
