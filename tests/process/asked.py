"""A small web server that is there, refuses or hangs, and the ``edgekeeper probe run`` that asks it: all on loopback."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .edge import free_ports, until


class Web:
    """A server of one thread a request; ``paths`` are what was asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.paths: list[str] = []
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        paths = self.paths

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class Asked:
    """The server and the meter; everything that is started ends with it."""

    def __init__(self, folder: Path, **probe: Any) -> None:
        self.folder = folder
        port, self.ops, self.closed = free_ports(3)
        self.web = Web(port)
        self.url = f"http://127.0.0.1:{port}/"
        self.config = folder / "edgekeeper.yaml"
        self.probe: dict[str, Any] = {"targets": [self.url], "every": "50ms", "timeout": "300ms", "alarm": "500ms", **probe}
        self.runs: list[subprocess.Popen[bytes]] = []
        self.write()
        self.web.start()

    def write(self) -> None:
        root = {
            "node": "edge-a", "run_dir": str(self.folder / "run"), "state_dir": str(self.folder / "state"), "ops": {"listen": f"127.0.0.1:{self.ops}"},
            "probe": self.probe,
        }  # fmt: skip
        self.config.write_text(json.dumps(root))

    def run(self, *wrapper: str) -> subprocess.Popen[bytes]:
        command = [*(wrapper or (sys.executable, "-m", "edgekeeper")), "--config", str(self.config), "probe", "run"]
        with (self.folder / f"run-{len(self.runs)}.log").open("wb") as log:
            self.runs.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        self.until(self.targets, "it runs")
        return self.runs[-1]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.runs[-1].send_signal(number)
        return self.runs[-1].wait(30)

    def until(self, true: Any, what: str) -> Any:
        try:
            return until(true, what)
        except AssertionError as err:
            err.add_note(json.dumps(self.status())[:2000])
            err.add_note((self.folder / f"run-{len(self.runs) - 1}.log").read_text(errors="replace")[-3000:])
            raise

    # what it says ---------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, KeyError), urllib.request.urlopen(f"http://127.0.0.1:{self.ops}/status", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)["roles"]["probe"]
            return found
        return {}

    def targets(self) -> dict[str, dict[str, Any]]:
        return {one["target"]: one for one in self.status().get("targets", [])}

    def metric(self, name: str) -> float | None:
        """The first value of a metric; None: there is none yet."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}/metrics", timeout=2) as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} "))), None)

    def journal(self, *events: str) -> list[dict[str, Any]]:
        file = self.folder / "state/journal.jsonl"
        found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [one for one in found if not events or one["event"] in events]


@contextlib.contextmanager
def asked(folder: Path, **probe: Any) -> Iterator[Asked]:
    made = Asked(folder, **probe)
    try:
        yield made
    finally:
        made.web.stop()
        for run in made.runs:
            with contextlib.suppress(ProcessLookupError):
                run.kill()
            run.wait()
