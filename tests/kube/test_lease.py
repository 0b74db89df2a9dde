"""One of two processes leads, whatever is done to them and to what is between them and the real API."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import LockHeldError
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import connect
from edgekeeper.kube.errors import Unreachable
from edgekeeper.kube.lease import Election, Term
from edgekeeper.kube.objects import Lease, LeaseSpec, ObjectMeta
from edgekeeper.lab.kube import Cluster

LEASE_S, RETRY_S = 3.0, 0.3  # as in candidate.py
SLACK_S = 1.5
"""What a process and a request need on a machine that has other things to do."""


def boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Between:
    """A TCP proxy before the API: cut, it keeps its connections and takes new ones, and nothing comes through."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._open = asyncio.Event()
        self._open.set()
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for pipe in self._pipes:
                pipe.cancel()
            await asyncio.gather(*self._pipes, return_exceptions=True)
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, back]
        for one, other in ((reader, back), (there, writer)):
            self._pipes.add(asyncio.ensure_future(self._pipe(one, other)))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
        writer.transport.abort()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()


class Stage:
    """Candidates, and the log in which each of their acts is."""

    def __init__(self, cluster: Cluster, folder: Path, namespace: str) -> None:
        self.cluster, self.folder, self.namespace = cluster, folder, namespace
        self.log = folder / "acts"
        self.log.touch()
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *, port: int | None = None) -> subprocess.Popen[bytes]:
        server = f"https://127.0.0.1:{port}" if port else ""
        config = self.cluster.kubeconfig(self.folder / f"{name}.yaml", server=server)
        program = str(Path(__file__).with_name("candidate.py"))
        with (self.folder / f"{name}.log").open("wb") as err:
            made = subprocess.Popen([sys.executable, program, str(config), self.namespace, name, str(self.log)], stderr=err)
        self.running.append(made)
        return made

    def acts(self) -> list[tuple[str, float]]:
        lines = self.log.read_text(encoding="ascii").splitlines()
        return [(name, float(when)) for name, when in (line.split() for line in lines)]

    def last(self, name: str) -> float:
        return max((when for who, when in self.acts() if who == name), default=0.0)

    async def acting(self, name: str, since: float, within: float) -> float:
        """When the first act of ``name`` after ``since`` began."""
        while boot() - since < within:
            found = [when for who, when in self.acts() if who == name and when > since]
            if found:
                return found[0]
            await asyncio.sleep(0.02)
        told = {path.name: path.read_text(encoding="utf-8")[-2000:] for path in self.folder.glob("*.log")}
        pytest.fail(f"{name} does not act within {within:g} s: {told}")

    def gaps(self) -> list[float]:
        """Seconds from the last act of one to the first act of the next, at each change; negative: they acted at the same time."""
        acts = self.acts()
        spans: list[list[float]] = []
        whose: list[str] = []
        for name, when in sorted(acts, key=lambda act: act[1]):
            if whose and whose[-1] == name:
                spans[-1][1] = when
            else:
                whose.append(name)
                spans.append([when, when])
        return [after[0] - before[1] for before, after in itertools.pairwise(spans)]

    def end(self) -> None:
        for one in self.running:
            one.kill()
            one.wait()


