"""``edgekeeper lb sessions`` on a real HAProxy that was reloaded twice: who is pinned, and that freeing them hurts nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .edge import until
from .proxied import Proxied, haproxy

VERSIONS = ("2.6", "3.0", "3.2")
pytestmark = pytest.mark.engine


class Done(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float
    mebibytes: float


MEASURE = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
"""Run by a small process of its own: the kernel counts what a child was before its exec, which here would be pytest."""


def sessions(*words: object, config: Path | None = None) -> Done:
    """The command as an operator runs it, with its time and its largest size."""
    head = ["--config", str(config)] if config else []
    argv = [sys.executable, "-I", "-S", "-c", MEASURE, sys.executable, "-m", "edgekeeper", *head, "lb", "sessions", *map(str, words)]
    start = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=50, cwd="/")
    took = time.monotonic() - start
    *err, size = done.stderr.splitlines(keepends=True)
    return Done(done.returncode, done.stdout, "".join(err), took, int(size) / 1024)


def told(*words: object) -> dict[str, Any]:
    done = sessions(*words, "-o", "json")
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_pinned_are_ended_in_all_workers_and_their_clients_are_served_again(tmp_path: Path, version: str) -> None:
    config = tmp_path / "edgekeeper.yaml"
    config.write_text("nodes:\n" + "".join(f"  node-{i}: {{address: 127.0.{i}.1}}\n" for i in (1, 2, 3)))
    with Proxied(tmp_path, version) as made:
        for net in (1, 2, 3):
            made.open(100, net, 100)
            if net < 3:
                made.reload()
        current, *old = made.workers()
        quiet = sessions("--socket", made.admin, "--pinned")
        assert (quiet.code, quiet.out.strip()) == (0, "no session is pinned to a dead server"), quiet.err

        made.sick("cp1")
        seen = told("--socket", made.admin)
        assert [(w["pid"], w["current"], w["sessions"]) for w in seen["workers"]] == [(current, True, 100), *((pid, False, 100) for pid in old)]
        assert len(seen["sessions"]) == 300
        victims = [row for row in seen["sessions"] if row["pinned"]]
        assert {row["server"] for row in victims} == {"cp1"}
        assert {row["worker"] for row in victims} == {current, *old}
        assert all((row["bytes_in"], row["bytes_out"]) == (1, 3) for row in seen["sessions"])

        found = sessions("--socket", made.master, "--pinned", "--limit", "0", config=config)
        assert found.code == 1
        for line in [line for line in found.out.splitlines() if line.startswith("node-")]:
            net, worker = line[5], [current, *old][3 - int(line[5])]
            assert f"127.0.{net}.1:" in line
            assert line.endswith(str(worker) if worker == current else f"{worker} (old)")
        assert sum(line.startswith("node-") for line in found.out.splitlines()) == len(victims)

        plan = sessions("--socket", made.admin, "--free", config=config)
        assert plan.code == 1
        assert f"{len(victims)} sessions would be ended" in plan.out
        assert plan.out.count("shutdown session, each by its id") == 2
        assert "node-2 (3" in plan.out
        made.asked()
        assert made.cut() == {}, "a plan changes nothing"

        done = sessions("--socket", made.admin, "--free", "--yes", config=config)
        assert done.code == 0, done.err
        assert f"api/cp1 is DOWN: {len(victims)} sessions ended in 3 workers" in done.out
        assert "3 of 3 clients seen again on a live server" in done.out
        assert {line.split()[0] for line in done.out.splitlines() if line.startswith("node-")} == {"node-1", "node-2", "node-3"}
        answered = made.asked()
        assert made.cut() == {"cp1": len(victims)}, "healthy sessions were touched, or pinned ones left"
        assert answered["silent"] == 0
        assert "cp1" not in answered
        assert sum(answered.values()) == 300
        assert sessions("--socket", made.admin, "--pinned").code == 0


@pytest.mark.parametrize("version", ["2.6", "3.2"])
def test_a_server_in_maint_is_freed_alone_when_it_is_named(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        made.open(30, 1, 10)
        made.sick("cp1")
        made.ask("set server api/cp3 state maint")
        until(lambda: made.status("cp3") == "MAINT", "cp3 is in MAINT")
        time.sleep(0.3)
        made.asked()
        assert made.cut() == {}, "neither DOWN nor MAINT ends sessions without the directive"
        refused = sessions("--socket", made.admin, "--free", "--yes", "api/cp2")
        assert (refused.code, made.cut()) == (3, {})
        assert "api/cp2 is UP" in refused.err
        assert sessions("--socket", made.admin, "--free", "--yes", "api/cp3").code == 0
        made.asked()
        assert made.cut() == {"cp3": 10}
        left = told("--socket", made.admin, "--pinned")
        assert {s["server"]: (s["status"], s["pinned"]) for s in left["servers"]} == {"cp1": ("DOWN", 10), "cp2": ("UP", 0), "cp3": ("MAINT", 0)}
        assert len(left["sessions"]) == 10
        freed = told("--socket", made.admin, "--free", "--yes")["freed"]
        assert [(one["server"], sum(one["cut"].values()), one["left"], one["ok"]) for one in freed] == [("cp1", 10, 0, True)]


def test_what_cannot_be_done_is_said_in_one_line_with_its_exit_code(tmp_path: Path) -> None:
    with Proxied(tmp_path, "3.2") as made:
        made.open(9, 1, 9)
        made.sick("cp1")
        user, operator = f"{tmp_path}/user.sock", f"{tmp_path}/operator.sock"
        cases = [
            (("--socket", "/run/no/such.sock"), 6, "there is no socket"),
            (("--socket", made.admin, "api/cp9"), 2, "api/cp1, api/cp2, api/cp3"),
            (("--socket", made.admin, "--yes"), 2, "--yes goes with --free"),
            (("--socket", user, "--free"), 3, "level operator"),
            (("--socket", operator, "--free", "--yes"), 3, "level admin"),
            (("--socket", f"127.0.0.1:{made.port}"), 5, "name HAProxy's own socket"),
        ]
        for words, code, text in cases:
            done = sessions(*words)
            assert (done.code, done.err.count("\n"), done.out) == (code, 1, ""), (words, done)
            assert text in done.err
        low = sessions("--socket", user, "--pinned")
        assert low.code == 1, "how many are pinned is told even where it may not be seen whose they are"
        assert "level operator" in low.err
        assert "api/cp1" in low.out
        assert made.cut() == {}


def test_the_version_itself_is_proven_on_a_private_one() -> None:
    done = sessions("--self-test", "--binary", haproxy("3.2"))
    assert (done.code, done.out.startswith("ok:")) == (0, True), done
    missing = sessions("--self-test", "--binary", "/no/such/haproxy")
    assert missing.code == 6


@pytest.mark.parametrize("version", ["3.2"])
def test_twenty_thousand(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        for net, count in ((1, 8000), (2, 8000), (3, 4000)):
            made.open(count, net, 200)
            if net < 3:
                made.reload()
        made.sick("cp1")
        tries = []
        while len(tries) < 3 and not any(done.seconds < 2 for done in tries):
            tries.append(sessions("--socket", made.admin))
        assert min(done.seconds for done in tries) < 2, [done.seconds for done in tries]
        listing = sessions("--socket", made.admin, "-o", "json")
        assert max(done.mebibytes for done in (*tries, listing)) < 80
        rows = json.loads(listing.out)["sessions"]
        assert len(rows) == 20_000
        victims = sum(row["pinned"] for row in rows)

        done = sessions("--socket", made.admin, "--free", "--yes")
        assert done.code == 0, done.err
        assert done.mebibytes < 80
        answered = made.asked()
        assert made.cut() == {"cp1": victims}
        assert (answered["silent"], sum(answered.values())) == (0, 20_000)
