"""A headless Chromium, spoken to over two pipes: no port, no driver, no library.

Each message is JSON that ends with a zero byte (DevTools protocol, ``--remote-debugging-pipe``: it reads from 3 and writes to 4).
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",  # CI is root in a container; the page is ours and runs no script
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
PATIENCE_S = 30.0


class Chrome:
    """One browser with one tab."""

    def __init__(self, program: str, profile: Path) -> None:
        ours_out, theirs_in = _pipe()
        theirs_out, ours_in = _pipe()
        self._in, self._out = ours_out, ours_in
        command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._rest = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; what happens meanwhile is kept in ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        os.write(self._in, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while True:
            heard = self._heard(until, method)
            if heard.get("id") == self._number:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return heard["result"]
            self.events.append(heard)

    def open(self, url: str, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Show a page, as wide as a device, in a colour scheme; returns when it has loaded. ``events`` begin anew."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.ask("Page.navigate", url=url)
        until = time.monotonic() + PATIENCE_S
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._heard(until, url))

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """The events of these kinds since the page was opened."""
        self.ask("Runtime.evaluate", expression="0")  # all that was under way before the answer has been heard
        return [e["params"] for e in self.events if e.get("method") in methods]

    def value(self, expression: str) -> Any:
        """What JavaScript of the test says in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Keep the whole page as PNG."""
        width, height = self.value("[innerWidth, document.scrollingElement.scrollHeight]")
        # A box that scrolls draws only what a window shows: the window is made as high as the page.
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        made = self.ask("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(made["data"]))

    def paper(self) -> bytes:
        """The page as PDF, as its own print rules say."""
        return base64.b64decode(self.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def close(self) -> None:
        """End it, politely if it listens."""
        self._session = None
        try:
            self.ask("Browser.close")
            self._process.wait(5)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own session: only what it started
            self._process.wait(5)
        os.close(self._in)
        os.close(self._out)

    def _heard(self, until: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready = select.select([self._out], [], [], max(0.0, until - time.monotonic()))[0]
            more = os.read(self._out, 2**20) if ready else b""
            assert more, f"Chromium {'fell silent' if not ready else 'ended'} while {what} was awaited"
            self._rest += more
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)


def _pipe() -> tuple[int, int]:
    """Write end and read end, with numbers that are not those the browser wants."""
    read, write = os.pipe()
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (write, read)]
    os.close(read)
    os.close(write)
    return high[0], high[1]
