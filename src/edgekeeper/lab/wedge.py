"""A small proxy that wedges on command: what runs in the containers of the watch drills.

``python -I -S wedge.py LISTEN HEALTH FOLDER``: it serves HTTP on LISTEN and its health document on HEALTH (addresses with ports), and takes
commands on ``FOLDER/wedge.sock``. It needs the standard library and nothing else, and little of that, so that a restart is quick: what
drills measure is the watchdog. Its log is written as that of a NetBird proxy: numbered lines all the time, the path of each request
**decoded** as it came (so that ``%0A`` forges a line), and a line with the fingerprint when it wedges.

Commands, one line each, answered with ``ok`` or one sentence: ``hang`` and ``refuse`` (with ``quiet``: without the line), ``flood`` (the line alone),
``heal [SECONDS]``,
``management up|down``, ``chatter LINES BYTES``. FOLDER keeps what outlives a restart: ``management`` (down: a proxy that is started now
serves nothing until it is up), ``starts`` and ``stops``, a line with the monotonic time of every start and of every TERM.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time

FINGERPRINT = "couldn't fetch peer state: "
SAYS = "client/internal/routemanager/client/client.go:126: " + FINGERPRINT + "AAAAexamplePublicKeyAAAA="
_FLOOD_S = 1.0
_BURST = 9
"""Lines of a wedge after the first, and the time between two: bursts of tens a minute that end while the wedge stays, as in the field."""
_LINE_S = 0.2


def decoded(path: bytes) -> str:
    """A request's path with its percent signs decoded, as the proxy logs it."""
    first, *rest = path.split(b"%")
    out = [first]
    for part in rest:
        digits = part[:2]
        good = len(digits) == 2 and all(digit in b"0123456789abcdefABCDEF" for digit in digits)
        out.append(bytes((int(digits, 16),)) + part[2:] if good else b"%" + part)
    return b"".join(out).decode(errors="replace")


def place(text: str) -> tuple[str, int]:
    """``address:port`` as a pair."""
    host, _, port = text.rpartition(":")
    return host, int(port)


class Log:
    """Numbered lines on standard error, whole lines only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0

    def write(self, level: str, text: str) -> None:
        """One line, or several where the text holds ends of lines."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
        with self._lock:
            os.write(2, f"{stamp} {level} {text}\n".encode())

    def numbered(self, size: int = 0) -> None:
        """The next line of those that mean nothing."""
        self._number += 1
        self.write("INFO", f"proxy/internal/health/health.go:80: line {self._number} {'x' * size}".rstrip())


