"""The log of real containers over whatever happens to them, to their logs and to dockerd: numbered lines, none missed, none twice."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.sequence import Follower, judge, line

from edgekeeper.host.docker import Docker as Client
from edgekeeper.host.docker import Which
from edgekeeper.watch.sources.docker import DockerSource

from .dockers import Docker

pytestmark = [pytest.mark.root, pytest.mark.engine, pytest.mark.timeout(120)]

WRITER = f"""
import os, time
def number(name):
    try:
        return int(open("/shared/" + name).read() or 0)
    except OSError:
        return 0
begun, done = (os.open("/shared/" + name, os.O_RDWR | os.O_CREAT) for name in ("begun", "done"))
n, rate, last = number("begun"), float(open("/shared/rate").read()), int(open("/shared/last").read())
if number("done") != n:  # killed between the two: nobody knows whether this one was written
    os.write(os.open("/shared/unsure", os.O_WRONLY | os.O_CREAT | os.O_APPEND), b"%d\\n" % n)
start, first = time.monotonic(), n
while n < last:
    n += 1
    wait = start + (n - first) / rate - time.monotonic()
    if wait > 0.002:
        time.sleep(wait)
    os.pwrite(begun, b"%08d" % n, 0)
    os.write(1, {line(0)[:2]!r} + b"%08d" % n + {line(0)[10:]!r})
    os.pwrite(done, b"%08d" % n, 0)
