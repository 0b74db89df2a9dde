"""A small web server with a log, which hangs, dies and is cured, and the ``edgekeeper watch run`` that watches it: all on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .edge import DEADLINE_S, free_ports, until

LINE = "WARN couldn't fetch peer state: KEY"

SERVER = """\
import os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=64) as server:
    with open(sys.argv[2], "w") as file:
        file.write(str(os.getpid()))
    while True:
        client, _ = server.accept()
        with client:
            client.settimeout(2)
            try:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
            except OSError:
                pass
"""

CURE = """\
echo "begin $(cut -d' ' -f1 /proc/uptime)" >> cures
sleep "$(cat takes)"
[ -e fails ] && { echo "it will not start"; exit 3; }
kill -9 "$(cat pid)" 2>/dev/null
setsid "$1" -I -S server.py "$2" pid >/dev/null 2>&1 </dev/null &
echo "end $(cut -d' ' -f1 /proc/uptime)" >> cures
"""


class Wedged:
    """A service and its watchdog; everything that is started ends with it."""

    def __init__(self, folder: Path, node: str = "edge-a", **watch: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.node = folder, node
        self.port, self.ops = free_ports(2)
        self.log, self.config, self.cured = folder / "proxy.log", folder / "edgekeeper.yaml", folder / "cures"
        self.runs: list[subprocess.Popen[bytes]] = []
        for name, text in {"server.py": SERVER, "cure.sh": CURE, "takes": "0", "proxy.log": "", "cures": ""}.items():
            (folder / name).write_text(text)
        self.watch = {
            "name": "web",
            "file": str(self.log),
            "fingerprints": ["couldn't fetch peer state"],
            "untrusted_after": [" path="],
            "probe": {"targets": [f"http://127.0.0.1:{self.port}/"]},
            "cure": {"command": ["sh", "-c", f"cd {folder} && exec sh cure.sh {sys.executable} {self.port}"]},
            **watch,
        }
        self.root: dict[str, Any] = {
            "node": node, "run_dir": str(folder / "run"), "state_dir": str(folder / "state"), "ops": {"listen": f"127.0.0.1:{self.ops}"}, "watch": [self.watch],
        }  # fmt: skip
        self.write()
        self.serve()

    # the service ----------------------------------------------------------------------------

    def serve(self) -> None:
        start = f"setsid {sys.executable} -I -S server.py {self.port} pid >/dev/null 2>&1 </dev/null &"
        subprocess.run(["sh", "-c", start], cwd=self.folder, check=True, timeout=10)
        until(self.answers, "the service answers")

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text() or 0)

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(self.pid, number)

    def answers(self, timeout_s: float = 0.2) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=timeout_s) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def write_line(self, line: str = LINE, times: int = 1) -> None:
        with self.log.open("a") as log:
            log.write(f"{line}\n" * times)

    def wedge(self, *, line: bool = True, number: int = signal.SIGSTOP) -> float:
        """It hangs (or dies), and says so; when that was."""
        self.send(number)
        if line:
            self.write_line()
        return time.monotonic()

    def recovered(self, since: float, deadline_s: float = DEADLINE_S) -> float:
        """Seconds until it answers again."""
        until(self.answers, f"it is cured; {self.status()}\n{self.said()[-3000:]}", deadline_s)
        return time.monotonic() - since

    def cures(self, what: str = "begin") -> list[float]:
        """When cures were begun (or ended), in seconds since the boot."""
        return [float(line.split()[1]) for line in self.cured.read_text().splitlines() if line.startswith(what)]

    # the watchdog ---------------------------------------------------------------------------

    def write(self, text: str | None = None) -> None:
        new = self.config.with_suffix(".new")
        new.write_text(json.dumps(self.root) if text is None else text)
        new.replace(self.config)

    def run(self, *options: str, wrapper: tuple[str, ...] = (), wait: bool = True) -> subprocess.Popen[bytes]:
        with (self.folder / f"run-{len(self.runs)}.log").open("wb") as log:
            command = [*(wrapper or (sys.executable, "-m", "edgekeeper")), "--config", str(self.config), "watch", "run", *options]
            self.runs.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        if wait:
            until(lambda: self.status().get("watches"), f"it runs\n{self.said()}")
            self.until_seen()
        return self.runs[-1]

    def until_seen(self) -> None:
        until(lambda: all(one["seeing"] and one["probe"] for one in self.status()["watches"]), "it sees, and has asked")

    def said(self) -> str:
        return (self.folder / f"run-{len(self.runs) - 1}.log").read_text(errors="replace") if self.runs else ""

    def end(self, number: int = signal.SIGTERM) -> int:
        self.runs[-1].send_signal(number)
        return self.runs[-1].wait(30)

    def hup(self) -> None:
        self.runs[-1].send_signal(signal.SIGHUP)

    def page(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}{path}", timeout=2) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as err:
            return err.read().decode()

    def status(self) -> dict[str, Any]:
        """The role's part of /status; empty when nobody answers."""
        try:
            found: dict[str, Any] = json.loads(self.page("/status"))["roles"]["watch"]
        except (OSError, ValueError, KeyError):
            return {}
        return found

    def item(self, name: str = "web") -> dict[str, Any]:
        return next((one for one in self.status().get("watches", ()) if one["name"] == name), {})

    def until_state(self, state: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        until(lambda: self.item().get("state") == state, f"it is {state}; {self.item()}\n{self.said()[-3000:]}", deadline_s)
        return self.item()

    def journal(self) -> list[dict[str, Any]]:
        file = self.folder / "state/journal.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines() if line.strip()] if file.exists() else []

    def events(self, name: str = "web") -> list[str]:
        return [one["event"].removeprefix("watch.") for one in self.journal() if one["object"] == name and one["event"].startswith("watch.")]

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "edgekeeper", "--config", str(self.config), *words], capture_output=True, text=True, timeout=30, check=False
        )

    def close(self) -> None:
        for run in self.runs:
            with contextlib.suppress(ProcessLookupError):
                run.send_signal(signal.SIGCONT)
                run.kill()
            run.wait()
        (self.folder / "takes").write_text("0")
        (self.folder / "fails").touch()  # a cure that is still under way starts nothing any more
        self.send(signal.SIGKILL)


@contextlib.contextmanager
def wedged(folder: Path, node: str = "edge-a", **watch: Any) -> Iterator[Wedged]:
    """A service that runs, ended whatever happens with its watchdog."""
    made = Wedged(folder, node, **watch)
    try:
        yield made
    finally:
        made.close()
