"""From a change in a real cluster with many Ingress objects to the service written in the mesh (20 ms an answer); and what the role costs.

``python benchmarks/expose_cluster.py [HOSTS] [CHANGES]``: ``edgekeeper expose run`` as it is installed, a real kube-apiserver, the mesh's fake.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from expose_plain import Mesh

from edgekeeper.lab.kube import Cluster
from edgekeeper.lab.netbird_state import DOMAIN

EDGEKEEPER = str(Path(sys.executable).with_name("edgekeeper"))
INGRESSES = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses"


def ingress(name: str) -> dict[str, Any]:
    """An Ingress of usual size (1.3 kB as JSON), whose host is its name."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/", "/api", "/static")]
    noted = {f"example.org/note-{i}": "x" * 60 for i in range(6)}
    meta = {"name": name, "labels": {"edgekeeper.io/public": "true"}, "annotations": noted}
    spec = {"ingressClassName": "traefik", "rules": [{"host": f"{name}.{DOMAIN}", "http": {"paths": paths}}]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": spec}


def used(pid: int) -> tuple[float, float]:
    """Seconds of processor so far, and MiB at most."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) / 1024


async def found(mesh: Mesh, host: str) -> bool:
    """Whether a service for the host is there."""
    return bool((await asyncio.to_thread(lambda: mesh.order(do="find", domain=host))).get("service"))


async def fill(cluster: Cluster, count: int) -> None:
    """As many Ingresses, several at a time."""
    left = iter(range(count))

    async def some() -> None:
        for index in left:
            await cluster.must("POST", INGRESSES, ingress(f"h-{index:05}"))

    await asyncio.gather(*(some() for _ in range(8)))


async def measure(count: int, changes: int) -> dict[str, Any]:
    """The first publication, then one change after the other."""
    with tempfile.TemporaryDirectory() as name, await asyncio.to_thread(Mesh) as mesh:
        folder = Path(name)
        async with Cluster(folder / "kube") as cluster:
            for namespace in ("edgekeeper", "shop", "traefik"):
                await cluster.make_namespace(namespace)
            await cluster.must("POST", "/api/v1/namespaces/traefik/services", {"metadata": {"name": "traefik"}, "spec": {"ports": [{"port": 443}]}})
            await cluster.must("POST", "/apis/coordination.k8s.io/v1/namespaces/edgekeeper/leases", {"metadata": {"name": "edgekeeper-expose"}})
            await fill(cluster, count)
            token = folder / "token"
            token.touch(0o600)
            token.write_text(mesh.token)
            config = folder / "edgekeeper.yaml"
            config.write_text(
                f"""
node: bench
run_dir: {folder}/run
state_dir: {folder}/state
ops: {{listen: "127.0.0.1:18088"}}
kubernetes: {{kubeconfig: {cluster.kubeconfig(folder / "kubeconfig")}}}
expose:
  owner: bench
  events: false
  netbird: {{url: "{mesh.url}", token_file: {token}, router_group: routers}}
  targets: {{traefik: {{service: traefik/traefik}}}}
  service_cidr: 10.96.0.0/16
  prove: {{addresses: ["127.0.0.1:1"], timeout: 200ms}}
"""
            )
            begun = time.monotonic()
            process = subprocess.Popen(  # noqa: ASYNC220 - it takes a moment, and nothing else goes on meanwhile
                [EDGEKEEPER, "--config", str(config), "expose", "run"], stderr=(folder / "log").open("wb")
            )
            try:
                last = f"h-{count - 1:05}.{DOMAIN}"
                while not await found(mesh, last):
                    assert time.monotonic() - begun < 300, (folder / "log").read_text()[-2000:]
                    await asyncio.sleep(0.25)
                first = time.monotonic() - begun
                await asyncio.sleep(5)
                cpu, _ = used(process.pid)
                took = []
                for index in range(changes):
                    await cluster.must("POST", INGRESSES, ingress(f"new-{index}"))
                    at = time.monotonic()
                    while not await found(mesh, f"new-{index}.{DOMAIN}"):
                        assert time.monotonic() - at < 30
                        await asyncio.sleep(0.01)
                    took.append(time.monotonic() - at)
                    await asyncio.sleep(1.0)
                busy, peak = used(process.pid)
                await asyncio.sleep(20)
                idle, _ = used(process.pid)
            finally:
                process.terminate()
                process.wait(30)
    took.sort()
    return {
        "ingresses": count,
        "first_s": round(first, 1),
        "changes": changes,
        "written_p50_s": round(statistics.median(took), 3),
        "written_p95_s": round(took[int(len(took) * 0.95) - 1], 3),
        "written_max_s": round(took[-1], 3),
        "cpu_per_change_s": round((busy - cpu) / changes, 3),
        "idle_share": round((idle - busy) / 20, 4),
        "rss_peak_mib": round(peak, 1),
    }


def rows(count: int = 10_000, changes: int = 30) -> list[tuple[str, str, str, bool]]:
    """What the table says of it."""
    found = asyncio.run(measure(count, changes))
    return [
        (
            f"expose: an Ingress made among {count:,} to its service written, {changes} changes",
            f"p50 {found['written_p50_s']:.2f} s, p95 {found['written_p95_s']:.2f} s; {found['rss_peak_mib']:.0f} MiB at most",
            "p95 under 2 s, under 150 MiB",
            found["written_p95_s"] < 2 and found["rss_peak_mib"] < 150,
        )
    ]


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    print(json.dumps(asyncio.run(measure(*(numbers or [10_000]), *([30] if len(numbers) < 2 else []))), indent=1))
