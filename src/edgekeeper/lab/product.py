"""edgekeeper by its command line, with a config file that a user would write: one role, or all of a node's."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError
from edgekeeper.lab.actors import Actor
from edgekeeper.lab.stage import Stage


@dataclass(frozen=True, slots=True)
class Home:
    """Where one edgekeeper lives: its namespace, its node's name, a folder of its own, and the rest of its config.

    ``ops`` is the address and port of its ops listener; empty: 127.0.0.1 and the role's port. ``token`` is what it asks for.
    """

    namespace: str = "edge"
    node: str = "edge-a"
    folder: str = ""
    ops: str = ""
    token: str = ""
    root: Mapping[str, Any] = field(default_factory=dict)


class Product:
    """``edgekeeper ROLE run --config FILE``. ``section`` is the role's part of the config; change it, then ``reload``.

    With ``everything`` it is ``edgekeeper run``: the other roles are in ``home.root``.
    """

    def __init__(self, stage: Stage, role: str, section: Any, ops_port: int, home: Home | None = None, *, everything: bool = False) -> None:
        self.stage = stage
        self.role = role
        self.section = section
        self.home = home or Home()
        self.ops = self.home.ops or f"127.0.0.1:{ops_port}"
        self.folder = stage.folder / self.home.folder if self.home.folder else stage.folder
        self.file = self.folder / "edgekeeper.yaml"
        self.everything = everything
        self.actor: Actor | None = None
        self._starts = 0

    def write(self) -> None:
        """Write the config (JSON is YAML)."""
        ops = {"listen": self.ops}
        if self.home.token:
            token = self.folder / "ops.token"
            token.write_text(self.home.token + "\n", encoding="ascii")
            token.chmod(0o600)
            ops["token_file"] = str(token)
        root = {
            "node": self.home.node,
            "run_dir": str(self.folder / "run"),
            "state_dir": str(self.folder / "state"),
            "ops": ops,
            **self.home.root,
            self.role: self.section,
        }
        swap(self.file, json.dumps(root, indent=1))

    async def start(self) -> Actor:
        """Start the supervisor; returns at once."""
        self._starts += 1
        self.folder.mkdir(exist_ok=True)
        self.write()
        argv = [*command(), *([] if self.everything else [self.role]), "run", "--config", str(self.file)]
        name = f"edgekeeper-{self._starts}" if self.folder == self.stage.folder else f"{self.home.folder}-edgekeeper-{self._starts}"
        self.actor = await self.stage.spawn(self.home.namespace, name, argv)
        return self.actor

    async def ready(self) -> bool:
        """Whether it runs and says that its engine does."""
        self.must_run()
        return await self.engine_pid() > 0

    async def status(self) -> dict[str, Any]:
        """``GET /status``: empty when it does not answer."""
        return await status_at(self.stage, self.ops, self.home.namespace, self.home.token)

    async def role_status(self) -> dict[str, Any]:
        """The role's part of the status; empty when there is none."""
        found: dict[str, Any] = (await self.status()).get("roles", {}).get(self.role, {})
        return found

    async def engine_pid(self) -> int:
        """The engine's process as the status names it; 0 when it has none."""
        engine = (await self.role_status()).get("engine") or {}
        return int(engine.get("pid") or 0)

    async def restarts(self, pid: int) -> float:
        """1 when another engine runs than this one, 0 when it is the same; waits for a status that names one."""
        await self.stage.until("the status names an engine", self.engine_pid, timeout_s=5.0)
        return float(await self.engine_pid() != pid)

    async def adopted(self, pid: int) -> bool:
        """Whether the supervisor says that it found this engine running and kept it."""
        self.must_run()
        role = await self.role_status()
        return bool(role.get("adopted")) and int((role.get("engine") or {}).get("pid") or 0) == pid

    def journal(self) -> list[dict[str, Any]]:
        """The journal so far, oldest first."""
        file = self.folder / "state" / "journal.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    async def run(self, *argv: str) -> tuple[int, str]:
        """Run one ``edgekeeper`` command in its namespace: its exit code and what it printed."""
        actor = await self.stage.spawn(self.home.namespace, f"command-{len(self.stage.actors)}", [*command(), *argv])
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


def command() -> list[str]:
    """The installed ``edgekeeper`` beside this Python; else the module."""
    beside = Path(sys.executable).parent / "edgekeeper"
    if beside.exists():
        return [str(beside)]
    found = shutil.which("edgekeeper")
    return [found] if found else [sys.executable, "-m", "edgekeeper"]


def swap(path: Path, text: str) -> None:
    """Replace a file in one rename, as an editor or a deployment does."""
    new = path.with_name(path.name + ".new")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(path)


async def status_at(stage: Stage, ops: str, namespace: str = "edge", token: str = "") -> dict[str, Any]:
    """``GET /status`` from whoever has the ops address (host and port) in a namespace: empty when nobody answers."""
    body = await http_get(stage, f"http://{ops}/status", namespace=namespace, token=token)
    found: dict[str, Any] = json.loads(body) if body else {}
    return found


async def http_get(stage: Stage, url: str, timeout: float = 1.0, *, namespace: str = "edge", token: str = "") -> str:
    """The body of a plain HTTP answer with status 200 from inside a namespace; empty else."""
    rest = url.removeprefix("http://")
    authority, _, path = rest.partition("/")
    host, _, port = authority.partition(":")
    sock = stage.net.socket(namespace)
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            await loop.sock_connect(sock, (host, int(port)))
            await loop.sock_sendall(sock, f"GET /{path} HTTP/1.0\r\nHost: {authority}\r\n{bearer}Connection: close\r\n\r\n".encode())
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