time.sleep(600)
"""


class Story:
    """A container that writes numbered lines, also after it was killed or made anew, and a follower of it."""

    def __init__(self, docker: Docker, folder: Path, name: str, *, last: int, rate: float = 3000.0, mark: bool = False) -> None:
        self.docker, self.name, self.last = docker, name, last
        self._folder = folder / name
        self._folder.mkdir()
        self._shared = docker.folder / f"shared-{name}"
        self._shared.mkdir()
        (self._shared / "rate").write_text(str(rate))
        (self._shared / "last").write_text(str(last))
        self._spec = {"kind": "docker", "socket": docker.socket, "name": name, "mark": str(self._folder / "mark") if mark else None}
        self.options: tuple[str, ...] = ()
        self.follower = self.follow()

    def follow(self) -> Follower:
        self.follower = Follower(self._spec, self._folder)
        return self.follower

    def run(self, *options: str, name: str = "") -> None:
        self.docker.run(name or self.name, WRITER, "--volume", f"{self._shared}:/shared", "--stop-signal", "KILL", *options)

    def written(self) -> int:
        file = self._shared / "done"
        return int(file.read_text() or 0) if file.exists() else 0

    def unsure(self) -> set[int]:
        file = self._shared / "unsure"
        return {int(text) for text in file.read_text().split()} if file.exists() else set()

    def until_written(self, number: int) -> None:
        until(lambda: self.written() >= number)

    def judge(self, *, twice: bool = False) -> None:
        """All that were written have arrived once; a line that a kill cut off may be missing."""
        got = self.follower.until_got(self.last, 30)
        judge(got + sorted(self.unsure() - set(got)) if self.unsure() else got, 1, self.last, twice=twice or bool(self.unsure()))
        assert twice or len(got) == len(set(got))

    def close(self) -> None:
        self.follower.close()
        self.docker("rm", "--force", self.name)


@pytest.fixture
def story(docker: Docker, dockers: Callable[..., Docker], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Story]]:
    made: list[Story] = []

    def make(daemon: Docker | None = None, **said: object) -> Story:
        made.append(Story(daemon or docker, tmp_path, f"s{len(made)}-{abs(hash(request.node.name))}", **said))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


def until(check: Callable[[], bool], within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.02)


@pytest.mark.parametrize("suite", ["debian12", "debian13", "testing"])
def test_rotation_by_renaming_and_by_truncating(story: Callable[..., Story], dockers: Callable[..., Docker], docker: Docker, suite: str) -> None:
    daemon = docker if suite == "testing" else dockers(suite)
    two, one = story(daemon, last=6000), story(daemon, last=6000)
    two.run("--log-opt", "max-size=64k", "--log-opt", "max-file=2")
    one.run("--log-opt", "max-size=64k", "--log-opt", "max-file=1")
    two.judge()
    one.judge()


def test_a_container_that_is_restarted_killed_and_made_anew(story: Callable[..., Story], docker: Docker) -> None:
    told = story(last=8000, rate=2000)
    told.run()
    told.until_written(1000)
    docker("restart", "--time", "0", told.name)
    told.until_written(2000)
    docker("kill", told.name)
    time.sleep(0.3)
    docker("start", told.name)
    told.until_written(3000)
    docker("pause", told.name)
    told.follower.until_seeing(seeing=False, word="paused")
    docker("unpause", told.name)
    told.follower.until_seeing(seeing=True)
    told.until_written(4000)
    docker("kill", told.name)
    told.follower.until_seeing(seeing=False, word="exited")
    docker("rename", told.name, f"{told.name}-old")
    told.run()  # as compose does it: the old one is kept under another name until the new one is there
    told.until_written(5000)
    docker("rm", "--force", f"{told.name}-old")
    docker("stop", "--time", "0", told.name)
    told.follower.until_got(told.written() - 1)
    docker("rm", "--force", told.name)
    told.follower.until_seeing(seeing=False, word="no container")
    told.run()
    told.judge()


@pytest.mark.parametrize(("suite", "live"), [("debian12", True), ("testing", True), ("debian12", False)])
def test_a_docker_daemon_that_is_restarted(story: Callable[..., Story], dockers: Callable[..., Docker], suite: str, live: bool) -> None:
    daemon = dockers(suite, {"live-restore": live})
    told = story(daemon, last=6000, rate=2000)
    told.run("--restart", "always")
    told.until_written(1000)
    daemon.stop()
    told.follower.until_seeing(seeing=False)
    daemon.start()
    told.follower.until_seeing(seeing=True)
    if live and suite == "testing":
        told.until_written(4000)
        daemon.kill()
        daemon.start()
    told.judge()


def test_a_follower_that_is_stopped_loses_only_what_docker_threw_away(story: Callable[..., Story], docker: Docker) -> None:
    whole, rotated = story(last=8000, rate=2000), story(last=8000, rate=2000)
    whole.run()
    rotated.run("--log-opt", "max-size=64k", "--log-opt", "max-file=4")
    whole.until_written(500)
    rotated.until_written(500)
    for told in (whole, rotated):
        told.follower.signal(signal.SIGSTOP)
    whole.until_written(8000)
    rotated.until_written(8000)
    kept = {int(text[2:10]) for text in docker("logs", rotated.name).splitlines()}
    before = set(rotated.follower.got())
    assert 500 < len(kept) < 3000, "most was thrown away"
    for told in (whole, rotated):
        told.follower.signal(signal.SIGCONT)
    whole.judge()
    until(lambda: kept <= set(rotated.follower.got()))
    time.sleep(1.0)
    got = rotated.follower.got()
    assert len(got) == len(set(got)), "none came twice"
    assert before <= set(got)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_its_own_restart(story: Callable[..., Story], number: signal.Signals) -> None:
    told = story(last=5000, rate=2000, mark=True)
    told.run("--log-opt", "max-size=256k", "--log-opt", "max-file=3")
    told.follower.until_got(2000)
    time.sleep(0.3)
    told.follower.signal(number)
    told.follower.wait()
    told.until_written(4000)
    told.follow()
    told.judge(twice=number is signal.SIGKILL)


def test_without_a_mark_nothing_of_before_is_told(story: Callable[..., Story]) -> None:
    told = story(last=2000, rate=500)
    told.run()
    told.follower.until_got(100)
    told.follower.close()
    told.follower.out.unlink()
    begun = told.written()
    told.follow()
    got = told.follower.until_got(2000)
    judge(got, got[0], 2000)
    assert got[0] > begun


SPEAKS = """
import os, time
os.write(1, b"start\\n")
time.sleep(0.2)
os.write(2, b"an error\\n")
time.sleep(0.2)
os.write(1, b"x" * 40000 + b"\\n" + b"cut o")
"""


@pytest.mark.parametrize("options", [(), ("--tty",)])
def test_both_outputs_long_lines_and_what_was_left_without_an_end(docker: Docker, options: tuple[str, ...]) -> None:
    got = bytearray()

    async def work() -> None:
        source = DockerSource(Client(docker.socket), Which(name="speaks"))
        task = asyncio.create_task(source.follow(lambda chunk, _: got.extend(chunk), lambda _: None))
        try:
            await asyncio.to_thread(docker.run, "speaks", SPEAKS, *options)
            for times in (1, 2):
                async with asyncio.timeout(10):
                    while got.count(b"cut o\n") < times:  # noqa: ASYNC110 - a callback, which has no event for us
                        await asyncio.sleep(0.02)
                await asyncio.to_thread(docker, "start", "speaks") if times == 1 else None
            await asyncio.sleep(0.5)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(docker, "rm", "--force", "speaks")

    asyncio.run(work())
    assert got.decode() == ("start\nan error\n" + "x" * 40000 + "\ncut o\n") * 2


class Mute:
    """A way to a Docker daemon; once it is ``mute``, the streams of logs that go through it are still open and give nothing any more."""

    def __init__(self, folder: Path, target: str) -> None:
        self.path = str(folder / "mute.sock")
        self._target = target
        self._old: list[threading.Event] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.path)
        self._server.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        for stream in self._old:
            stream.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            dead = threading.Event()
            threading.Thread(target=self._asked, args=(near, far, dead), daemon=True).start()
            threading.Thread(target=self._relay, args=(far, near, dead), daemon=True).start()

    def _asked(self, near: socket.socket, far: socket.socket, dead: threading.Event) -> None:
        asked = near.recv(65536)
        if b"follow=1" in asked:
            self._old.append(dead)
        far.sendall(asked)
        self._relay(near, far, threading.Event())

    def _relay(self, near: socket.socket, far: socket.socket, dead: threading.Event) -> None:
        try:
            while data := near.recv(65536):
                if not dead.is_set():
                    far.sendall(data)
        except OSError:
            pass
        far.close()

    def close(self) -> None:
        self._server.close()


def test_a_stream_that_is_silently_dead_is_noticed_and_replaced(docker: Docker, tmp_path: Path, story: Callable[..., Story]) -> None:
    way = Mute(tmp_path, docker.socket)
    told = story(last=3000, rate=1000)
    told.follower.close()
    told._spec["socket"] = way.path
    told.follow()
    told.run()
    told.until_written(1000)
    way.mute()
    muted = time.monotonic()
    told.until_written(3000)
    got = told.follower.until_got(3000, 20)
    assert 1 < time.monotonic() - muted < 8, "2 s, on a machine that is not busy"
    judge(got, 1, 3000)
    way.close()


def test_what_it_cannot_see_is_told_with_the_reason(story: Callable[..., Story], dockers: Callable[..., Docker]) -> None:
    daemon = dockers("testing", {"live-restore": True})
    told = story(daemon, last=100_000, rate=100)
    assert told.follower.sights()[-1][0] is False
    assert "there is no container" in told.follower.sights()[-1][1]
    told.run("--log-driver", "none")
    told.follower.until_seeing(seeing=False, word="does not support reading")
    daemon("rm", "--force", told.name)
    told.run()
    told.follower.until_seeing(seeing=True)
    assert daemon.daemon.actor is not None
    daemon("rm", "--force", told.name)
    told.follower.until_seeing(seeing=False, word="there is no container")
    daemon.daemon.actor.signal(signal.SIGSTOP)
    try:
        told.follower.until_seeing(seeing=False, word="does not answer")
    finally:
        daemon.daemon.actor.signal(signal.SIGCONT)
    told.follower.until_seeing(seeing=False, word="there is no container")
    told.run()
    told.follower.until_seeing(seeing=True)
