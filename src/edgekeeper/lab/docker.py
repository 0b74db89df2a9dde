"""A real Docker daemon inside a namespace of the lab, with an image that needs no registry.

It never touches the host: the namespace's network is its own, its mounts are in a mount namespace of its own and go with its last process,
its sockets below ``/run`` are on a file system that nobody else sees, its files are in the drill's folder, and its containers are in a
control group that the sweep finds by its name. Process ids are the machine's.

Measured (2026-11-30, docker 20.10.24 on two cores): ready 0.4 s after its start, an empty image in 0.1 s, a container of it in 0.3 s.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.netns import Net

IMAGE = "scratch-of-the-lab"
"""An image that holds nothing: what a container needs is bound into it from the machine, read-only."""
_READY_S = 40.0
"""A daemon that was killed stops what it finds running first, which takes up to 20 s where a process ignores TERM (measured on 28.5.2)."""
_COMMAND_S = 60.0
# A chroot whose root is no mount point (a bare build root) can neither pivot nor remount /, and a bind of / onto a folder can. Before that,
# nothing that is mounted here may show on the machine: in such a chroot / is made private from the real root, where nsenter goes.
_MOUNTS = """
mount --make-rprivate / 2> /dev/null || nsenter --mount=/proc/$$/ns/mnt -- mount --make-rprivate / || exit 1
mount --rbind / "$1" && mount -t tmpfs tmpfs "$1/run" && exec chroot "$1" sh -c "echo ready; exec sleep infinity"
"""


class Daemon:
    """One dockerd. ``more`` is added to its configuration (``{"live-restore": true}``); ``keep`` is handed what was started, to be stopped."""

    def __init__(
        self, net: Net, namespace: str, folder: Path, binary: str, more: Mapping[str, Any] | None = None, *, keep: Callable[[Actor], object] | None = None
    ) -> None:
        self.net = net
        self.namespace = namespace
        self.folder = folder
        self.socket = folder / "docker.sock"
        self.actor: Actor | None = None
        self._bin = Path(binary).parent
        self._binary = binary
        self._more = dict(more or {})
        self._mounts: Actor | None = None
        self._keep = keep or (lambda _: None)
        self._starts = 0

    @property
    def env(self) -> dict[str, str]:
        """What ``docker``, and the scripts that call it, need in their environment."""
        return {
            "PATH": f"{self._bin}:{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin",
            "DOCKER_HOST": f"unix://{self.socket}",
            "DOCKER_CONFIG": str(self.folder / "client"),
        }

    async def start(self) -> Daemon:
        """Start it and wait until it answers; its containers that are to run always are started by it."""
        if _in_user_namespace():
            msg = "a Docker daemon needs the real root; run it with sudo"
            raise MissingError(msg)
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "daemon.json"
        config.write_text(json.dumps(self._config()), encoding="utf-8")
        holder = await self._hold_mounts()
        self._starts += 1
        argv = ["nsenter", "--target", str(holder.pid), "--mount", "--root", "--", self._binary, "--config-file", str(config)]
        self.actor = await Actor.start(self.net, self.namespace, f"dockerd-{self._starts}", argv, folder=self.folder, env=self.env)
        self._keep(self.actor)
        await self._until("dockerd answers", self.answers)
        return self

    def _config(self) -> dict[str, Any]:
        return {
            "data-root": str(self.folder / "data"),
            "exec-root": str(self.folder / "exec"),
            "pidfile": str(self.folder / "docker.pid"),
            "hosts": [f"unix://{self.socket}"],
            # Containers share the namespace's network or have none: a machine without iptables and docker-proxy will do.
            "bridge": "none",
            "userland-proxy": False,
            "iptables": False,
            "ip-forward": False,
            "ip-masq": False,
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "cgroup-parent": f"/{self.net.name[self.namespace]}",
            **self._more,
        }

    async def _hold_mounts(self) -> Actor:
        """A process that keeps the mount namespace, so that a daemon that is started again finds its containers' file systems."""
        if self._mounts is None:
            root = self.folder / "root"
            root.mkdir(exist_ok=True)
            argv = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _MOUNTS, "sh", str(root)]
            holder = await Actor.start(self.net, self.namespace, "docker-mounts", argv, folder=self.folder)
            self._keep(holder)

            async def ready() -> bool:
                holder.must_run()
                return b"ready" in await asyncio.to_thread(holder.log.read_bytes)

            await self._until("its mounts are there", ready)
            self._mounts = holder
        return self._mounts

    async def _until(self, what: str, check: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(_READY_S):
                while not await check():  # noqa: ASYNC110 - another process, which has no event for us
                    await asyncio.sleep(0.01)
        except TimeoutError:
            tail = self.actor.tail() if self.actor else ""
            msg = f"waited {_READY_S:g} s in vain until {what} ({tail}); the drill stops"
            raise StepFailedError(msg) from None

    async def answers(self) -> bool:
        """Whether it says OK to a ping. StepFailedError when it has ended."""
        if self.actor is not None:
            self.actor.must_run()
        try:
            async with asyncio.timeout(1.0):
                reader, writer = await asyncio.open_unix_connection(self.socket)
                try:
                    writer.write(b"GET /_ping HTTP/1.0\r\n\r\n")
                    said = await reader.read()
                finally:
                    writer.close()
                    await writer.wait_closed()
        except OSError:
            return False
        return b" 200 " in said.split(b"\r\n", 1)[0]

    async def stop(self) -> None:
        """TERM, as a service manager stops it: it stops its containers first (unless it has ``live-restore``)."""
        if self.actor is not None:
            await self.actor.stop(20.0)

    async def kill(self) -> None:
        """KILL, to the daemon alone: containers go on without it."""
        if self.actor is not None:
            self.actor.signal(signal.SIGKILL)
            await self.actor.wait(5.0)

    async def close(self) -> None:
        """End everything at once: the daemon, what it started, and the mounts. The namespace itself stays.

        The lab's own cleanup of the namespace does the same; this is for whoever wants the namespace empty.
        """
        self.end()
        for actor in (self.actor, self._mounts):
            if actor is not None:
                await actor.stop(2.0)
        self._mounts = self.actor = None

    def end(self) -> None:
        """KILL to every process inside the namespace."""
        self.net.kill(self.namespace, signal.SIGKILL)

    async def docker(self, *argv: str, timeout_s: float = _COMMAND_S, both: bool = False) -> str:
        """What one ``docker`` command printed (with ``both`` on standard error too); StepFailedError with what it complained of."""
        process = await asyncio.create_subprocess_exec(
            str(self._bin / "docker"),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT if both else asyncio.subprocess.PIPE,
            env={**os.environ, **self.env},
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_s)
        except TimeoutError:
            process.kill()
            await process.wait()
            msg = f"docker {argv[0]} did not end within {timeout_s:g} s; the drill stops"
            raise StepFailedError(msg) from None
        if process.returncode:
            msg = f"docker {argv[0]} failed ({(err or out).decode(errors='replace').strip()[:300]}); the drill stops"
            raise StepFailedError(msg)
        return out.decode(errors="replace").strip()

    async def image(self) -> str:
        """Make the empty image; its name."""
        empty = self.folder / "empty.tar"
        empty.write_bytes(bytes(1024))
        await self.docker("import", str(empty), IMAGE)
        return IMAGE


def python_mounts() -> tuple[str, ...]:
    """The words for ``docker run`` that bind this machine's Python and its libraries into a container, read-only."""
    places = [(p.resolve(), p) for p in (Path("/usr"), Path("/bin"), Path("/lib"), Path("/lib64"), Path("/etc/ld.so.cache")) if p.exists()]
    home = Path(sys.base_prefix)
    if not home.is_relative_to("/usr"):
        places.append((home, home))
    return tuple(word for real, seen in places for word in ("--volume", f"{real}:{seen}:ro"))


def python_argv(script: str, *argv: str) -> tuple[str, ...]:
    """The words that run a script of the standard library alone with that Python; without the site module, so that it starts quickly."""
    return (str(Path(sys.executable).resolve()), "-I", "-S", script, *argv)


def _in_user_namespace() -> bool:
    """Whether this root is that of a user namespace: it may make networks, and no control groups."""
    with contextlib.suppress(OSError):
        return Path("/proc/self/uid_map").read_text(encoding="ascii").split() != ["0", "0", "4294967295"]
    return False


__all__: Sequence[str] = ("IMAGE", "Daemon", "python_argv", "python_mounts")
