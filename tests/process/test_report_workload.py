"""The full workload on a made day of logs: every count as planted, every outage inside its bounds, within a budget of memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
LINES = 60_000
MAKE = "import sys; sys.path.insert(0, sys.argv[1]); import report_logs; from pathlib import Path; report_logs.write(Path(sys.argv[2]), int(sys.argv[3]))"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("workload") / "access.log"
    subprocess.run([sys.executable, "-c", MAKE, str(BENCHMARKS), str(path), str(LINES)], check=True, timeout=60)
    yield path
    path.unlink()


LAUNCH = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],check=True);u=resource.getrusage(resource.RUSAGE_CHILDREN);print();print(u.ru_maxrss/1024)"


def answered(log, jobs):
    """What the workload says, and the MiB that it took; from a small process, so that the memory is its own."""
    argv = [sys.executable, "-I", "-S", "-c", LAUNCH, sys.executable, str(BENCHMARKS / "report_child.py"), str(log), str(jobs)]
    said, cost = subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=60, text=True).stdout.splitlines()
    return json.loads(said), float(cost)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_count_is_as_planted_and_every_outage_inside_its_bounds(log, jobs):
    truth = json.loads(log.with_name("access.log.truth").read_text())
    said, rss_mib = answered(log, jobs)
    assert (said["lines"], said["skipped"]) == (truth["lines"], {})
    assert said["cells"] == truth["cells"]
    assert said["classes"] == truth["classes"]
    for outage in said["outages"]:
        (planted,) = [p for p in truth["outages"] if p[0] == outage["router"] and p[1] - 1 <= outage["first_bad"] <= p[2] + 1]
        length = planted[2] - planted[1]
        assert outage["min_s"] <= length <= (outage["max_s"] or float("inf"))
    assert len(said["outages"]) >= 12  # so few lines leave some outages without three requests in them
    assert rss_mib < 128  # what it takes of the processor is measured by benchmarks/report.py
