"""A disk that is full: what runs goes on with its files, it is said, and it comes right again.

The supervisor sees its state (or run) folder on a small file system of its own, mounted in a private
mount namespace; we look at it through ``/proc/PID/root``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .edge import Client, Edge, answered, edge, until

ROOTED = any(line.split()[4] == "/" for line in Path("/proc/self/mountinfo").read_text().splitlines())
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not ROOTED, reason="in a chroot, whose root is no mount, there is no private mount namespace to be had"),
]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Edge]:
    with edge(tmp_path) as found:
        yield found


class Small:
    """A supervisor whose ``folder`` has a quarter of a megabyte."""

    def __init__(self, made: Edge, name: str) -> None:
        self._folder = made.folder / name
        self._folder.mkdir()
        mount = f'mount -t tmpfs -o size=512k,mode=755 tmpfs {self._folder} && exec {sys.executable} -m edgekeeper "$@"'
        self.run = made.run(wrapper=("unshare", "-m", "sh", "-c", mount, "edgekeeper"))

    @property
    def folder(self) -> Path:
        """The folder as the supervisor sees it."""
        return Path(f"/proc/{self.run.pid}/root{self._folder}")

    def fill(self) -> None:
        """Leave no byte."""
        handle = os.open(self.folder / "fill", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for size in (65_536, 4096, 1):
            with contextlib.suppress(OSError):
                while os.write(handle, b"x" * size):
                    pass
        os.close(handle)

    def empty(self) -> None:
        """Give it back."""
        (self.folder / "fill").unlink()


def inside(small: Small, made: Edge, *words: str) -> str:
    """A command beside the supervisor, which sees what it sees."""
    command = ["nsenter", "-m", "-t", str(small.run.pid), sys.executable, "-m", "edgekeeper", "--config", str(made.config), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_while_staging_the_engine_and_its_files_stay_and_later_it_comes_right(made: Edge) -> None:
    small = Small(made, "state")
    before = made.wait_ready()
    link = (small.folder / "dns/current").readlink()
    with Client(made.port) as client:
        small.fill()
        made.write_members(["ns-a", "ns-b"])
        refused = until(lambda: made.status()["refused"], "it is refused")
        assert "No space left on device" in refused
        assert "stays" in refused
        status = made.status()
        assert status["engine"]["pid"] == before["engine"]["pid"]
        assert status["engine"]["generation"] == before["engine"]["generation"]
        assert (small.folder / "dns/current").readlink() == link
        generations = [p.name for p in (small.folder / "dns/generations").iterdir()]
        assert generations == [link.name], "a half generation is left"
        assert {row["name"] for row in json.loads(inside(small, made, "dns", "members", "-o", "json"))["members"] if row["engine"] == "up"} == set(made.names)
        small.empty()
        made.write_members(["ns-a"])
        until(lambda: made.held() == {"ns-a"}, "it is in force once there is room")
        until(lambda: made.status()["refused"] is None, "nothing is refused any more")
    assert client.lost == 0
    assert made.status()["engine"]["pid"] == before["engine"]["pid"]
    nsenter = ["nsenter", "-m", "-t", str(small.run.pid)]
    subprocess.run([*nsenter, made.binary, "--check-config", "-C", f"{made.folder}/state/dns/current/dnsdist.yml"], check=True, timeout=20)


def test_an_engine_that_ends_while_the_disk_is_full_comes_back(made: Edge) -> None:
    """No fresh credentials can be written then; it serves with those on the disk."""
    small = Small(made, "state")
    pid = made.wait_ready()["engine"]["pid"]
    small.fill()
    os.kill(pid, 9)
    until(lambda: answered(made.port, timeout_s=0.2), "it answers again")
    until(lambda: made.status()["engine"]["pid"] not in (None, pid) and made.status()["engine"]["running"], "and is proven")


def test_a_full_run_folder_stops_nobody_from_serving(made: Edge) -> None:
    small = Small(made, "run")
    pid = made.wait_ready()["engine"]["pid"]
    small.fill()
    made.listen = [made.port, made.spare]
    made.write_config()
    small.run.send_signal(1)
    until(lambda: answered(made.spare, timeout_s=0.2), "another engine serves")
    until(lambda: made.status()["engine"]["pid"] not in (None, pid), "and is known")
    until(lambda: len(made.engines()) == 1, "and is the only one")
    assert "the record of the engines is not up to date" in made.said()
