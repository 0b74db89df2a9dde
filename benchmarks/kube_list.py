"""What listing 10,000 Ingresses costs, and keeping a copy of what matters of them: processor and memory of a fresh process, against a real API.

``python benchmarks/kube_list.py`` starts that API (``script/kube-assets`` makes its programs), fills it, and prints one JSON line;
``python benchmarks/kube_list.py measure list|reflect|import KUBECONFIG`` is the process that is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COUNT = 10_000
RUNS = 5
MOST = {"cpu_s": 0.6, "rss_mib": 110.0}
"""What was promised, for the list and for the copy."""


def rss_mib() -> float:
    """Memory of this process that is in use."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_s() -> float:
    """Processor that this process has used."""
    return time.process_time()


async def listed(path: str, keep: list[Any]) -> None:
    """The full list, every field of every object."""
    from edgekeeper.config.kubernetes import Kubernetes  # noqa: PLC0415 - the import is measured, too
    from edgekeeper.kube.client import connect  # noqa: PLC0415
    from edgekeeper.kube.objects import Ingress  # noqa: PLC0415

    async with connect(Kubernetes(kubeconfig=path)) as api:
        keep.append(await api.list(Ingress))
    assert len(keep[0].items) == COUNT


async def reflected(path: str, keep: list[Any]) -> None:
    """A copy of hosts, class, annotations and age: as ``expose`` keeps."""
    from edgekeeper.config.kubernetes import Kubernetes  # noqa: PLC0415
    from edgekeeper.host.clock import SystemClock  # noqa: PLC0415
    from edgekeeper.kube.client import connect  # noqa: PLC0415
    from edgekeeper.kube.objects import Ingress, created, meta  # noqa: PLC0415
    from edgekeeper.kube.reflector import Reflector  # noqa: PLC0415

    def project(obj: Ingress) -> tuple[Any, ...]:
        spec, of = obj.spec, meta(obj)
        hosts = tuple(rule.host for rule in (spec.rules if spec else None) or ())
        return of.uid, created(of), hosts, spec.ingressClassName if spec else None, tuple((of.annotations or {}).items())

    full = asyncio.Event()
    async with connect(Kubernetes(kubeconfig=path)) as api:
        copy = Reflector(api, Ingress, clock=SystemClock(), project=project, changed=full.set)
        running = asyncio.create_task(copy.run())
        await full.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert len(copy.items) == COUNT
    keep.append(copy)


def measure(what: str, path: str) -> None:
    """One fresh process; what the import costs is told apart."""
    start = cpu_s()
    import edgekeeper.kube.reflector  # noqa: F401, PLC0415

    imported = cpu_s()
    gc.collect()
    before = rss_mib()
    wall = time.perf_counter()
    kept: list[Any] = []  # not the result of asyncio.run: that writes out what it returns, to compare it with a signal's handler
    if what != "import":
        asyncio.run(listed(path, kept) if what == "list" else reflected(path, kept))
    done, wall = cpu_s(), time.perf_counter() - wall
    gc.collect()
    row = {"import_cpu_s": imported - start, "cpu_s": done - imported, "wall_s": wall, "rss_before_mib": before, "rss_mib": rss_mib()}
    print(json.dumps({name: round(value, 3) for name, value in row.items()}))


def manifest(index: int) -> dict[str, Any]:
    """An Ingress as they are in clusters, about 1.8 kB of JSON once the API has added its own fields: a host, TLS, two annotations."""
    name = f"web-{index:05d}"
    host = f"{name}.example"
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": name, "port": {"number": 8080}}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": name,
            "namespace": "bench",
            "labels": {"edgekeeper.io/public": "true"},
            "annotations": {"issuer.example/name": "letters", "controller.example/body-size": "64m"},
        },
        "spec": {"ingressClassName": "public", "tls": [{"hosts": [host], "secretName": f"{name}-tls"}], "rules": [{"host": host, "http": {"paths": [path]}}]},
    }


async def fill(path: str) -> None:
    """Create them all."""
    from edgekeeper.config.kubernetes import Kubernetes  # noqa: PLC0415
    from edgekeeper.kube.client import connect  # noqa: PLC0415
    from edgekeeper.kube.objects import Ingress, Namespace, ObjectMeta  # noqa: PLC0415

    async with connect(Kubernetes(kubeconfig=path, timeout=30.0)) as api:
        await api.create(Namespace(metadata=ObjectMeta(name="bench")))
        left = iter(range(COUNT))

        async def work() -> None:
            for index in left:
                await api.create(Ingress.from_dict(manifest(index)))

        await asyncio.gather(*(work() for _ in range(8)))


def run(what: str, path: str) -> dict[str, float]:
    """Medians of fresh processes."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    rows = [
        json.loads(subprocess.run([sys.executable, __file__, "measure", what, path], env=env, check=True, capture_output=True, text=True).stdout)
        for _ in range(RUNS)
    ]
    return {name: round(statistics.median(row[name] for row in rows), 3) for name in rows[0]}


async def found() -> dict[str, Any]:
    """A cluster, filled; each measurement in processes of its own."""
    from edgekeeper.lab.kube import Cluster  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        async with Cluster(Path(folder)) as cluster:
            path = str(cluster.kubeconfig(Path(folder) / "kubeconfig"))
            began = time.monotonic()
            await fill(path)
            filled = time.monotonic() - began
            rows = {what: run(what, path) for what in ("import", "list", "reflect")}
    kept = all(rows[what][name] <= most for what in ("list", "reflect") for name, most in MOST.items())
    return {"ingresses": COUNT, "fill_s": round(filled, 1), "runs": RUNS, **rows, "most": MOST, "kept": kept}


def rows() -> list[tuple[str, str, str, bool]]:
    """What the table of all benchmarks says of it."""
    told = asyncio.run(found())
    out = []
    for what, title in (("list", "listed"), ("reflect", "followed, what the role needs of each")):
        row = told[what]
        said = f"{row['cpu_s']:.2f} s of processor, {row['rss_mib']:.0f} MiB"
        out.append((f"{COUNT:,} Ingresses of a real API server, {title}", said, "0.6 s, 110 MiB", all(row[name] <= most for name, most in MOST.items())))
    return out


def start(words: Sequence[str]) -> None:
    """What the words say."""
    if words[:1] == ["measure"]:
        measure(words[1], words[2])
    else:
        told = asyncio.run(found())
        print(json.dumps(told))
        sys.exit(0 if told["kept"] else 1)


if __name__ == "__main__":
    start(sys.argv[1:])
