"""Access logs that the real programs write: the report counts what the clients saw."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from edgekeeper.report.book import Book
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.kinds import Kind
from edgekeeper.report.rules import Rules

from .haproxies import SUITES, free_port, until

pytestmark = pytest.mark.engine

WINDOW_S = 0.05
"""How far the log's clock may be from the client's: both are of one machine, the stamps have milliseconds."""


class Server:
    """A server of HTTP whose health can be taken; ``/hang`` never answers."""

    def __init__(self) -> None:
        self.healthy = True
        self.open: list[socket.socket] = []
        self.door = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self.door.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.door.accept()
            except OSError:
                return
            self.open.append(client)
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            while asked := client.recv(4096):
                if b" /hang " in asked:
                    continue
                good = b" /healthz " not in asked or self.healthy
                code = b"200 OK" if good and b" /broken " not in asked else b"500 Broken"
                client.sendall(b"HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok" % code)

    def close(self) -> None:
        for each in (self.door, *self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def server() -> Iterator[Callable[[], Server]]:
    made: list[Server] = []

    def make() -> Server:
        made.append(Server())
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Processes of this test, ended by their ids."""
    children: list[subprocess.Popen[bytes]] = []

    def start(*argv: object, log: Path, both: bool = True) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            children.append(subprocess.Popen([str(word) for word in argv], stdout=out, stderr=out if both else subprocess.DEVNULL))
        return children[-1]

    yield start
    for child in children:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)


def get(port: int, path: str = "/", agent: str = "test") -> int:
    """The status that a client sees; 0 when there is no answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), 3) as sock:
            sock.settimeout(10)
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: www.example\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n".encode())
            head = sock.recv(4096)
    except OSError:
        return 0
    return int(head[9:12]) if head.startswith(b"HTTP/1.") else 0


def pinned(port: int) -> tuple[socket.socket, float]:
    """A session that is established and then says nothing, and when it began."""
    begin = time.time()
    sock = socket.create_connection(("127.0.0.1", port), 3)
    sock.settimeout(10)
    sock.sendall(b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n")
    assert sock.recv(4096).startswith(b"HTTP/1.1 200")
    return sock, begin


def cut(sock: socket.socket) -> float:
    """Wait until the session is ended by the other side: when."""
    with contextlib.suppress(ConnectionError):
        assert sock.recv(1) == b""
    sock.close()
    return time.time()


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def loaded(path: Path, kind: str) -> Book:
    """What the report reads out of the log; it must have been recognised, and read to the last line."""
    book = read([Input(str(path), name="log", zone=os.environ.get("TZ", "UTC"))], Rules(), jobs=1)
    source = book.sources["log"]
    assert source.format == kind
    assert not source.skipped, source.skipped
    return book


def statuses(book: Book, router: str) -> Counter[int]:
    """How many answers of each status a route has."""
    found: Counter[int] = Counter()
    for lane in book.cells.lanes():
        if lane.router == router:
            for minute in book.cells.minutes(lane):
                found.update(minute.statuses)
    return found


class Syslog:
    """A receiver of syslog that keeps each datagram as a line."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.port = int(self.sock.getsockname()[1])
        self.file = path.open("ab", buffering=0)
        self.thread = threading.Thread(target=self._keep, daemon=True)
        self.thread.start()

    def _keep(self) -> None:
        while (data := self.sock.recv(65536)) != b"stop":
            self.file.write(data.rstrip(b"\n\0") + b"\n")

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(b"stop", ("127.0.0.1", self.port))
        self.thread.join(5)
        self.file.close()
        self.sock.close()


CONFIG = """
global
  stats socket {folder}/admin level admin
  log stdout format raw local0
  log 127.0.0.1:{old} format rfc3164 local0
  log 127.0.0.1:{new} format rfc5424 local0
  log-send-hostname lb-1
defaults
  log global
  timeout connect 2s
  timeout client 30s
  timeout server 30s
  timeout queue 300ms
  default-server check inter 100ms fastinter 100ms fall 2 rise 1 on-marked-down shutdown-sessions
  option httpchk GET /healthz
frontend web
  mode http
  option httplog
  bind 127.0.0.1:{web}
  default_backend apps
backend apps
  mode http
  server app-1 127.0.0.1:{app}
frontend k8s-api
  mode tcp
  option tcplog
  bind 127.0.0.1:{api}
  default_backend cp
backend cp
  mode tcp
  server cp-1 127.0.0.1:{one}
  server cp-2 127.0.0.1:{two} backup
"""


