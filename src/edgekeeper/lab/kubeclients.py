"""Clients of a Kubernetes whose connections are pinned: the product's reflector and lease renewer, and ``kubectl get -w``.

``python -m edgekeeper.lab.kubeclients --kubeconfig FILE --namespace demo --lease demo --out seen.jsonl --kubectl /usr/bin/kubectl``

Each Ingress that a client learns of is a line of ``--out``: who, which, and when (monotonic clock). The first line on standard output says
that all of them work. kubectl is run again when it ends, as a script around it would; the end comes with TERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.host.clock import SystemClock
from edgekeeper.kube.client import Api, connect
from edgekeeper.kube.lease import Election, Term
from edgekeeper.kube.objects import Ingress, meta
from edgekeeper.kube.reflector import Reflector

_AGAIN_S = 0.2


@dataclass(slots=True)
class Seen:
    """What was seen first by whom; each is written at once."""

    out: TextIO
    wanted: int = 0
    known: set[tuple[str, str]] = field(default_factory=set)
    working: asyncio.Event = field(default_factory=asyncio.Event)
    """So many as ``wanted`` have seen something."""

    def note(self, who: str, what: str) -> None:
        """Somebody has learned of something, now."""
        if (who, what) not in self.known:
            self.known.add((who, what))
            self.out.write(json.dumps([who, what, time.monotonic()]) + "\n")
            self.out.flush()
            if len({name for name, _ in self.known}) >= self.wanted:
                self.working.set()


async def reflect(api: Api, namespace: str, seen: Seen) -> None:
    """The product's live copy of all Ingresses."""

    def changed() -> None:
        for _, name in reflector.items:
            seen.note("reflector", name)

    def name_of(one: Ingress) -> str:
        return meta(one).name or ""

    reflector = Reflector(api, Ingress, clock=SystemClock(), project=name_of, namespace=namespace, changed=changed)
    await reflector.run()


async def renew(api: Api, namespace: str, lease: str, seen: Seen) -> None:
    """Hold a Lease."""

    async def work(_: Term) -> None:
        seen.note("lease", "leads")
        await asyncio.Event().wait()

    await Election(api, lease, namespace, "client-a", SystemClock()).lead(work)


async def kubectl(binary: str, kubeconfig: Path, namespace: str, seen: Seen) -> None:
    """``kubectl get ingresses -w`` in a loop; its cache is beside the kubeconfig."""
    argv = [binary, "--kubeconfig", str(kubeconfig), "--namespace", namespace, "get", "ingresses", "--watch", "--output", "name"]
    env = {**os.environ, "HOME": str(kubeconfig.parent)}
    while True:
        with (kubeconfig.parent / "kubectl.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log, env=env)
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe was asked for
            async for line in process.stdout:
                seen.note("kubectl", line.decode().strip().rpartition("/")[2])
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        await asyncio.sleep(_AGAIN_S)


async def run(config: Path, namespace: str, lease: str, binary: str, seen: Seen) -> None:
    """All of them until TERM; says so once each has seen something."""
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    wanted = Kubernetes.model_validate({"kubeconfig": str(config)})
    async with connect(wanted) as watching, connect(wanted) as renewing:
        works = [reflect(watching, namespace, seen), renew(renewing, namespace, lease, seen)]
        if binary:
            works.append(kubectl(binary, config, namespace, seen))
        seen.wanted = len(works)
        tasks = [asyncio.create_task(work) for work in works]
        await seen.working.wait()
        sys.stdout.write(f"{time.monotonic():.6f}\n")
        sys.stdout.flush()
        await end.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """The command line of the clients."""
    parser = argparse.ArgumentParser(prog="edgekeeper.lab.kubeclients", description="Clients of a Kubernetes behind a load balancer.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--lease", required=True, help="the name of the Lease that the renewer holds")
    parser.add_argument("--kubectl", default="", help="a kubectl; none when not said")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    with args.out.open("w", encoding="ascii") as out, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(args.kubeconfig, args.namespace, args.lease, args.kubectl, Seen(out)))


if __name__ == "__main__":
    main()
