"""What stands at the edge: edgekeeper by its command line, or a plain dnsdist."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.plain import Plain, config
from edgekeeper.lab.stage import MEMBER_PORT, NAMES, Stage
from edgekeeper.lab.topology import FRONT, MEMBERS

OPS_PORT = 8084


class PlainEdge:
    """dnsdist with the config of ``lab.plain``, as a unit file would start it."""

    def __init__(self, stage: Stage, members: int = 3, **changes: Any) -> None:
        self._stage = stage
        plain = Plain(listen=(f"{FRONT}:53",), members=members_of(members), policy=stage.policy)
        self.plain = replace(plain, **changes)
        self._starts = 0
        self.actor: Actor | None = None

    def write(self) -> Path:
        """Write the config that the next start reads."""
        path = self._stage.folder / "dnsdist.conf"
        path.write_text(config(self.plain), encoding="utf-8")
        return path

    async def start(self) -> Actor:
        """Start dnsdist; returns at once."""
        self._starts += 1
        argv = [self._stage.engine.binary, "-C", str(self.write()), "--supervised", "--disable-syslog"]
        self.actor = await self._stage.spawn("edge", f"dnsdist-{self._starts}", argv)
        return self.actor

    async def restart(self) -> None:
        """TERM, wait, start: what ``systemctl restart`` does."""
        if self.actor is not None:
            await self.actor.stop(10.0)
        await self.start()

    async def serve(self, members: tuple[tuple[str, str], ...]) -> None:
        """Start it with these members; wait for the first answer."""
        self.plain = replace(self.plain, members=members)
        await self.start()
        await self._stage.all_serve(1)

    def extra_listen(self, address: str) -> None:
        """Listen on one address more from the next start on."""
        self.plain = replace(self.plain, listen=(*self.plain.listen, address))

    async def up(self, members: int = 3) -> None:
        """Start it and wait until the client is answered by every member."""
        await self.start()
        await self._stage.all_serve(members)

    def engine_pid(self) -> int:
        """The process that answers."""
        return self.actor.pid if self.actor is not None else 0


class ProductEdge:
    """``edgekeeper dns run --config FILE`` in the edge namespace, with a config file a user would write."""

    def __init__(self, stage: Stage, members: int = 3, dns: Mapping[str, Any] | None = None) -> None:
        self._stage = stage
        self.file = stage.folder / "edgekeeper.yaml"
        self.members_file = stage.folder / "members.yaml"
        self.dns: dict[str, Any] = {
            "listen": [f"{FRONT}:53"],
            "acl": ["198.51.100.0/24", "127.0.0.0/8"],
            "members": {"file": str(self.members_file)},
            "proxy_protocol": "off",
            "health": {"name": "health.example.", "type": "TXT"},
            "policy": stage.policy,
            "debounce": "1s",
            "engine": {"binary": stage.engine.binary},
            **(dns or {}),
        }
        self._starts = 0
        self.actor: Actor | None = None
        self.write_members(members_of(members))

    def write(self) -> None:
        """Write the config (JSON is YAML)."""
        root = {
            "node": "edge-a",
            "run_dir": str(self._stage.folder / "run"),
            "state_dir": str(self._stage.folder / "state"),
            "ops": {"listen": f"127.0.0.1:{OPS_PORT}"},
            "dns": self.dns,
        }
        _swap(self.file, json.dumps(root, indent=1))

    def write_members(self, members: tuple[tuple[str, str], ...]) -> None:
        """Replace the members file in one rename, as an editor or a deployment does."""
        _swap(self.members_file, json.dumps({"members": [f"{name}={address}" for name, address in members]}, indent=1))

    async def start(self) -> Actor:
        """Start the supervisor; returns at once."""
        self._starts += 1
        self.write()
        self.actor = await self._stage.spawn("edge", f"edgekeeper-{self._starts}", [*command(), "dns", "run", "--config", str(self.file)])
        return self.actor

    async def up(self, members: int = 3) -> None:
        """Start it and wait until the client is answered by every member and the status is good."""
        await self.start()
        await self._stage.until("edgekeeper is ready", self.ready, timeout_s=20.0)
        await self._stage.all_serve(members)

    async def ready(self) -> bool:
        """Whether it runs and says that its engine does."""
        self.must_run()
        return self.engine_of(await self.status()) > 0

    async def status(self) -> dict[str, Any]:
        """``GET /status``: empty when it does not answer."""
        return await self.status_of(self._stage)

    @staticmethod
    async def status_of(stage: Stage) -> dict[str, Any]:
        """``GET /status`` of whoever stands at the edge of this stage."""
        body = await http_get(stage, f"http://127.0.0.1:{OPS_PORT}/status")
        found: dict[str, Any] = json.loads(body) if body else {}
        return found

    @staticmethod
    def engine_of(status: Mapping[str, Any]) -> int:
        """The engine's pid in a status; 0 when it has none."""
        engine = status.get("roles", {}).get("dns", {}).get("engine") or {}
        return int(engine.get("pid") or 0)

    async def engine_pid(self) -> int:
        """The process that answers."""
        return self.engine_of(await self.status())

    def journal(self) -> list[dict[str, Any]]:
        """The journal so far, oldest first."""
        file = self._stage.folder / "state" / "journal.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    async def run(self, *argv: str) -> tuple[int, str]:
        """Run one ``edgekeeper`` command in the edge namespace: its exit code and what it printed."""
        actor = await self._stage.spawn("edge", f"command-{len(self._stage.actors)}", [*command(), *argv])
        code = await actor.wait(30.0)
        return code, actor.log.read_text(encoding="utf-8", errors="replace")

    def reload(self) -> None:
        """Write the config and say so."""
        self.write()
        self.hup()

    def hup(self) -> None:
        """SIGHUP: read the config again."""
        self.signal(signal.SIGHUP)

    def signal(self, number: signal.Signals) -> None:
        """A signal to the supervisor, not to the engine."""
        if self.actor is not None:
            self.actor.signal(number)

    def must_run(self) -> None:
        """Raise StepFailedError when the supervisor has ended."""
        if self.actor is not None:
            self.actor.must_run()


