"""What a command costs before it does anything: counted in modules (the same everywhere) and as a ratio against a bare interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

import pytest

HEAVY = ("pydantic", "asyncio", "starlette", "uvicorn", "rich", "httpx2", "ruamel", "dns", "cryptography", "prometheus_client", "nacl", "anyio", "ssl")
MODULES = "import sys; from edgekeeper.cli.main import run; sys.stdout = open('/dev/null', 'w'); run(sys.argv[1:]); print(*sys.modules, file=sys.__stderr__)"


def modules(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", MODULES, *words], check=True, capture_output=True, text=True, timeout=30)
    return set(done.stderr.split())


@pytest.mark.parametrize(("words", "limit"), [(["--version"], 90), (["--help"], 260)])
def test_help_imports_little_and_nothing_heavy(words: list[str], limit: int) -> None:
    found = modules(*words)
    assert not {name for name in found if name.split(".")[0] in HEAVY}
    assert len(found) < limit


@pytest.mark.parametrize("command", ["check", "status", "history", "dns", "probe", "drill"])
def test_a_commands_own_help_imports_its_module_and_none_of_its_work(command: str) -> None:
    """Typer reads root options with pydantic as soon as there is a command, so that one is there."""
    heavy = set(HEAVY) - {"pydantic"}
    assert not {name for name in modules(command, "--help") if name.split(".")[0] in heavy}


def test_help_starts_within_six_bare_interpreters_with_sockets() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    peer = [sys.executable, "-I", "-c", "import socket, ssl"]
    ours = [sys.executable, "-m", "edgekeeper", "--help"]

    def once(argv: list[str]) -> float:
        start = time.perf_counter()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=environment, timeout=30)
        return time.perf_counter() - start

    once(ours)
    pairs = [(once(peer), once(ours)) for _ in range(9)]  # side by side: a busy machine slows both
    assert statistics.median(b for _, b in pairs) < 6 * statistics.median(a for a, _ in pairs)


def test_a_reader_that_has_had_enough_ends_it_quietly() -> None:
    command = f"{sys.executable} -m edgekeeper schema | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_roles_that_are_asked_for_no_cluster_do_not_load_its_client() -> None:
    code = "import sys, edgekeeper.cli.run, edgekeeper.dns.role, edgekeeper.lb.role, edgekeeper.vip.role, edgekeeper.watch.role; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30)
    assert not {name for name in done.stdout.split() if name.startswith(("edgekeeper.kube", "lightkube", "msgspec", "hvac"))}


def test_a_cluster_without_its_client_says_what_to_install() -> None:
    code = "import importlib.util; importlib.util.find_spec = lambda name: None; import edgekeeper.kube.client"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=30)
    assert "MissingError: asking a cluster needs the Kubernetes client; install edgekeeper[kube]" in done.stderr