class Proxy:
    """The proxy: how it behaves now."""

    def __init__(self, listen: tuple[str, int], health: tuple[str, int], folder: str) -> None:
        self.log = Log()
        self._listen = listen
        self._health = health
        self._folder = folder
        self._well = threading.Event()
        self._well.set()
        self._socket: socket.socket | None = None
        self._flood = 0

    # --- commands

    def command(self, line: str) -> str:
        """Carry out one command."""
        match line.split():
            case ["hang" | "refuse" as how, *quiet] if quiet in ([], ["quiet"]):
                self._wedge(refuse=how == "refuse")
                if not quiet:
                    self._flood = _BURST
                    self.log.write("WARN", SAYS)
            case ["flood"]:
                self._flood = _BURST
                self.log.write("WARN", SAYS)
            case ["heal", *after]:
                threading.Timer(float(after[0]) if after else 0.0, self._heal).start()
            case ["management", "up" | "down" as state]:
                self._write("management", state)
                if state == "up":
                    self.serve()
            case ["chatter", lines, size]:
                for _ in range(int(lines)):
                    self.log.numbered(int(size))
            case _:
                return f"{line!r} is not a command; see the documentation of wedge.py"
        return "ok"

    def _wedge(self, *, refuse: bool) -> None:
        self._well.clear()
        if refuse and self._socket is not None:
            closing, self._socket = self._socket, None
            with contextlib.suppress(OSError):
                closing.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
            closing.close()

    def _heal(self) -> None:
        self._flood = 0
        self._well.set()
        self.serve()

    # --- what outlives a restart

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _write(self, name: str, text: str, *, more: bool = False) -> None:
        fd = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | (os.O_APPEND if more else os.O_TRUNC), 0o644)
        os.write(fd, text.encode())
        os.close(fd)

    @property
    def connected(self) -> bool:
        """Whether its management is up."""
        try:
            fd = os.open(self._path("management"), os.O_RDONLY)
        except OSError:
            return True
        text = os.read(fd, 16)
        os.close(fd)
        return text.strip() != b"down"

    # --- serving

    def serve(self) -> None:
        """Listen, when it does not yet."""
        if self._socket is None:
            self._socket = listening(self._listen)
            threading.Thread(target=self._accept, args=(self._socket, self._answer), daemon=True).start()

    def _accept(self, sock: socket.socket, answer: object) -> None:
        while True:
            try:
                one, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(one, answer), daemon=True).start()

    @staticmethod
    def _serve_one(one: socket.socket, answer: object) -> None:
        with one, contextlib.suppress(OSError):
            one.settimeout(30)
            head = b""
            while b"\r\n\r\n" not in head:
                part = one.recv(65536)
                if not part:
                    return
                head += part
            words = head.split(b"\r\n", 1)[0].split(b" ")
            status, kind, body = answer(words[1] if len(words) > 1 else b"/")  # type: ignore[operator]
            length = len(body)
            one.sendall(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n".encode() + body)

    def _answer(self, path: bytes) -> tuple[str, str, bytes]:
        self._well.wait()
        # HTTP mode logs what clients sent at level WARN, when they hang up early too.
        self.log.write("WARN", f"proxy/internal/proxy/reverseproxy.go:754: proxy error: request canceled host=git.example path={decoded(path)} err=none")
        return "200 OK", "text/plain", b"ok\n"

    def _document(self, path: bytes) -> tuple[str, str, bytes]:
        del path
        connected = self.connected
        checks = f'{{"management_connected": {str(connected).lower()}, "initial_sync_complete": {str(self._socket is not None).lower()}}}'
        return "200 OK", "application/json", f'{{"status": "{"ok" if connected else "degraded"}", "checks": {checks}}}\n'.encode()

    # --- the process

    def run(self) -> None:
        """Serve until it is ended."""
        self._write("starts", f"{time.monotonic():.6f}\n", more=True)
        self.log.write("INFO", "proxy/server.go:210: starting")
        control = self._path("wedge.sock")
        with contextlib.suppress(OSError):
            os.unlink(control)  # noqa: PTH108 - pathlib costs a third of the start
        commands = socket.socket(socket.AF_UNIX)
        commands.bind(control)
        commands.listen()
        threading.Thread(target=self._accept, args=(listening(self._health), self._document), daemon=True).start()
        threading.Thread(target=self._talk, daemon=True).start()
        if self.connected:
            self.serve()
            self.log.write("INFO", "proxy/server.go:260: Initial mapping sync complete")
        while True:
            one, _ = commands.accept()
            with one, contextlib.suppress(OSError):
                line = one.makefile("r").readline()
                try:
                    said = self.command(line)
                except ValueError as err:
                    said = str(err)
                one.sendall(said.encode() + b"\n")

    def leave(self, *_: object) -> None:
        """TERM: end at once."""
        self._write("stops", f"{time.monotonic():.6f}\n", more=True)
        os._exit(0)

    def _talk(self) -> None:
        flooded = time.monotonic()
        while True:
            threading.Event().wait(_LINE_S)
            self.log.numbered()
            if self._flood and time.monotonic() - flooded > _FLOOD_S:
                flooded = time.monotonic()
                self._flood -= 1
                self.log.write("WARN", SAYS)


def listening(address: tuple[str, int]) -> socket.socket:
    """A listening socket; the one of before may still be in its last wait."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(address)
    sock.listen(512)
    return sock


def main() -> None:
    """The command line. TERM ends it at once: a first process of a container that has no handler would ignore it."""
    listen, health, folder = sys.argv[1:]
    proxy = Proxy(place(listen), place(health), folder)
    signal.signal(signal.SIGTERM, proxy.leave)
    proxy.run()


if __name__ == "__main__":
    main()
