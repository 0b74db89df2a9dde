"""haproxy.cfg read as HAProxy itself reads it: its verdict, and the servers that it then has, for every form of a setting."""

from __future__ import annotations

import csv
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.engines.haproxy.cfg import Source, read
from edgekeeper.engines.haproxy.cfg_values import Server
from edgekeeper.engines.haproxy.stats import ServerState, parse_servers_state

VERSIONS = {"2.6": "1.7", "3.0": "1.9", "3.2": "2.1"}
"""HAProxy's version to that of dnsdist in the same release of Debian, by which the engines are found."""

HEAD = """\
global
    stats socket {socket} mode 600 level admin
    setenv PORT_OF_SET 7105
    setenv TWO "7106 check"
"""

CASES = {
    "plain": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
backend a
    server s1 127.0.0.1:7101 check inter 61s fall 7 rise 9 weight 17
    server s2 127.0.0.1:7102 backup
    server s3 127.0.0.1:7103 disabled check
    server s4 [::1]:7104 check port 7204 addr 127.0.0.9
    server s5 127.0.0.1 check port 7205
""",
    "default-server adds up, and only for those after it": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
    default-server fall 5 weight 11
backend a
    server before 127.0.0.1:7101
    default-server check inter 61s
    server s1 127.0.0.1:7101
    default-server rise 6 backup
    server s2 127.0.0.1:7102 no-check
    server s3 127.0.0.1:7103 no-backup fall 8
    default-server disabled
    server s4 127.0.0.1:7104
    server s5 127.0.0.1:7105 enabled
backend b
    server s1 127.0.0.1:7101 check inter 61s
""",
    "defaults: the last one before, by name, and from another": """
defaults first
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
    balance leastconn
    default-server fall 5 check inter 61s
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
    default-server fall 6
defaults third from first
    timeout server 2s
    default-server rise 9
backend last
    server s1 127.0.0.1:7101
backend named from first
    server s1 127.0.0.1:7101
    mode tcp
backend last-again
    server s1 127.0.0.1:7101 no-check
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
backend empty-again
    server s1 127.0.0.1:7101
""",
    "words, quotes and variables": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
backend a
    server "s1" '127.0.0.1:7101'   check inter 61s # comment
    server s\\x32 127.0.0.1:7102 check inter 61s#comment
    server s3 "127.0.0.1:710${NOT_SET_AT_ALL-3}" weight 12
    server\ts4\t127.0.0.1:7104\tbackup
    server s5 "127.0.0.1:$PORT_OF_SET" weight 13
    server s6 127.0.0.1:"${TWO[*]}" inter 61s
    server s7 127.0.0.1:${PORT_OF_SET} weight 14
    server s8"-x" ipv4@127.0.0.1:7108 cookie check weight 15
""",
    "conditions": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
backend a
.if streq("$PORT_OF_SET","7105")
    server yes1 127.0.0.1:7101
.else
    server no1 127.0.0.1:7101
.endif
.if defined(PORT_OF_SET) && !strneq(a,a)
    .if 0
    server no2 127.0.0.1:7102
    .elif 1
    server yes2 127.0.0.1:7102 weight 3
    .elif 1
    server no3 127.0.0.1:7102
    .else
    server no4 127.0.0.1:7102
    .endif
.endif
.if version_atleast(2.5) && version_before(9.0)
    server yes3 127.0.0.1:7103
.endif
.if version_atleast(9.0) || (0 && 1)
    server no5 127.0.0.1:7103
.endif
.if !(streq(a,b))
    server yes4 127.0.0.1:7104
.endif
""",
    "templates, track, agent": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
backend a
    server-template t 3 127.0.0.1:7101 check inter 61s
    server-template u 5-6 127.0.0.1:7102 weight 9
    server s1 127.0.0.1:7103 track a/t1
    server s2 127.0.0.1:7104 agent-check agent-port 7299 agent-inter 61s
    server s3 127.0.0.1:7105 check inter 61s observe layer4 error-limit 5 on-error mark-down on-marked-down shutdown-sessions slowstart 5s
    server s4 127.0.0.1:7106 source 127.0.0.1 check inter 61s send-proxy-v2 maxconn 12 maxqueue 3 minconn 2 cookie backup
""",
    "tls and checks": """
defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
    option httpchk GET /healthz
    http-check expect status 200
backend a
    server s1 127.0.0.1:7101 ssl verify none check inter 61s
    server s2 127.0.0.1:7102 ssl verify none check inter 61s port 7202
    server s3 127.0.0.1:7103 check check-ssl verify none inter 61s
    server s4 127.0.0.1:7104 ssl verify none no-check-ssl check inter 61s
backend b
    mode tcp
    option tcp-check
    tcp-check connect port 7301
    tcp-check send PING\\r\\n
    tcp-check expect string +PONG
    server s1 127.0.0.1:7101 check inter 61s
backend c
    mode tcp
    option httpchk
    option ssl-hello-chk
    server s1 127.0.0.1:7101 check inter 61s
listen d
    bind 127.0.0.1:{port}
    http-check connect ssl
    http-check send meth GET uri /readyz
    server s1 127.0.0.1:7101 check inter 61s verify none
""",
    "a listen section takes the ports of its clients": """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
listen a
    bind 127.0.0.1:{port}
    server s1 127.0.0.1
    server s2 127.0.0.1:+1
    server s3 127.0.0.1:7103 check inter 61s
peers mates
    peer here 127.0.0.1:{port2}
userlist people
    user someone insecure-password server
""",
}


class Running:
    """A real HAProxy on a config of one case, asked over its socket."""

    def __init__(self, binary: Path, folder: Path, case: str) -> None:
        self.socket = folder / "s"
        text = HEAD.replace("{socket}", str(self.socket)) + case.replace("{port2}", str(_free_port())).replace("{port}", str(_free_port()))
        self.file = folder / "haproxy.cfg"
        self.file.write_text(text)
        env = {k: v for k, v in os.environ.items() if k != "NOT_SET_AT_ALL"}
        checked = subprocess.run([binary, "-c", "-f", self.file], capture_output=True, text=True, timeout=20, check=False, env=env)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with (folder / "log").open("wb") as log:
            self.child = subprocess.Popen([binary, "-db", "-f", self.file], stdout=log, stderr=log, env=env)
        until = time.monotonic() + 10
        while not self._answers():
            assert self.child.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
        version = self.ask("show info").partition("Version: ")[2].split("-")[0].split("\n")[0]
        self.config = read([Source("haproxy.cfg", text)], version=tuple(int(part) for part in version.split(".")))

    def _answers(self) -> bool:
        try:
            return bool(self.ask("show info"))
        except OSError:
            time.sleep(0.02)
            return False

    def ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(5)
            one.connect(str(self.socket))
            one.sendall(command.encode() + b"\n")
            said = b""
            while piece := one.recv(65536):
                said += piece
        return said.decode()

    def rows(self) -> dict[tuple[str, str], dict[str, str]]:
        """``show stat`` by backend and server."""
        text = self.ask("show stat").removeprefix("# ")
        return {(r["pxname"], r["svname"]): r for r in csv.DictReader(text.splitlines()) if r["type"] == "2"}

    def stop(self) -> None:
        self.child.kill()
        self.child.wait(5)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(params=[(version, case) for version in VERSIONS for case in CASES], ids=lambda param: f"{param[0]}-{param[1]}")
def running(request: pytest.FixtureRequest, tmp_path: Path, real_engine: Callable[..., Path]) -> Iterator[Running]:
    version, case = request.param
    one = Running(real_engine(VERSIONS[version], "haproxy"), tmp_path, CASES[case])
    yield one
    one.stop()


@pytest.mark.engine
def test_the_servers_are_those_that_haproxy_has(running: Running) -> None:
    states = {(s.backend, s.server): s for s in parse_servers_state(running.ask("show servers state"))}
    rows = running.rows()
    ours = {(p.name, s.name): s for p in running.config.backends() for s in p.servers}
    assert ours.keys() == states.keys()
    for key, server in ours.items():
        assert _said(server) == _state(states[key], server), key
        assert _flags(server) == _row(rows[key], server), key


def _said(server: Server) -> dict[str, Any]:
    return {
        "address": server.address.host,
        "port": server.address.ports[0] if server.address.ports else server.address.shift or 0,
        "weight": int(server.text("weight") or 1),
        "maint": server.is_disabled,
        "ssl": server.flag("ssl"),
        "check_port": int(server.text("port") or 0) if server.check else None,
        "check_addr": server.text("addr") or "-" if server.check else None,
        "agent_port": int(server.text("agent-port") or 0) if server.flag("agent-check") else None,
    }


def _state(state: ServerState, server: Server) -> dict[str, Any]:
    return {
        "address": state.address,
        "port": state.port,
        "weight": int(state.raw["srv_iweight"]),
        "maint": bool(state.admin_state & 0x04),
        "ssl": state.raw["srv_use_ssl"] == "1",
        "check_port": int(state.raw["srv_check_port"]) if server.check else None,
        "check_addr": state.raw["srv_check_addr"] if server.check else None,
        "agent_port": int(state.raw["srv_agent_port"]) if server.flag("agent-check") else None,
    }


def _flags(server: Server) -> dict[str, Any]:
    return {
        "check": server.check,
        "rise": server.rise if server.check else None,
        "fall": server.fall if server.check else None,
        "agent": server.flag("agent-check"),
        "backup": server.flag("backup"),
        "tracked": server.text("track") or "",
        "slim": server.text("maxconn") or "",
    }


def _row(row: dict[str, str], server: Server) -> dict[str, Any]:
    has_check = row["check_rise"] != "" or (server.is_disabled and server.check)  # in maintenance the columns are empty
    return {
        "check": has_check,
        "rise": int(row["check_rise"] or server.rise) if server.check else None,
        "fall": int(row["check_fall"] or server.fall) if server.check else None,
        "agent": row["agent_rise"] != "",
        "backup": row["bck"] == "1",
        "tracked": row["tracked"],
        "slim": row["slim"],
    }


@pytest.mark.engine
def test_modes_and_balance_are_those_that_haproxy_has(running: Running) -> None:
    text = running.ask("show stat").removeprefix("# ")
    backends = {row["pxname"]: row for row in csv.DictReader(text.splitlines()) if row["type"] == "1"}
    for proxy in running.config.backends():
        assert backends[proxy.name]["mode"] == proxy.mode
        if proxy.balance is not None:
            assert backends[proxy.name]["algo"] == proxy.balance.value
