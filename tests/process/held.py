"""Many idle TCP connections, held by a process of its own: ``python held.py serve NAME`` or ``python held.py connect``.

Orders come as words on standard input, one line each; each is answered by one JSON line. A server answers whatever it
reads with its name, so that a client knows for each of its connections which server holds it.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import socket
import sys
import time
from collections import Counter
from typing import Any

EDGE = select.EPOLLIN | select.EPOLLRDHUP


class Loop:
    """An epoll loop that also reads orders."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self.epoll.register(0, select.EPOLLIN)
        self.sockets: dict[int, socket.socket] = {}
        self.orders = b""

    def add(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sockets[sock.fileno()] = sock
        self.epoll.register(sock.fileno(), EDGE)

    def drop(self, number: int) -> None:
        self.epoll.unregister(number)
        self.sockets.pop(number).close()

    def run(self) -> None:
        while True:
            for number, _ in self.epoll.poll(1):
                if number == 0:
                    raw = os.read(0, 4096)
                    if not raw:
                        return
                    self.orders += raw
                    while b"\n" in self.orders:
                        line, _, self.orders = self.orders.partition(b"\n")
                        sys.stdout.write(json.dumps(self.order(*line.decode().split())) + "\n")
                        sys.stdout.flush()
                elif number in self.sockets:
                    self.ready(number)

    def order(self, word: str, *rest: str) -> Any:
        raise NotImplementedError

    def ready(self, number: int) -> None:
        raise NotImplementedError


def listening(port: int = 0) -> socket.socket:
    """A listener below the ephemeral range: a health check of a closed port in it may meet itself, and call it healthy."""
    while True:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port or 20_000 + secrets.randbelow(12_000)))
            sock.listen(4096)
        except OSError:
            sock.close()
            if port:
                raise
            continue
        return sock


class Server(Loop):
    """Holds connections and answers with its name; a second port is what the health check connects to."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name.encode()
        self.main, self.check = listening(), listening()
        self.check_port = self.check.getsockname()[1]
        self.add(self.main)
        self.add(self.check)

    def order(self, word: str, *rest: str) -> Any:
        if word == "ports":
            return [self.main.getsockname()[1], self.check_port]
        if word == "sick":
            self.drop(self.check.fileno())
        if word == "well":
            self.check = listening(self.check_port)
            self.add(self.check)
        return len(self.sockets)

    def ready(self, number: int) -> None:
        sock = self.sockets[number]
        if sock in (self.main, self.check):
            try:
                while True:
                    self.add(sock.accept()[0])
            except BlockingIOError:
                return
        try:
            if sock.recv(4096):
                sock.send(self.name)
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.drop(number)


class Clients(Loop):
    """Holds connections from source addresses of 127/8, a few hundred from each; opens another one for each that is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[int, tuple[str, str]] = {}
        self.cut: Counter[str] = Counter()
        self.target = ("127.0.0.1", 0)
        self.again = True
        self.opened = 0
        self.names: dict[int, str] = {}

    def order(self, word: str, *rest: str) -> Any:
        if word == "open":
            count, port, net, each = (int(text) for text in rest)
            self.target = ("127.0.0.1", port)
            for i in range(count):
                self.connect(f"127.0.{net}.{1 + i // each}")
            return self.ask()
        if word == "ask":
            return self.ask()
        if word == "again":
            self.again = rest[0] == "yes"
        if word == "cut":
            return dict(self.cut)
        return len(self.sockets)

    def connect(self, source: str) -> None:
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: thousands from one address
        sock.bind((source, 0))
        sock.connect(self.target)
        self.add(sock)
        self.where[sock.fileno()] = (source, "")

    def ask(self) -> dict[str, int]:
        """Ask on each connection who holds it; the counts by server's name, and of those that did not answer."""
        waiting = {}
        for number, sock in list(self.sockets.items()):
            try:
                sock.send(b"?")
                waiting[number] = sock
            except OSError:
                self.lost(number)
        end = time.monotonic() + 20
        answered: Counter[str] = Counter()
        while waiting and time.monotonic() < end:
            for number, _ in self.epoll.poll(0.5):
                if number in waiting:
                    del waiting[number]
                    raw = self.read(number)
                    if raw:
                        answered[raw] += 1
        return {**answered, "silent": len(waiting)}

    def read(self, number: int) -> str:
        try:
            raw = self.sockets[number].recv(4096)
        except BlockingIOError:
            return ""
        except OSError:
            raw = b""
        if raw:
            self.where[number] = (self.where[number][0], raw.decode())
            return raw.decode()
        self.lost(number)
        return ""

    def lost(self, number: int) -> None:
        source, name = self.where.pop(number)
        self.cut[name] += 1
        self.drop(number)
        if self.again:
            self.connect(source)

    def ready(self, number: int) -> None:
        self.read(number)


if __name__ == "__main__":
    (Server(sys.argv[2]) if sys.argv[1] == "serve" else Clients()).run()