def admin(folder: Path, command: str) -> str:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(str(folder / "admin"))
        sock.sendall(command.encode() + b"\n")
        return b"".join(iter(lambda: sock.recv(65536), b"")).decode()


@dataclass(frozen=True)
class Played:
    """What the clients saw, and what ``show sess`` said meanwhile."""

    saw: Counter[int]
    begin: float
    end: float
    sessions: str


def play(folder: Path, web: int, api: int, servers: tuple[Server, Server], dead_request: int) -> Played:
    """A server goes down under a pinned session and a request: D; nobody is left: <NOSRV>; an administrator kills: K."""
    app, one = servers
    until(lambda: answers(web) and get(web) == 200, "HAProxy answers")
    saw: Counter[int] = Counter([200])
    saw.update(get(web, f"/ok{number}") for number in range(20))
    saw.update(get(web, "/broken") for _ in range(3))
    assert saw == Counter({200: 21, 500: 3})

    first, begin = pinned(api)
    hanging: list[int] = []
    thread = threading.Thread(target=lambda: hanging.append(get(web, "/hang")))
    thread.start()
    until(lambda: " srv=app-1 " in admin(folder, "show sess"), "the request hangs at its server")
    sessions = admin(folder, "show sess")
    one.healthy = app.healthy = False
    end = cut(first)
    thread.join(10)
    assert hanging == [dead_request]
    until(lambda: get(web) == 503, "nobody is left")
    saw.update([dead_request or 500, 503, *(get(web) for _ in range(4))])
    assert saw[503] == 5

    second, _ = pinned(api)
    admin(folder, "shutdown sessions server cp/cp-2")
    cut(second)
    app.healthy = True
    until(lambda: get(web, "/ok") == 200, "the server is up again")
    assert get(web, "/last") == 200
    return Played(saw, begin, end, sessions)


@pytest.mark.parametrize("version", SUITES)
def test_haproxy(version: str, tmp_path: Path, real_engine: Callable[..., Path], server: Callable[[], Server], started: Callable[..., object]) -> None:
    """The log in three dresses tells what the clients saw. From 3.0 on a killed request is 500 in the log, and its client gets nothing."""
    program = real_engine({"2.6": "1.7", "3.0": "1.9", "3.2": "2.1"}[version], "haproxy")
    app, one, two = server(), server(), server()
    raw, old, new = (tmp_path / name for name in ("raw.log", "rfc3164.log", "rfc5424.log"))
    receivers = [Syslog(old), Syslog(new)]
    web, api = free_port(), free_port()
    ports = {"old": receivers[0].port, "new": receivers[1].port, "web": web, "api": api, "app": app.port, "one": one.port, "two": two.port}
    (tmp_path / "cfg").write_text(CONFIG.format(folder=tmp_path, **ports))
    started(program, "-db", "-f", tmp_path / "cfg", log=raw)
    try:
        played = play(tmp_path, web, api, (app, one), 502 if version == "2.6" else 0)
        until(lambda: all("GET /last " in path.read_text() for path in (raw, old, new)), "all is logged")
    finally:
        for receiver in receivers:
            receiver.close()
    for path in (raw, old, new):
        judge(loaded(path, "haproxy"), played, stamped=path is not raw)

    dump = tmp_path / "sessions.txt"
    dump.write_text(f"# at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(played.begin))}\n{played.sessions}")
    seen = [mark for mark in loaded(dump, "haproxy-sessions").marks if mark.object == "cp/cp-1"]
    assert [(mark.kind, mark.data["client"]) for mark in seen] == [(Kind.PINNED, "127.0.0.1")]
    assert seen[0].at == int(played.begin)


