"""A person's command takes the Lease from the process that leads; both never act at once, and afterwards that one goes on."""

from __future__ import annotations

import asyncio
import itertools
import time

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.lease import Election, Term

TIMES = {"lease_s": 3.0, "renew_s": 2.0, "retry_s": 0.3}


def test_a_command_takes_it_acts_alone_and_gives_it_back(cluster, namespace, tmp_path):
    wanted = Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    acts: list[str] = []
    acted = asyncio.Event()

    async def story() -> None:
        async with connect(wanted) as api, connect(wanted) as other:
            running = asyncio.create_task(candidate(api, "role").lead(acting("role", 10_000)))
            await acted.wait()
            begun = time.monotonic()
            await candidate(other, "command").lead(acting("command", 10), wait_s=15.0, take=True)
            assert 3.0 <= time.monotonic() - begun < 8.0
            acted.clear()
            await acted.wait()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def candidate(api: Api, name: str) -> Election:
        return Election(api, "edgekeeper", namespace, name, SystemClock(), **TIMES)

    def acting(name: str, count: int):
        async def work(term: Term) -> None:
            for _ in range(count):
                term.check()
                acts.append(name)
                acted.set()
                await asyncio.sleep(0.02)

        return work

    asyncio.run(asyncio.wait_for(story(), 40))
    assert [name for name, _ in itertools.groupby(acts)] == ["role", "command", "role"]


def test_where_nobody_leads_there_is_nothing_to_take(cluster, namespace, tmp_path):
    wanted = Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    done: list[float] = []

    async def story() -> None:
        async with connect(wanted) as api:
            for _ in range(2):  # the first one makes it, the second one finds it released

                async def work(term: Term) -> None:
                    done.append(term.left_s())

                begun = time.monotonic()
                await Election(api, "edgekeeper", namespace, "command", SystemClock(), **TIMES).lead(work, wait_s=8.0, take=True)
            assert time.monotonic() - begun < 1.0

    asyncio.run(story())
    assert len(done) == 2