@pytest.fixture
def stage(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(cluster, tmp_path, namespace)
    asyncio.run(free(cluster, namespace, tmp_path))
    yield made
    made.end()


async def free(cluster: Cluster, namespace: str, folder: Path) -> None:
    """An empty Lease, as the manifests make it."""
    async with connect(Kubernetes(kubeconfig=str(cluster.kubeconfig(folder / "admin.yaml")))) as api:
        await api.create(Lease(metadata=ObjectMeta(name="writer", namespace=namespace), spec=LeaseSpec()))


def followed(stage: Stage, changes: int) -> list[float]:
    """That at each change the one before had stopped; a change back to a candidate counts too."""
    gaps = stage.gaps()
    assert len(gaps) == changes, stage.gaps()
    assert all(gap > 0 for gap in gaps)
    return gaps


def test_a_holder_that_is_killed_is_followed_when_its_lease_is_over(stage):
    async def story() -> None:
        first = stage.start("a")
        await stage.acting("a", boot(), 10)
        stage.start("b")
        await asyncio.sleep(1)
        first.kill()
        await stage.acting("b", boot(), LEASE_S + RETRY_S + SLACK_S)
        (gap,) = followed(stage, 1)
        assert gap > LEASE_S - RETRY_S - 0.5

    asyncio.run(story())


def test_a_holder_that_was_stopped_does_nothing_once_it_wakes_after_its_lease(stage):
    async def story() -> None:
        first = stage.start("a")
        await stage.acting("a", boot(), 10)
        second = stage.start("b")
        for waker, other, name in ((first, second, "b"), (second, first, "a")):
            waker.send_signal(signal.SIGSTOP)
            stopped = boot()
            await stage.acting(name, stopped, LEASE_S + RETRY_S + SLACK_S)
            waker.send_signal(signal.SIGCONT)
            await asyncio.sleep(1.5)  # it acts no more, and goes on as a candidate
            assert stage.last("a" if name == "b" else "b") <= stopped + 0.1
            assert other.poll() is None
        followed(stage, 2)

    asyncio.run(story())


def test_a_holder_whose_connection_is_cut_stops_before_the_next_begins_and_comes_back_as_a_candidate(stage):
    async def story() -> None:
        between = Between(int(stage.cluster.url.rpartition(":")[2]))
        async with between.serve() as port:
            stage.start("a", port=port)
            await stage.acting("a", boot(), 10)
            second = stage.start("b")
            await asyncio.sleep(1)
            between.cut()
            cut = boot()
            began = await stage.acting("b", cut, LEASE_S + RETRY_S + SLACK_S)
            stopped = stage.last("a")
            assert stopped < cut + 2.05, "its term is 2 s from the last renewal"
            assert began - stopped > LEASE_S - 2.0 - 0.1, "what the times leave between two terms"
            between.mend()
            await asyncio.sleep(1.5)
            assert stage.last("a") == stopped
            second.terminate()
            assert second.wait(5) == 0
            await stage.acting("a", boot(), RETRY_S + SLACK_S)
        followed(stage, 2)

    asyncio.run(story())


def test_an_orderly_end_lets_the_next_lead_at_once(stage):
    async def story() -> None:
        first = stage.start("a")
        await stage.acting("a", boot(), 10)
        stage.start("b")
        await asyncio.sleep(1.5)
        first.terminate()
        assert first.wait(5) == 0
        await stage.acting("b", boot(), RETRY_S + SLACK_S)
        (gap,) = followed(stage, 1)
        assert gap < RETRY_S + SLACK_S

    asyncio.run(story())


def test_a_frozen_api_stops_all_work_and_a_thawed_one_lets_one_work_again(clusters, tmp_path):
    async def story(cluster: Cluster) -> None:
        namespace = await cluster.make_namespace("edge")
        await free(cluster, namespace, tmp_path)
        stage = Stage(cluster, tmp_path, namespace)
        try:
            stage.start("a")
            await stage.acting("a", boot(), 10)
            stage.start("b")
            await asyncio.sleep(1)
            cluster.freeze()
            frozen = boot()
            await asyncio.sleep(LEASE_S + 2)
            assert stage.last("a") < frozen + 2.05
            assert stage.last("b") == 0.0
            cluster.thaw()
            thawed = boot()
            while not any(when > thawed for _, when in stage.acts()):
                assert boot() - thawed < LEASE_S + SLACK_S
                await asyncio.sleep(0.02)
            cluster.kill()
            killed = boot()
            await asyncio.sleep(2.5)
            assert max(stage.last("a"), stage.last("b")) < killed + 2.05
            await cluster.start_api()
            back = boot()
            while not any(when > back for _, when in stage.acts()):
                assert boot() - back < 2 * LEASE_S + SLACK_S
                await asyncio.sleep(0.02)
            assert all(gap > 0 for gap in stage.gaps())
        finally:
            stage.end()

    asyncio.run(story(clusters()))


def test_what_is_written_is_a_lease_as_others_know_it_and_who_waits_a_moment_is_told_who_holds_it(cluster, namespace, tmp_path):
    async def story() -> None:
        await free(cluster, namespace, tmp_path)
        async with connect(Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "k.yaml")))) as api:
            read: list[LeaseSpec] = []

            async def work(term: Term) -> None:
                read.append((await cluster.must("GET", path))["spec"])
                other = Election(api, "writer", namespace, "b", SystemClock())
                with pytest.raises(LockHeldError, match=f"the Lease is held by a_{one.me[2:]}; nothing is done here"):
                    await other.lead(work, wait_s=0.2)

            path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/writer"
            one = Election(api, "writer", namespace, "a", SystemClock())
            await one.lead(work, wait_s=3)
            (spec,) = read
            assert spec["holderIdentity"] == one.me
            assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 1)
            assert len(spec["renewTime"]) == len("2026-01-01T00:00:00.000001Z")
            assert (await cluster.must("GET", path))["spec"]["holderIdentity"] == ""

    asyncio.run(story())


