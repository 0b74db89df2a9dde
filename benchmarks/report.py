"""What reading logs costs, beside ``wc -l``, DuckDB, jq and GoAccess, in one run; every answer is compared with the truth before a time is printed.

``python benchmarks/report.py [LINES]`` makes a day of logs in a temporary folder (2 GB for two million lines), reads it, prints a Markdown
table, and removes it. "Full workload": requests by route, minute, class and status, how long answers took, and the outages of the roll with
their bounds. "Smaller answer": 5xx by route and minute. A peer that is not installed is said.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import report_logs
from report_child import WINDOW
from report_logs import LINES

RUNS = 5
SAMPLE = 10
"""jq and GoAccess read a log of a tenth of the lines: ten times that time is what the table says."""
CHILD = str(Path(__file__).with_name("report_child.py"))
Row = tuple[str, str, str, bool]
_LAUNCH = (
    "import resource,subprocess,sys,time;b=time.perf_counter();c=subprocess.call(sys.argv[2:],stdout=open(sys.argv[1],'wb'));"
    "t=time.perf_counter()-b;u=resource.getrusage(resource.RUSAGE_CHILDREN);print(c,t,u.ru_utime+u.ru_stime,u.ru_maxrss/1024)"
)
_SMALLER = "select RouterName, substr(StartUTC, 1, 16) as minute, count(*) as n from {log} where DownstreamStatus >= 500 group by all"
_FULL = """
create temp table t as select RouterName as r, (epoch_us(cast(StartUTC as timestamptz)) / 1e6)::double as ts, Duration / 1e9 as took, DownstreamStatus as s,
  case when starts_with(ClientAddr, '198.51.100.') then 'guests' when starts_with(ClientAddr, '203.0.113.') then 'public'
  when cast(split_part(split_part(ClientAddr, ':', 1), '.', 4) as int) < 128 then 'lan' else 'vpn' end as c from {log};
create temp table m as select r, floor(ts / 60)::int as minute, c, s, count(*) as n from t group by all;
create temp table q as select r, approx_quantile(took, [0.5, 0.95, 0.99]) as q from t where s < 499 group by r;
create temp table e as select *, lag(bad) over w as before, lead(bad) over w as after, lag(ts) over w as last_ok, lead(ts + took) over w as next_ok from
  (select r, ts, took, s in (502, 503, 504) as bad from t where ts between {begin} and {end} and s not in (499, 500)) window w as (partition by r order by ts);
