"""What the lb side costs: listing and freeing 20,000 sessions in three workers, rendering, an idle supervisor; ``bench.py`` prints it."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from edgekeeper.config.lb import Lb
from edgekeeper.engines.haproxy import render, seat
from edgekeeper.engines.haproxy.features import Features
from edgekeeper.engines.haproxy.topology import build
from process.fleet import fleet
from process.proxied import Proxied

VERSIONS = ("2.6", "3.0", "3.2")
Row = tuple[str, str, str, bool]


def sessions(version: str, times: int = 3) -> list[Row]:
    """20,000 connections in three workers, two of them of before a reload, a third of them on a server that is DOWN."""
    with tempfile.TemporaryDirectory() as folder, Proxied(Path(folder), version) as made:
        for net, count in ((1, 8000), (2, 8000), (3, 4000)):
            made.open(count, net, 200)
            if net < 3:
                made.reload()
        made.sick("cp1")
        listed = [_command("--socket", made.admin) for _ in range(times)]
        freed = _command("--socket", made.admin, "--free", "--yes", code=0)
        answered = made.asked()
        assert set(made.cut()) == {"cp1"}
        assert answered["silent"] == 0
    took, size = statistics.median(seconds for seconds, _ in listed), max(size for _, size in listed)
    return [
        (f"`lb sessions`, 20,000 in 3 workers, HAProxy {version}", f"{took:.2f} s, {size:.0f} MiB", "under 2 s, under 80 MiB", took < 2 and size < 80),
        (f"`lb sessions --free --yes` of a third of them, HAProxy {version}", f"{freed[0]:.2f} s, {freed[1]:.0f} MiB", "under 80 MiB", freed[1] < 80),
    ]


def _command(*words: object, code: int | None = None) -> tuple[float, float]:
    """Seconds and MiB of one ``edgekeeper lb sessions``."""
    peak = (
        "import resource,subprocess,sys; c=subprocess.call(sys.argv[1:],stdout=3); print(c,resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(0)"
    )
    argv = [sys.executable, "-I", "-S", "-c", peak.replace("stdout=3", "stdout=subprocess.DEVNULL")]
    begun = time.perf_counter()
    done = subprocess.run([*argv, sys.executable, "-m", "edgekeeper", "lb", "sessions", *map(str, words)], stdout=subprocess.PIPE, text=True, check=True)
    ended, size = (int(word) for word in done.stdout.split())
    assert code is None or ended == code
    return time.perf_counter() - begun, size / 1024


def rendering() -> list[Row]:
    """1,000 members of one service, with its three backends."""
    entries = [f"n{i}=192.0.2.{i % 250}:{5000 + i}" for i in range(1000)]
    lb = Lb.model_validate({"services": [{"name": "api", "listen": "127.0.0.1:6443", "kind": "kube-apiserver", "members": {"static": entries}}]})
    members = {"api": tuple(entry.member(6443) for entry in lb.services[0].members.static or ())}
    took = []
    for _ in range(15):
        begun = time.perf_counter()
        render.text(build(lb, members, {}), seat.make("/run/x", "0"), Features((3, 2, 0), transparent=True, tls=True))
        took.append(time.perf_counter() - begun)
    middle = statistics.median(took) * 1000
    return [("render 1,000 members in three backends, HAProxy", f"{middle:.0f} ms", "under 150 ms", middle < 150)]


def idle(seconds: float = 20) -> list[Row]:
    """An idle lb supervisor of three members, which looks at HAProxy twice a second."""
    with tempfile.TemporaryDirectory() as folder, fleet(Path(folder)) as made:
        run = made.run()
        made.wait_up()
        return idle_rows("lb", run.pid, seconds)


def idle_rows(role: str, pid: int, seconds: float) -> list[Row]:
    """What an idle supervisor takes of a core and of the memory."""
    time.sleep(2)
    before, begun = _cpu(pid), time.monotonic()
    time.sleep(seconds)
    share = 100 * (_cpu(pid) - before) / (time.monotonic() - begun)
    text = Path(f"/proc/{pid}/status").read_text()
    memory = int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
    return [
        (f"idle {role} supervisor, CPU", f"{share:.2f} % of a core over {seconds:g} s", "under 1 %", share < 1),
        (f"idle {role} supervisor, memory", f"{memory:.0f} MiB resident", "under 80 MiB", memory < 80),
    ]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rows() -> list[Row]:
    """All of them; the 20,000 sessions need as many descriptors on each side."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    out = rendering() + idle()
    for version in VERSIONS:
        out += sessions(version)
    return out
