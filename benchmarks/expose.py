"""What publishing costs against a mesh that answers in 20 ms: the first pass of many hosts, a steady pass, and memory; the field's controller beside it.

``python benchmarks/expose.py [HOSTS] [JSON]``: the installed command is measured, as a process of its own. With a third argument ``alone`` the
other controller, which asks one call after the other, is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from expose_plain import LATENCY_S, Mesh, hosts
from expose_plain import measure as plain

EDGEKEEPER = str(Path(sys.executable).with_name("edgekeeper"))


def write(folder: Path, mesh: Mesh, count: int) -> Path:
    """The config, its token and its hosts."""
    token, names, config = folder / "token", folder / "hosts.yaml", folder / "edgekeeper.yaml"
    token.touch(0o600)
    token.write_text(mesh.token)
    names.write_text("hosts:\n" + "".join(f"- {host}\n" for host in hosts(count)))
    config.write_text(
        f"""
node: bench
run_dir: {folder}/run
state_dir: {folder}/state
expose:
  owner: bench
  netbird: {{url: "{mesh.url}", token_file: {token}, router_group: routers}}
  sources: {{ingress: false, file: {names}}}
  targets: {{default: 198.51.100.10}}
  service_cidr: 198.51.100.0/24
"""
    )
    return config


def apply(config: Path) -> dict[str, Any]:
    """One pass by the command: what it said of itself, seconds of wall and processor, MiB at most."""
    begun = time.monotonic()
    process = subprocess.Popen([EDGEKEEPER, "--config", str(config), "expose", "apply", "-o", "json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said: dict[str, Any] = {}
    for line in process.stderr:
        event = json.loads(line) if line.startswith(b"{") else {}
        if event.get("event") == "expose.pass":
            said = event["data"]
        elif not event:
            print(line.decode().rstrip(), file=sys.stderr)
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    return {**said, "wall_s": round(time.monotonic() - begun, 2), "cpu_s": round(used.ru_utime + used.ru_stime, 2), "rss_mib": round(used.ru_maxrss / 1024, 1)}


def measure(count: int) -> dict[str, Any]:
    """The first pass and three steady ones."""
    with tempfile.TemporaryDirectory() as name, Mesh() as mesh:
        config = write(Path(name), mesh, count)
        first = apply(config)
        assert first["created"] == count, first
        mesh.order(do="counters", reset=True)
        steady = [apply(config) for _ in range(3)]
        calls = mesh.order(do="counters")
        assert all(one["created"] + one["updated"] + one["deleted"] == 0 for one in steady)
        return {"count": count, "first": first, "steady": sorted(steady, key=lambda one: float(one["took_s"]))[1], "steady_calls": calls}


def rows(count: int = 10_000) -> list[tuple[str, str, str, bool]]:
    """What the table says of it."""
    own, other = measure(count), plain(count)
    first, steady = own["first"], own["steady"]
    times = other.first_s / first["took_s"]
    calls = own["steady_calls"]
    asked = sum(calls["calls"].values()) / 3
    field_calls = ", ".join(f"{n} {method}" for method, n in sorted(other.steady_calls.items()))
    return [
        (
            f"expose: the first pass of {count:,} hosts, the mesh answers in {LATENCY_S * 1000:.0f} ms",
            f"{first['took_s']:.1f} s, a controller of the field {other.first_s:.0f} s: {times:.1f} x; {first['rss_mib']:.0f} MiB",
            "at least 8 x, under 150 MiB",
            times >= 8 and first["rss_mib"] < 150,
        ),
        (
            f"expose: a steady pass of {count:,} hosts",
            f"{steady['took_s']:.2f} s, {asked:.0f} GET, {calls['writes']} writes; the field's {other.steady_s:.2f} s, {field_calls}",
            "under 1 s, 1 GET, no write",
            steady["took_s"] < 1 and asked <= 1 and calls["writes"] == 0,
        ),
    ]


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    found: dict[str, Any] = {"latency_s": LATENCY_S, "edgekeeper": measure(number)}
    if "alone" not in sys.argv:
        other = plain(number)
        found["field"] = {"first_s": round(other.first_s, 2), "steady_s": round(other.steady_s, 2), "steady_calls": other.steady_calls}
        found["first_times_faster"] = round(other.first_s / found["edgekeeper"]["first"]["took_s"], 1)
    print(json.dumps(found, indent=1))