select c || ' ' || s, sum(n) from m group by all;
"""


@dataclass
class Cost:
    """What one program cost, each time that it ran."""

    what: str
    answer: str = ""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    scale: int = 1

    def row(self, floor: float) -> str:
        """Its line of the table."""
        wall, note = statistics.median(self.wall) * self.scale, f" ({SAMPLE} x a tenth)" if self.scale > 1 else ""
        cpu, rss = statistics.median(self.cpu) * self.scale, f"{max(self.rss):.0f}"
        return f"| {self.what} | {wall:.2f}{note} | {wall / floor:.1f} | {cpu:.2f} | {rss} | {self.answer} |"


def main() -> int:
    """Measure and print; 1 when a limit is broken."""
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    table, rows = measured(lines)
    sys.stdout.write("\n".join([*table, "", "| what | measured | limit | |", "| --- | --- | --- | --- |"]) + "\n")
    for what, said, limit, well in rows:
        sys.stdout.write(f"| {what} | {said} | {limit} | {'reached' if well else '**not reached**'} |\n")
    return 0 if all(well for *_, well in rows) else 1


def rows() -> list[Row]:
    """Each figure beside its limit."""
    return measured(LINES)[1]


def measured(lines: int) -> tuple[list[str], list[Row]]:
    """The table of costs, and the figures that have limits."""
    with tempfile.TemporaryDirectory(prefix="report-") as temp:
        folder = Path(temp)
        log, small = folder / "access.log", folder / "small.log"
        truth, few = report_logs.write(log, lines), report_logs.write(small, lines // SAMPLE)
        size = log.stat().st_size
        floor = Cost("`wc -l`", "lines only")
        ours = {jobs: Cost(f"edgekeeper, full workload, {jobs} {'processes' if jobs > 1 else 'process'}") for jobs in (2, 1)}
        duck = {name: Cost(f"DuckDB, {name}, 2 threads") for name in ("smaller answer", "full workload without bounds")}
        found = _has("duckdb")
        inside = 0
        for _ in range(RUNS):
            run(floor, folder, ["wc", "-l", str(log)])
            for jobs, cost in ours.items():
                run(cost, folder, [sys.executable, CHILD, str(log), str(jobs)])
                inside = _check(json.loads((folder / "out").read_text()), truth)
                cost.answer = f"OK, {inside} of {len(truth.outages)} outages inside their bounds"
            for name, cost in duck.items() if found else ():
                run(cost, folder, [sys.executable, __file__, "--duckdb", str(log), name])
                said = json.loads((folder / "out").read_text())
                cost.answer = "OK" if said == (truth.cells if name.startswith("smaller") else truth.classes) else "**differs**"
        others = [*_jq(folder, small, few), *_goaccess(folder, small)]
    middle = statistics.median(floor.wall)
    table = [f"{lines:,} lines, {size / 1e6:,.0f} MB, {os.cpu_count()} processors; medians of {RUNS} alternating runs.", ""]
    table += ["| program | wall s | x `wc -l` | CPU s | peak MiB of a process | answer |", "| --- | --- | --- | --- | --- | --- |"]
    table += [cost.row(middle) for cost in (floor, *ours.values(), *(duck.values() if found else ()), *(c for c in others if isinstance(c, Cost)))]
    table += [f"| {missing} | not installed: not measured | | | | |" for missing in ([] if found else ["DuckDB"]) + [c for c in others if isinstance(c, str)]]
    return table, _limits(lines, middle, ours, others, inside, len(truth.outages))


def _limits(lines: int, floor: float, ours: dict[int, Cost], others: Sequence[Cost | str], inside: int, planted: int) -> list[Row]:
    wall, rss = statistics.median(ours[2].wall), max(*ours[2].rss, *ours[1].rss)
    what = f"read {lines:,} lines of Traefik JSON, full workload, 2 processes"
    found = [
        (what, f"{wall:.2f} s, {wall / floor:.1f} x `wc -l`", "at most 12 x `wc -l`", wall <= 12 * floor),
        (f"{what}: memory of a process", f"{rss:.0f} MiB", "under 128 MiB", rss < 128),
        ("planted outages inside their printed bounds", f"{inside} of {planted}", "all", inside == planted),
    ]
    jq = next((c for c in others if isinstance(c, Cost) and c.what.startswith("jq")), None)
    if jq is not None:
        times = statistics.median(jq.wall) * jq.scale / wall
        found.append((f"{what}, against jq's smaller answer", f"{times:.0f} x faster", "at least 6 x", times >= 6))
    return found


def run(cost: Cost, folder: Path, argv: Sequence[str]) -> None:
    """Run a program once, its output in ``out``; from a small process, so that its memory is its own."""
    made = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(folder / "out"), *argv]
    code, wall, cpu, rss = (float(word) for word in subprocess.run(made, stdout=subprocess.PIPE, check=True, text=True).stdout.split())
    assert code == 0, argv
    cost.wall.append(wall)
    cost.cpu.append(cpu)
    cost.rss.append(rss)


def _check(said: dict[str, Any], truth: report_logs.Truth) -> int:
    """How many planted outages lie inside the bounds; everything else must be as planted."""
    assert said["lines"] == truth.lines
    assert said["skipped"] == {}
    assert said["cells"] == truth.cells
    assert said["classes"] == truth.classes
    inside = 0
    for router, begin, end in truth.outages:
        at = [o for o in said["outages"] if o["router"] == router and begin - 1 <= o["first_bad"] <= end + 1]
        inside += len(at) == 1 and at[0]["min_s"] <= end - begin <= (at[0]["max_s"] or math.inf)
    for o in said["outages"]:
        assert any(router == o["router"] and begin - 1 <= o["first_bad"] <= end + 1 for router, begin, end in truth.outages), o
    return inside


def _jq(folder: Path, log: Path, truth: report_logs.Truth) -> list[Cost | str]:
    if not shutil.which("jq"):
        return ["jq"]
    cost = Cost("jq, smaller answer", scale=SAMPLE)
    for _ in range(2):
        run(cost, folder, ["jq", "-r", 'select(.DownstreamStatus >= 500) | "\\(.RouterName) \\(.StartUTC[0:16])"', str(log)])
    said = Counter((folder / "out").read_text().splitlines())
    cost.answer = "OK" if sorted(said.values()) == sorted(truth.cells.values()) else "**differs**"
    return [cost]


def _goaccess(folder: Path, log: Path) -> list[Cost | str]:
    if not shutil.which("goaccess"):
        return ["GoAccess"]
    fields = {"ClientHost": "%h", "DownstreamContentSize": "%b", "DownstreamStatus": "%s", "RequestMethod": "%m", "RequestPath": "%U"}
    fields |= {"RequestProtocol": "%H", "StartUTC": "%dT%t.%^", "request_User-Agent": "%u"}
    cost = Cost("GoAccess", "another question: it cannot tell routes by the minute", scale=SAMPLE)
    form = ["--log-format=" + json.dumps(fields, separators=(",", ":")), "--date-format=%Y-%m-%d", "--time-format=%H:%M:%S"]
    run(cost, folder, ["goaccess", str(log), "--no-global-config", "--no-progress", *form, "-o", str(folder / "goaccess.json")])
    return [cost]


def _has(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def duckdb(log: str, name: str) -> dict[str, int]:
    """The same by SQL."""
    import duckdb as engine  # noqa: PLC0415 - may be missing

    base = engine.connect(config={"threads": 2})
    base.execute("set preserve_insertion_order = false")
    columns = "{RouterName:'VARCHAR',StartUTC:'VARCHAR',DownstreamStatus:'INT',ClientAddr:'VARCHAR',Duration:'BIGINT'}"
    if name.startswith("smaller"):
        columns = "{RouterName:'VARCHAR',StartUTC:'VARCHAR',DownstreamStatus:'INT'}"
    source = f"read_json('{log}', format='newline_delimited', columns={columns})"
    if not name.startswith("smaller"):
        found: Any = None
        for one in _FULL.format(log=source, begin=WINDOW[0], end=WINDOW[1]).split(";")[:-1]:
            found = base.execute(one).fetchall()
        return dict(found)
    from edgekeeper.report.formats.stamps import iso  # noqa: PLC0415

    return {f"{router} {int((iso(minute + ':00Z') or 0) // 60)}": n for router, minute, n in base.execute(_SMALLER.format(log=source)).fetchall()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--duckdb"]:
        sys.stdout.write(json.dumps(duckdb(sys.argv[2], sys.argv[3])))
        sys.exit(0)
    sys.exit(main())
