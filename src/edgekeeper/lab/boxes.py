"""A service in a container that wedges on command, and the watchdog that is to cure it: the stage of a watch drill."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

from edgekeeper.errors import StepFailedError
from edgekeeper.lab import plain_watch, wedge
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.docker import IMAGE, Daemon, python_argv, python_mounts
from edgekeeper.lab.product import Home, Product, http_get
from edgekeeper.lab.stage import Stage
from edgekeeper.lab.topology import FRONT

NAME = "mesh-proxy"
"""The container, and the watch."""
PORT = 8443
HEALTH = "127.0.0.1:8080"
OPS_PORT = 8087


class Box:
    """One daemon and its container on one node; ``url`` is what clients ask. ``more`` is more of the daemon's configuration."""

    def __init__(self, stage: Stage, namespace: str = "edge", address: str = FRONT, more: dict[str, Any] | None = None) -> None:
        self.stage = stage
        self.namespace = namespace
        self.url = f"http://{address}:{PORT}/"
        self._listen = f"{address}:{PORT}"
        self.state = stage.folder / f"{namespace}-proxy"
        self.daemon = Daemon(stage.net, namespace, stage.folder / f"{namespace}-docker", stage.engine.binary, more, keep=stage.actors.append)
        stage.closing.append(self.daemon.end)

    async def up(self, *options: str) -> None:
        """Start the daemon and the container, and wait until it answers; ``options`` are those of ``docker run``."""
        self.state.mkdir()
        await self.daemon.start()
        await self.daemon.image()
        await self.create(*options)

    async def create(self, *options: str) -> None:
        """Make the container anew (a new id, an empty log) and wait until it answers."""
        # Not remove and run: the old one must not have answered the question whether the new one does.
        before = len(self.starts())
        with contextlib.suppress(StepFailedError):
            await self.daemon.docker("rm", "--force", NAME)
        script = ("--volume", f"{Path(wedge.__file__).resolve()}:/wedge.py:ro", "--volume", f"{self.state}:/state")
        run = ("run", "--detach", "--name", NAME, "--network", "host", "--restart", "unless-stopped", *options, *script, *python_mounts())
        await self.daemon.docker(*run, IMAGE, *python_argv("/wedge.py", self._listen, HEALTH, "/state"))
        await self.stage.until(f"{NAME} on {self.namespace} is started", self._started(before))
        await self.stage.until(f"{NAME} on {self.namespace} answers", self.answers)

    def _started(self, before: int) -> Any:
        async def check() -> bool:
            return len(self.starts()) > before

        return check

    async def answers(self) -> bool:
        """Whether it answers a request, asked on its own node."""
        return bool(await http_get(self.stage, self.url, namespace=self.namespace))

    def _times(self, name: str) -> tuple[float, ...]:
        file = self.state / name
        return tuple(float(line) for line in file.read_text(encoding="ascii").splitlines()) if file.exists() else ()

    def starts(self) -> tuple[float, ...]:
        """When the service was started, each time (monotonic clock)."""
        return self._times("starts")

    def stops(self) -> tuple[float, ...]:
        """When it was told to end, each time."""
        return self._times("stops")

    def starts_since(self, moment: float) -> int:
        """How often it was started since a moment."""
        return sum(at >= moment for at in self.starts())

    async def tell(self, line: str) -> None:
        """Give it a command (see ``wedge``); one that is just being restarted is asked again."""
        said = ""
        for _ in range(20):
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(self.state / "wedge.sock")
                try:
                    writer.write(line.encode() + b"\n")
                    said = (await asyncio.wait_for(reader.readline(), 20.0)).decode().strip()
                finally:
                    writer.close()
            if said:
                break
            await asyncio.sleep(0.1)
        if said != "ok":
            msg = f"{NAME} did not take {line!r}: {said}; the drill stops"
            raise StepFailedError(msg)

    async def log(self) -> str:
        """The container's log, of both streams."""
        return await self.daemon.docker("logs", NAME, both=True)

    async def wedge(self, how: str = "hang") -> float:
        """The fault; the moment just before it (monotonic clock)."""
        now = time.monotonic()
        await self.tell(how)
        told = "without a line" if "quiet" in how else "and logs the fingerprint"
        what = "takes connections and never answers" if how.startswith("hang") else "closes its port"
        self.stage.place(now, f"{NAME} on {self.namespace} {what}, {told}")
        return now


class Watchdog:
    """edgekeeper in front of a box; ``said`` is more of the watch's config."""

    def __init__(self, box: Box, said: dict[str, Any] | None = None, home: Home | None = None) -> None:
        self.box = box
        base = {"name": NAME, "preset": "netbird-proxy", "docker": NAME, "docker_socket": str(box.daemon.socket), "probe": box.url}
        self.product = Product(box.stage, "watch", [{**base, **(said or {})}], OPS_PORT, home)

    async def start(self) -> None:
        """Start it and wait until it sees the log and has an answer of its probe."""
        await self.product.start()
        await self.box.stage.until("the watchdog sees the log", self.sees)

    async def watch(self) -> dict[str, Any]:
        """What it says of its watch; empty when nothing."""
        self.product.must_run()
        watches = (await self.product.role_status()).get("watches") or [{}]
        found: dict[str, Any] = watches[0]
        return found

    async def sees(self) -> bool:
        """Whether it sees the log, and its probe was answered."""
        watch = await self.watch()
        return bool(watch.get("seeing")) and bool((watch.get("probe") or {}).get("ok"))

    def tells(self) -> None:
        """Put what it journaled of the watch on the timeline."""
        for entry in self.product.journal():
            if str(entry.get("event", "")).startswith("watch.") and entry["event"] != "watch.sees":
                self.box.stage.place(float(entry["mono"]), f"{self.product.home.node}: {entry['event']}: {entry['why']}")


class Scripts:
    """The scripts of the field reports in front of a box: the follower with its cooldown, and the URL watchdog."""

    def __init__(self, box: Box, cooldown_s: int = plain_watch.COOLDOWN_S) -> None:
        self.box = box
        self._cooldown_s = cooldown_s
        self._actors: list[Actor] = []

    async def start(self) -> None:
        """Start both."""
        stage, box = self.box.stage, self.box
        stamp = str(stage.folder / f"{box.namespace}-stamp")
        flood = [NAME, wedge.FINGERPRINT.strip(": "), str(self._cooldown_s), stamp]
        url = [NAME, sys.executable, box.url, str(plain_watch.ROUNDS), str(plain_watch.PERIOD_S), stamp]
        for name, text, words in (("flood", plain_watch.FLOOD, flood), ("url", plain_watch.URL, url)):
            file = stage.folder / f"{name}.sh"
            file.write_text(text, encoding="ascii")
            argv = ["env", *(f"{k}={v}" for k, v in box.daemon.env.items()), "sh", str(file), *words]
            self._actors.append(await stage.spawn(box.namespace, f"{box.namespace}-{name}", argv))
        await asyncio.sleep(0.5)  # nothing tells when docker logs follows
        stage.note(f"the follower restarts on the first line, then not for {self._cooldown_s} s; the URL watchdog after 3 rounds of 60 s")

    def tells(self) -> None:
        """Put what they said on the timeline, the same words once."""
        for actor in self._actors:
            said = ""
            for line in actor.log.read_text(encoding="utf-8", errors="replace").splitlines():
                at, _, text = line.partition(" ")
                if text.partition(":")[0] != said and at.replace(".", "", 1).isdigit():
                    # Seconds since the boot are those of the monotonic clock, unless the machine was suspended.
                    self.box.stage.place(float(at), f"{actor.name}: {text}")
                said = text.partition(":")[0]
