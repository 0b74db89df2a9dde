"""The scripts, run: what they say and do when something is not as it should be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted(path for path in (ROOT / "script").iterdir() if path.is_file() and path.suffix != ".py")


def run(*argv: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=50, check=False, env={**os.environ, **env})


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_plain_sh(path: Path) -> None:
    told = run("sh", "-n", path)
    assert told.returncode == 0, told.stderr


def test_engines_refuses_a_name_it_does_not_know(tmp_path: Path) -> None:
    told = run(ROOT / "script" / "engines", "debian12", "fedora", EDGEKEEPER_ENGINES=str(tmp_path / "engines"))
    assert told.returncode == 2
    assert "fedora is not one of debian12, debian13, testing" in told.stderr
    assert not (tmp_path / "engines").exists()


LOGGERS = ("bgpd", "vtysh", "bird", "birdc", "nginx")
"""Programs whose logs reports read."""


def fake_prefix(home: Path, name: str) -> Path:
    """A prefix as script/engines leaves it, with programs that only tell a version."""
    prefix = home / name
    (prefix / "bin").mkdir(parents=True)
    for program in ("dnsdist", "keepalived", "haproxy", "dockerd", "docker", "containerd", "containerd-shim-runc-v2", "runc", *LOGGERS):
        (prefix / "bin" / program).write_text(f"#!/bin/sh\necho {program} 0\n")
        (prefix / "bin" / program).chmod(0o755)
    (prefix / "VERSIONS").write_text("dnsdist 0\nkeepalived 0\nhaproxy 0\nDocker 0\nFRR 0\nBIRD 0\nnginx 0\n")
    sums = run("sh", "-c", f"cd {prefix} && find bin VERSIONS -type f -exec sha256sum {{}} +")
    (prefix / "SHA256SUMS").write_text(sums.stdout)
    return prefix


def no_network(tmp_path: Path) -> str:
    """A PATH whose apt-get fails at once, so that a rebuild shows as a failure."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "apt-get").write_text("#!/bin/sh\necho no network >&2\nexit 100\n")
    (tools / "apt-get").chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def test_engines_keeps_a_whole_prefix_without_asking_the_network(tmp_path: Path) -> None:
    fake_prefix(tmp_path / "engines", "debian12")
    told = run(ROOT / "script" / "engines", "debian12", EDGEKEEPER_ENGINES=str(tmp_path / "engines"), PATH=no_network(tmp_path))
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines() == [f"debian12 (kept): {program} 0" for program in ("dnsdist", "keepalived", "haproxy", "Docker", "FRR", "BIRD", "nginx")]


def test_engines_builds_a_damaged_prefix_again(tmp_path: Path) -> None:
    prefix = fake_prefix(tmp_path / "engines", "debian12")
    (prefix / "bin" / "dnsdist").write_text("#!/bin/sh\necho another\n")
    told = run(
        ROOT / "script" / "engines",
        "debian12",
        EDGEKEEPER_ENGINES=str(tmp_path / "engines"),
        PATH=no_network(tmp_path),
        EDGEKEEPER_DEBIAN_MIRROR="http://127.0.0.1:9/debian",
    )
    assert told.returncode == 6, "it must not be used as it is"
    assert "debian12 is damaged or unfinished; built again" in told.stderr
    assert "the package lists of bookworm cannot be read" in told.stderr
    assert not list((tmp_path / "engines").glob(".work.*")), "a failed run leaves nothing behind"


def fake_kube(home: Path) -> Path:
    """A folder as script/kube-assets leaves it."""
    folder = home / "bin"
    folder.mkdir(parents=True)
    for program in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        (folder / program).write_text(f"#!/bin/sh\necho {program} 0\n")
        (folder / program).chmod(0o755)
    sums = run("sh", "-c", f"cd {folder} && find . -type f -exec sha256sum {{}} +")
    (folder / "SHA256SUMS").write_text(sums.stdout)
    return folder


def kube_assets(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    mirror = "http://127.0.0.1:9/debian"
    return run(
        ROOT / "script" / "kube-assets",
        EDGEKEEPER_KUBE=str(tmp_path / "kube"),
        PATH=no_network(tmp_path),
        EDGEKEEPER_DEBIAN_MIRROR=mirror,
        **{"KUBEBUILDER_ASSETS": "", **env},
    )


def test_a_whole_kubernetes_is_kept_without_asking_the_network(tmp_path: Path) -> None:
    fake_kube(tmp_path / "kube")
    told = kube_assets(tmp_path)
    assert (told.returncode, told.stdout) == (0, "kube (kept): kube-apiserver 0, etcd 0\n"), told.stderr


def test_a_damaged_kubernetes_is_made_again_and_a_failed_run_leaves_it_as_it_was(tmp_path: Path) -> None:
    folder = fake_kube(tmp_path / "kube")
    (folder / "kubectl").write_text("#!/bin/sh\necho another\n")
    told = kube_assets(tmp_path)
    assert told.returncode == 6
    assert "is damaged or unfinished; made again" in told.stderr
    assert "the package lists of bookworm cannot be read" in told.stderr
    assert (folder / "etcd").exists()
    assert [path.name for path in (tmp_path / "kube").iterdir() if path.name != ".lock"] == ["bin"], "a failed run leaves nothing behind"


def test_programs_that_are_named_are_taken_and_nothing_is_built(tmp_path: Path) -> None:
    folder = fake_kube(tmp_path / "mine")
    told = kube_assets(tmp_path, KUBEBUILDER_ASSETS=str(folder))
    assert (told.returncode, told.stdout) == (0, f"kube ({folder}): kube-apiserver 0\n"), told.stderr
    (folder / "etcd").unlink()
    assert "there is no etcd" in run(ROOT / "script" / "kube-assets", KUBEBUILDER_ASSETS=str(folder)).stderr
