"""What every source of lines must keep: each line arrives once, whatever happens to the log or to us."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .sequence import Child, Follower, Writer, judge

COUNT = 6000
"""At 5,000 lines a second: a test of 1.2 seconds, with four rotations."""

SLOW = 3.0
"""Seconds between rotations that lose what nobody read (a deleted file): the follower must get its turn on any machine."""


@dataclass
class Kit:
    """A kind of source, its log, and who writes it."""

    folder: Path
    way: str
    lossy: bool = False
    children: list[Child] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = self.folder / "log" / ("journal" if self.way == "journal" else "app.log")
        self.log.parent.mkdir()
        if self.way == "link":
            (self.folder / "log" / "real-0").touch()
            self.log.symlink_to("real-0")

    def spec(self) -> dict[str, Any]:
        """What the follower is told."""
        mark = str(self.folder / "mark.json")
        match self.way:
            case "journal":
                return {"kind": "journald", "unit": "app.service", "mark": mark}
            case "command":
                return {"kind": "command", "argv": self.command(0)}
            case _:
                return {"kind": "file", "path": str(self.log), "mark": mark}

    def command(self, first: int) -> list[str]:
        """A program that writes the lines itself, to its output, and then runs on."""
        program = Path(__file__).parent / "sequence.py"
        script = f'"{sys.executable}" "{program}" write copytruncate /dev/stdout {first} {COUNT} 5000 99; exec sleep 60'
        return ["sh", "-c", script]

    def follow(self) -> Follower:
        """Start a follower; it has begun when this returns."""
        made = Follower(self.spec(), self.folder, {"JOURNAL_STORE": str(self.log), "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.children.append(made)
        return made

    def write(self, first: int, count: int = COUNT, rate: float = 5000.0) -> Writer | None:
        """Have numbered lines written from now on; a command writes them by itself."""
        if self.way == "command":
            return None
        made = Writer(self.way, self.log, first, count, rate=rate, rotate_s=SLOW if self.lossy else 0.3)
        self.children.append(made)
        return made


KITS = {
    "rename": {}, "rename-late": {}, "copytruncate": {}, "copytruncate-holes": {}, "link": {"lossy": True}, "recreate": {"lossy": True},
    "journal": {}, "command": {},
}  # fmt: skip

RESUMING = [way for way in KITS if way != "command"]
"""Where another follower can go on: a program's output is gone with its reader."""


def made(folder: Path, way: str) -> Kit:
    """A kit with the stand-in for journalctl on its path, and no systemctl that would answer for this machine."""
    fake = Path(__file__).resolve().parents[1] / "fakes" / "journalctl.py"
    for name, text in (("journalctl", f'exec "{sys.executable}" -P "{fake}" "$@"'), ("systemctl", "exit 1")):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        program.chmod(0o755)
    return Kit(folder, way, **KITS[way])


@pytest.fixture(params=KITS)
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kit]:
    kit = made(tmp_path, request.param)
    yield kit
    for child in kit.children:
        child.close()


class TestSources:
    """The same for a file that is rotated in each of the usual ways, for journald and for a command."""

    def test_each_line_arrives_once_and_none_of_before(self, kit: Kit) -> None:
        before = kit.write(900_000, 50)
        if before is not None:
            before.wait()
        follower = kit.follow()
        kit.write(0)
        judge(follower.until_got(COUNT - 1), 0, COUNT - 1)

    def test_a_follower_that_was_stopped_misses_nothing(self, kit: Kit) -> None:
        follower = kit.follow()
        kit.write(0)
        follower.until_got(500)
        follower.signal(signal.SIGSTOP)
        time.sleep(1.0)
        follower.signal(signal.SIGCONT)
        judge(follower.until_got(COUNT - 1), 0, COUNT - 1)

    @pytest.mark.parametrize("kit", RESUMING, indirect=True)
    def test_another_follower_goes_on_where_the_first_one_ended(self, kit: Kit) -> None:
        first = kit.follow()
        kit.write(0)
        first.until_got(500)
        first.end()
        time.sleep(0.7)
        second = kit.follow()
        judge(second.until_got(COUNT - 1), 0, COUNT - 1)

    @pytest.mark.parametrize("kit", RESUMING, indirect=True)
    def test_after_a_kill_no_line_is_missed(self, kit: Kit) -> None:
        first = kit.follow()
        kit.write(0)
        first.until_got(3000)
        first.signal(signal.SIGKILL)
        first.wait()
        second = kit.follow()
        judge(second.until_got(COUNT - 1), 0, COUNT - 1, twice=True)


def test_a_unit_that_nobody_knows_is_no_sight(kit_of: Callable[[str], Kit]) -> None:
    kit = kit_of("journal")
    systemctl = kit.folder / "systemctl"
    systemctl.write_text('#!/bin/sh\ntest "$*" = "show --property=LoadState --value -- app.service" && echo not-found\n', encoding="utf-8")
    systemctl.chmod(0o755)
    follower = kit.follow()
    follower.until_seeing(seeing=False, word="knows no unit app.service")
    kit.write(0, 10)
    follower.until_got(9)
    follower.until_seeing(seeing=True)


def test_a_program_that_ends_is_started_again_and_the_sight_says_so_meanwhile(kit_of: Callable[[str], Kit]) -> None:
    kit = kit_of("command")
    follower = kit.follow()
    follower.until_got(COUNT - 1)
    (child,) = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _parent(entry) == follower.pid]
    os.kill(child, signal.SIGKILL)
    follower.until_seeing(seeing=False, word="SIGKILL")
    follower.until_seeing(seeing=True)
    follower.until_got(COUNT - 1)


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0


@pytest.fixture
def kit_of(tmp_path: Path) -> Iterator[Callable[[str], Kit]]:
    kits: list[Kit] = []

    def make(way: str) -> Kit:
        kits.append(made(tmp_path, way))
        return kits[-1]

    yield make
    for kit in kits:
        for child in kit.children:
            child.close()
