"""What edgekeeper itself costs, each figure beside its limit; ``script/bench`` runs it.

Whole-process times are medians of alternating runs and given as ratios; the rest are medians or the
95th percentile of what one run on this machine showed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

import bounds  # noqa: E402 - as above
import expose  # noqa: E402 - as above
import expose_cluster  # noqa: E402 - as above
import kube_list  # noqa: E402 - as above
import lb  # noqa: E402 - as above
import probe  # noqa: E402 - as above
import report  # noqa: E402 - as above
import vip_probe  # noqa: E402 - as above
import watch  # noqa: E402 - as above

from edgekeeper.config.dns import Dns  # noqa: E402
from edgekeeper.dns.build import Build, detect  # noqa: E402
from edgekeeper.engines.dnsdist import api, view  # noqa: E402
from edgekeeper.engines.dnsdist.topology import build  # noqa: E402
from edgekeeper.model.backend import Member  # noqa: E402
from process.edge import dnsdist, edge, until  # noqa: E402 - after the path is set

SUITES = ("debian12", "debian13", "testing")
Row = tuple[str, str, str, bool]


def cold_start() -> list[Row]:
    """``edgekeeper --help`` against an interpreter that imports socket and ssl."""
    peer = [sys.executable, "-I", "-c", "import socket, ssl"]
    ours = [str(Path(sys.executable).with_name("edgekeeper")), "--help"]
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(12):
        for index, argv in enumerate((peer, ours)):
            begun = time.perf_counter()
            subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
            times[index].append(time.perf_counter() - begun)
    ratio = statistics.median(times[1][2:]) / statistics.median(times[0][2:])
    return [("edgekeeper --help, cold", f"{ratio:.1f} x `python3 -I -c 'import socket, ssl'`", "under 6 x", ratio < 6)]


def render(found: Build, suite: str) -> list[Row]:
    """1,000 members to files."""
    entries = [f"n{i}=192.0.2.{i % 250}:{5000 + i}" for i in range(1000)]
    dns = Dns.model_validate({"listen": ["127.0.0.1:53"], "members": {"static": entries}, "proxy_protocol": "off"})
    members = tuple(Member(e.name, e.host, e.port) for e in dns.members.static or ())
    seat = found.hands.new_seat(build(dns, members, (), found.features))
    took = []
    for _ in range(15):
        begun = time.perf_counter()
        found.engine.files(build(dns, members, (), found.features), seat)
        took.append(time.perf_counter() - begun)
    middle = statistics.median(took) * 1000
    return [(f"render 1,000 members, {found.engine.renderer} for {found.features.text} ({suite})", f"{middle:.0f} ms", "under 150 ms", middle < 150)]


def change(found: Build, suite: str, times: int = 30) -> list[Row]:
    """From the members file's rename to the member being in the engine (or gone from it)."""
    took = []
    with tempfile.TemporaryDirectory() as folder, edge(Path(folder), suite) as made:
        made.config.write_text(made.config.read_text().replace("debounce: 1s", "debounce: 0s"))
        made.run()
        made.wait_ready()
        seat = found.engine.load(json.dumps(json.loads((Path(folder) / "state/dns/current/generation.json").read_text())["document"]))[1]
        assert seat is not None
        for number in range(times):
            names = made.names if number % 2 else made.names[:2]
            begun = time.perf_counter()
            made.write_members(names)

            def there(names: list[str] = names) -> bool:
                held = view.parse(asyncio.run(api.get(seat.api_port, "/api/v1/servers/localhost", seat.api_key)))
                return held is not None and {s.name for s in held.servers if s.state != "DOWN"} == set(names)

            until(there, "the change is in the engine")
            took.append(time.perf_counter() - begun)
            time.sleep(1.4)  # a removal holds the console until an idle receiver wakes up, up to 1 s (see engines/dnsdist/functions.py)
    took.sort()
    p95 = took[int(len(took) * 0.95) - 1] * 1000
    what = f"member change to engine, {found.features.text} ({suite}), {times} changes"
    return [(what, f"p50 {statistics.median(took) * 1000:.0f} ms, p95 {p95:.0f} ms", "p95 under 200 ms", p95 < 200)]


def idle(seconds: float = 20) -> list[Row]:
    """An idle supervisor of three members."""
    with tempfile.TemporaryDirectory() as folder, edge(Path(folder)) as made:
        run = made.run()
        made.wait_ready()
        return lb.idle_rows("dns", run.pid, seconds)


def main() -> int:
    """Measure everything, print a table, and write it to the file that is named; 1 when a limit is broken."""
    rows = cold_start()
    for suite in SUITES:
        dns = Dns.model_validate({"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1:5300"]}, "engine": {"binary": dnsdist(suite)}})
        found = asyncio.run(detect(dns))
        rows += render(found, suite) + change(found, suite)
    rows += idle()
    rows += lb.rows()
    rows += vip_probe.rows()
    rows += watch.rows()
    rows += probe.rows() + bounds.rows() + report.rows()
    rows += kube_list.rows() + expose.rows() + expose_cluster.rows()
    lines = ["| what | measured | limit | |", "| --- | --- | --- | --- |"]
    lines += [f"| {what} | {measured} | {limit} | {'reached' if well else '**not reached**'} |" for what, measured, limit, well in rows]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
    return 0 if all(well for *_, well in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
