"""Process 1 of a pid namespace, with a journald of its own: writes numbered lines as the service manager does, and follows them.

Meanwhile the journal is rotated, journald is restarted, journalctl is killed, and the follower ends and another one goes on.
What arrived is in told.json afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from edgekeeper.host.clock import SystemClock
from edgekeeper.host.process import children
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.journald import JournaldSource

JOURNALD = "/usr/lib/systemd/systemd-journald"
SOCKET = Path("/run/systemd/journal/socket")
UNIT = "app.service"


def field(name: str, value: bytes) -> bytes:
    """A field as journald's own protocol has it (systemd.io/JOURNAL_NATIVE_PROTOCOL)."""
    return name.encode() + (b"\n" + len(value).to_bytes(8, "little") if b"\n" in value else b"=") + value + b"\n"


async def send(*fields: tuple[str, bytes]) -> None:
    """Write an entry; while journald is away, try again."""
    raw = b"".join(field(name, value) for name, value in (*fields, ("UNIT", UNIT.encode())))
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.connect(str(SOCKET))
            out.send(raw)
            return
        await asyncio.sleep(0.01)


def journald() -> subprocess.Popen[bytes]:
    """Start journald."""
    return subprocess.Popen([JOURNALD], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def until(true: Callable[[], bool]) -> None:
    """Wait for another process."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - what it waits for is another process
            await asyncio.sleep(0.01)


class Story:
    """A journald, a follower, and what has arrived."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "mark.json"
        self.got: list[str] = []
        self.sights: list[Sight] = []
        self.daemon = journald()
        self.task = asyncio.create_task(asyncio.sleep(0))

    def arrived(self, chunk: bytes, _: float) -> None:
        """Keep what arrives."""
        self.got.extend(text.decode("latin-1") for text in chunk.splitlines())

    def follow(self) -> None:
        """Start a follower."""
        self.task = asyncio.create_task(JournaldSource(UNIT, SystemClock(), self.mark).follow(self.arrived, self.sights.append))

    async def end(self) -> None:
        """End the follower."""
        self.task.cancel()
        await asyncio.wait([self.task])

    def restart(self) -> None:
        """Restart journald."""
        self.daemon.terminate()
        self.daemon.wait()
        self.daemon = journald()

    def kill(self) -> None:
        """Kill journalctl."""
        for pid in children(os.getpid()):
            if pid != self.daemon.pid:
                os.kill(pid, signal.SIGKILL)

    async def count(self, last: int) -> None:
        """Write the numbers; meanwhile everything happens."""
        for number in range(last):
            await send(("MESSAGE", b"%d" % number))
            if number % 10 == 0:
                await asyncio.sleep(0.005)
            match number * 10 / last:
                case 2:
                    self.daemon.send_signal(signal.SIGUSR2)  # rotate
                case 4:
                    self.restart()
                case 6:
                    await self.end()
                case 7:
                    self.follow()
                case 8:
                    self.kill()


async def main(folder: Path, last: int) -> None:
    """The whole story."""
    SOCKET.parent.mkdir(parents=True)
    Path("/run/log/journal").mkdir(parents=True)
    story = Story(folder)
    await until(SOCKET.exists)
    await send(("MESSAGE", b"of before"))
    await asyncio.sleep(0.3)
    story.follow()
    await until(lambda: len(story.sights) > 1)
    await story.count(last)
    await send(("MESSAGE", b"two\nlines"))
    await send(("MESSAGE", b"no \xff\x01 text"))
    await send(("MESSAGE", b"first"), ("MESSAGE", b"second"))
    await send(("MESSAGE", b"L" * 20_000))
    await send(("MESSAGE", b""))
    await send(("MESSAGE", b"Started."), ("MESSAGE_ID", b"39f53479d3a045ac8e11786248231fbf"))
    with contextlib.suppress(TimeoutError):
        await until(lambda: "Started." in story.got and story.sights[-1].started is not None)
    await story.end()
    told = {"got": story.got, "sights": [[sight.seeing, sight.why, sight.started] for sight in story.sights]}
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
    story.daemon.terminate()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
