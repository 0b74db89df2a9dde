"""The live table of ``edgekeeper probe`` in a terminal, and the lines that stand for it where there is none."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .asked import Web
from .edge import free_ports

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def web() -> Iterator[Web]:
    made = Web(free_ports(1)[0])
    made.start()
    yield made
    made.stop()


class Screen:
    """A command in a terminal of so many columns."""

    def __init__(self, columns: int, *words: str, **more: str) -> None:
        self.hand, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}} | {"TERM": "xterm-256color", **more}
        argv = [sys.executable, "-m", "edgekeeper", "probe", *words]
        self.process = subprocess.Popen(argv, stdin=end, stdout=subprocess.PIPE, stderr=end, env=env, start_new_session=True)
        os.close(end)
        self.raw = ""

    def read(self, until: str, deadline_s: float = 20.0) -> str:
        """What was drawn since the last call, until a pattern is in it."""
        end, begun = time.monotonic() + deadline_s, len(self.raw)
        while not re.search(until, ANSI.sub("", self.raw[begun:])):
            assert time.monotonic() < end, self.raw[begun:][-3000:]
            if select.select([self.hand], [], [], 0.1)[0]:
                try:
                    self.raw += os.read(self.hand, 65536).decode(errors="replace")
                except OSError:
                    break
        return ANSI.sub("", self.raw[begun:])

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        while select.select([self.hand], [], [], 0.3)[0]:
            try:
                self.raw += os.read(self.hand, 65536).decode(errors="replace")
            except OSError:
                break
        out = self.process.communicate(timeout=20)[0].decode()
        os.close(self.hand)
        return self.process.returncode, out


@pytest.fixture
def screens() -> Iterator[Callable[..., Screen]]:
    """Makes screens; whatever happens, nothing is left of them."""
    made: list[Screen] = []

    def make(columns: int, *words: str, **more: str) -> Screen:
        made.append(Screen(columns, *words, **more))
        return made[-1]

    yield make
    for screen in made:
        if screen.process.poll() is None:
            screen.process.kill()
            screen.process.communicate(timeout=20)
            os.close(screen.hand)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_shows_an_outage_while_it_lasts(web: Web, screens: Callable[..., Screen], columns: int) -> None:
    screen = screens(columns, f"http://127.0.0.1:{web.port}/", "--every", "50ms", "--timeout", "300ms")
    drawn = screen.read(" ok ")
    assert ("LONGEST" in drawn) == (columns == 120)
    screen.read("[▁▂▃▄▅▆▇█]{3}")
    web.stop()
    assert "refused" in screen.read("refused")
    assert "OUT" in screen.read("✗✗✗")
    web.start()
    screen.read(" ok ")
    frames = re.split(r"\x1b\[2K|\r?\n|\r", screen.raw.partition("\x1b[?25l")[2])
    assert max(len(ANSI.sub("", line)) for line in frames) <= columns
    code, out = screen.end(signal.SIGTERM)
    assert code == 0
    assert "in 1 outage, the longest" in out
    assert "\x1b[?25h" in screen.raw, "the cursor comes back"


def test_without_colour_nothing_is_coloured(web: Web, screens: Callable[..., Screen]) -> None:
    screen = screens(100, f"http://127.0.0.1:{web.port}/", "--every", "50ms", NO_COLOR="1")
    screen.read(" ok ")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", screen.raw)
    assert screen.end(signal.SIGINT)[0] == 0


def test_where_there_is_no_terminal_each_change_is_a_line(web: Web, tmp_path: Path) -> None:
    said = tmp_path / "said"
    url = f"http://127.0.0.1:{web.port}/"
    with said.open("wb") as err:
        argv = [sys.executable, "-m", "edgekeeper", "probe", url, "--every", "50ms", "--timeout", "300ms", "--duration", "40s"]
        run = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=err)
        for change, sentence in ((web.stop, "does not answer (refused)"), (web.start, "answers again: it was out for ")):
            end = time.monotonic() + 20
            while not web.paths:
                assert time.monotonic() < end
                time.sleep(0.02)
            change()
            while sentence not in said.read_text():
                assert time.monotonic() < end, said.read_text()
                time.sleep(0.02)
        run.terminate()
        out = run.communicate(timeout=20)[0].decode()
    assert run.returncode == 0
    assert "in 1 outage" in out
    lines = [line for line in said.read_text().splitlines() if url in line]
    assert len(lines) == 3, "the way, down, up"
    assert "is this machine" in lines[0]