def test_a_lease_deleted_under_its_holder_is_waited_for_by_others_and_made_again_by_it(cluster, namespace, tmp_path):
    async def story() -> None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/writer"
        led: list[tuple[str, float]] = []

        async with connect(Kubernetes(kubeconfig=str(cluster.kubeconfig(tmp_path / "k.yaml")))) as api:

            async def lead(name: str) -> None:
                async def work(term: Term) -> None:
                    led.append((name, time.monotonic()))
                    await asyncio.sleep(60)

                await Election(api, "writer", namespace, name, SystemClock(), lease_s=2.0, renew_s=1.5, retry_s=0.2).lead(work)

            began = time.monotonic()
            tasks = [asyncio.create_task(lead("a"))]
            await asyncio.sleep(2.5)
            assert [name for name, _ in led] == ["a"]
            assert led[0][1] - began >= 2.0, "one that is not there is waited for"
            tasks.append(asyncio.create_task(lead("b")))
            await asyncio.sleep(0.3)
            await cluster.must("DELETE", path)
            await asyncio.sleep(3)
            assert [name for name, _ in led] == ["a"]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(story())


def test_a_holder_whose_server_is_frozen_keeps_its_lead_by_another_server_and_so_does_who_asks_only_for_a_moment(clusters, tmp_path):
    async def story(cluster: Cluster) -> None:
        namespace = await cluster.make_namespace("edge")
        config = cluster.kubeconfig(tmp_path / "k.yaml", server=cluster.urls[0])
        both = Kubernetes(kubeconfig=str(config), servers=cluster.urls, timeout=1.0)
        await free(cluster, namespace, tmp_path)
        terms: list[Term] = []

        leads = asyncio.Event()

        async def work(term: Term) -> None:
            terms.append(term)
            leads.set()
            await asyncio.sleep(60)

        async with connect(both) as api, connect(both.model_copy(update={"timeout": 60.0})) as other:
            one = Election(api, "writer", namespace, "a", SystemClock(), lease_s=6, renew_s=4, retry_s=0.5)
            task = asyncio.create_task(one.lead(work))
            await leads.wait()
            second = Election(other, "writer", namespace, "b", SystemClock())
            with pytest.raises(LockHeldError):
                await second.lead(work, wait_s=1.0)
            cluster.freeze(0)
            with pytest.raises(Unreachable):
                await second.lead(work, wait_s=1.2)
            with pytest.raises(LockHeldError, match="the Lease is held by a_"):
                await second.lead(work, wait_s=1.5)
            await asyncio.sleep(3)
            assert one.leads
            assert len(terms) == 1
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        cluster.thaw(0)

    asyncio.run(story(clusters(apis=("127.0.0.1:0", "127.0.0.1:0"))))