def members_of(count: int) -> tuple[tuple[str, str], ...]:
    """Names and addresses of the first ``count`` members."""
    return tuple((name, f"{address}:{MEMBER_PORT}") for name, address in list(zip(NAMES, MEMBERS, strict=False))[:count])


def command() -> list[str]:
    """The installed ``edgekeeper`` beside this Python; else the module."""
    beside = Path(sys.executable).parent / "edgekeeper"
    if beside.exists():
        return [str(beside)]
    found = shutil.which("edgekeeper")
    return [found] if found else [sys.executable, "-m", "edgekeeper"]


def _swap(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(path)


async def http_get(stage: Stage, url: str, timeout: float = 1.0) -> str:
    """The body of a plain HTTP answer with status 200 from inside the edge namespace; empty else."""
    rest = url.removeprefix("http://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.partition(":")
    sock = stage.net.socket("edge")
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            await loop.sock_connect(sock, (host, int(port)))
            await loop.sock_sendall(sock, f"GET /{path} HTTP/1.0\r\nHost: {authority}\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while part := await loop.sock_recv(sock, 65536):
                answer += part
    except OSError:
        return ""
    finally:
        sock.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return body.decode(errors="replace") if b" 200 " in head.split(b"\r\n", 1)[0] + b" " else ""


def need(programs: tuple[str, ...]) -> None:
    """Raise MissingError for programs (``program=package``) that are not installed, with the command that installs them."""
    missing = [p.partition("=") for p in programs if shutil.which(p.partition("=")[0]) is None]
    if missing:
        names = ", ".join(program for program, _, _ in missing)
        packages = " ".join(package for _, _, package in missing)
        msg = f"{names} not found; install: apt-get install {packages}"
        raise MissingError(msg)