def judge(book: Book, played: Played, *, stamped: bool) -> None:
    """Counts, causes, the moment of the kill, and the marks."""
    counts = statuses(book, "apps")
    extra = counts - played.saw  # the requests that asked whether the server was up again
    assert counts - extra == played.saw
    assert set(extra) <= {200, 503}
    causes: Counter[str] = Counter()
    for lane in book.cells.lanes():
        causes.update(book.cells.causes(lane))
    assert causes == Counter({"killed: server down": 2, "killed: by an administrator": 1, "no endpoint": counts[503]})
    cells = [cell for lane in book.cells.lanes() if lane.router == "cp" for cell in book.cells.cells(lane)]
    assert min(cell.bad_first_end for cell in cells if cell.bad) == pytest.approx(played.end, abs=WINDOW_S)
    told = Counter((mark.kind, mark.object) for mark in book.marks)
    down, up = Kind.SERVER_DOWN, Kind.SERVER_UP
    assert told == Counter([(down, "cp/cp-1"), (down, "apps/app-1"), (Kind.NO_SERVER, "apps"), (up, "apps/app-1")])
    if stamped:
        mark = next(mark for mark in book.marks if mark.kind is down and mark.object == "cp/cp-1")
        assert mark.node == "lb-1"
        assert mark.at is not None
        assert mark.at - WINDOW_S <= played.end <= mark.at + mark.stamp_s + WINDOW_S


UPSTREAM = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_length '
    "$request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length $upstream_response_time "
    "$upstream_status $req_id"
)
NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  log_format upstreaminfo '{upstream}';
  access_log {folder}/upstream.log upstreaminfo;
  access_log {folder}/combined.log;
  upstream apps {{ server 127.0.0.1:{dead} max_fails=0; server 127.0.0.1:{alive} max_fails=0; }}
  upstream gone {{ server 127.0.0.1:{dead} max_fails=0; server 127.0.0.1:{dead} max_fails=0; }}
  server {{
    listen 127.0.0.1:{web};
    set $proxy_upstream_name "git-http-3000"; set $proxy_alternative_upstream_name ""; set $req_id $request_id;
    location / {{ proxy_pass http://apps; }}
    location /gone {{ proxy_pass http://gone; }}
    location /slow {{ proxy_read_timeout 200ms; proxy_next_upstream off; proxy_pass http://127.0.0.1:{alive}/hang; }}
    location /empty {{ return 503; }}
  }}
}}
"""


@pytest.fixture
def nginx(real_engine: Callable[..., Path]) -> Path:
    """nginx of ``script/engines``, else that of the machine."""
    found = real_engine("2.1", "haproxy").with_name("nginx")
    return found if found.is_file() else Path("/usr/sbin/nginx")


def test_nginx(tmp_path: Path, nginx: Path, server: Callable[[], Server], started: Callable[..., object]) -> None:
    """A dead server beside a live one is hidden from the clients, which is told apart from what they saw."""
    alive, web, dead = server(), free_port(), free_port()
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX.format(folder=tmp_path, upstream=UPSTREAM, dead=dead, alive=alive.port, web=web))
    started(nginx, "-p", tmp_path, "-c", config, log=tmp_path / "out.log")
    until(lambda: answers(web), "nginx answers")
    hostile = 'x" 200 5 "-" "-" 7 "forged@file" "-" 0ms'
    begin = time.time()
    saw = Counter(get(web, f"/{number}", agent=hostile) for number in range(20))
    saw.update(get(web, "/gone", agent=hostile) for _ in range(4))
    saw.update([get(web, "/broken"), get(web, "/empty"), get(web, "/slow")])
    end = time.time()
    assert saw == Counter({200: 20, 502: 4, 500: 1, 503: 1, 504: 1})
    logs = tmp_path / "upstream.log", tmp_path / "combined.log"
    until(lambda: all(path.read_text().count("\n") >= 27 for path in logs), "all is logged")

    book = loaded(logs[0], "ingress-nginx")
    assert statuses(book, "git-http-3000") == saw
    masked = good = 0
    causes: Counter[str] = Counter()
    for lane in book.cells.lanes():
        causes.update(book.cells.causes(lane))
        for cell in book.cells.cells(lane):
            masked, good = masked + cell.masked, good + cell.good
            assert int(begin) - 2 <= cell.second <= end  # a stamp in whole seconds, less the duration
    hidden = sum(", " in line.partition("[] ")[2] and '" 200 ' in line for line in logs[0].read_text().splitlines())
    assert good == 20
    assert masked == hidden > 0
    assert causes == Counter({"no connection": 4, "no endpoint": 1, "timed out": 1})
    assert statuses(loaded(logs[1], "combined"), "") == saw
