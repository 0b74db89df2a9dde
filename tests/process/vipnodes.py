"""Two edge nodes with VIPs in one segment for tests: a real keepalived and a real supervisor on each, an echo behind the VIPs, a client.

A third node is wired and runs nothing: the place for what must not start.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from edgekeeper.host import addresses, control, sysctl
from edgekeeper.lab.holders import Holding, holding
from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import NODE_ADDRESSES, NODES, lan_plan
from edgekeeper.lab.watch import Watch

from .echo import Echo, Load, echo_socket, inside
from .edge import DEADLINE_S, engines, until
from .fleet import Loop

SUITES = {"2.2.7": "debian12", "2.3.4": "testing"}
DNS, WEB, NEW = "192.0.2.53", "192.0.2.80", "192.0.2.99"
SPARE = NODES[2]
PEER = dict(zip(NODES[:2], (NODES[1], NODES[0]), strict=True))
"""The other one of the two."""

SCRIPT = {"interval": 5, "fall": 1, "rise": 1}
"""Seldom: each look starts a Python."""
LOW = 252
"""A settled owner of two announces so much: lower than what either has by its config."""

STOOD_S = 0.15
"""This test's own timer was late by so much: a keepalived may have been, and three adverts are missed after 0.3 s."""

_OPS, _ALIVE = 8085, 7008
_TOKEN = "peers-token-of-a-test"


def document(node: str, home: Path, vips: list[dict[str, Any]], binary: Path | str = "keepalived", **vip: Any) -> bytes:
    """The config of a node (JSON is YAML), which shares its VIPs with the other one; ``vip`` is more of that section."""
    address = dict(zip(NODES, NODE_ADDRESSES, strict=True))
    section = {
        "interface": "eth0",
        "advert": "100ms",
        "debounce": "50ms",
        "script": SCRIPT,
        "budget": "10s",
        "engine": {"binary": str(binary), "script_user": "root"},
        "vips": vips,
    }
    said = {
        "node": node,
        "run_dir": f"{home}/run",
        "state_dir": f"{home}/state",
        "ops": {"listen": f"{address[node]}:{_OPS}", "token_file": f"{home}/token"},
        "nodes": {name: {"address": address[name], "ops": f"http://{address[name]}:{_OPS}"} for name in sorted((node, PEER.get(node, NODES[0])))},
        "vip": {**section, **vip},
    }
    return json.dumps(said, indent=1).encode()


class Pair:
    """edge-a and edge-b, and an idle edge-c. ``vip`` and ``vips`` are the config as it is wanted; each node's own may be written by ``write``."""

    def __init__(self, version: str, serial: int) -> None:
        self.version = version
        self.binary = engines() / SUITES[version] / "bin" / "keepalived"
        assert self.binary.exists(), f"{self.binary} is missing; run script/engines {SUITES[version]}"
        self.folder = Path(tempfile.mkdtemp(prefix="ek-"))  # a socket's path must be short
        self.loop = Loop()
        self.net = Net(lan_plan(3), serial)
        self.runs: dict[str, subprocess.Popen[bytes]] = {}
        self.stood_s = 0.0
        self._closing: list[Callable[[], object]] = []
        self.vips: list[dict[str, Any]] = []
        self.wanted()

    # a config ---------------------------------------------------------------------------------

    def wanted(self) -> None:
        """The VIPs that every test begins with: ``dns`` rests on edge-a and ``web`` on edge-b, the service behind the first one is asked."""
        self.vips = [
            {"name": "dns", "address": f"{DNS}/24", "vrid": 53, "probe": {"tcp": f"127.0.0.1:{_ALIVE}"}},
            {"name": "web", "address": f"{WEB}/24", "vrid": 80, "probe": "none"},
        ]

    def home(self, node: str) -> Path:
        """A node's folder."""
        return self.folder / node

    def config(self, node: str) -> Path:
        """Its config file."""
        return self.home(node) / "edgekeeper.yaml"

    def role(self, node: str) -> Path:
        """Its folder below run_dir."""
        return self.home(node) / "run" / "vip"

    def write(self, node: str, **vip: Any) -> bool:
        """Write a node's config; whether it is another one now."""
        self.home(node).mkdir(exist_ok=True)
        token = self.home(node) / "token"
        if not token.exists():
            token.write_text(_TOKEN)
            token.chmod(0o600)
        raw = document(node, self.home(node), self.vips, self.binary, **vip)
        if self.config(node).exists() and self.config(node).read_bytes() == raw:
            return False
        self.swap(node, raw)
        return True

    def swap(self, node: str, raw: bytes) -> None:
        """Replace its config in one rename."""
        new = self.config(node).with_suffix(".new")
        new.write_bytes(raw)
        new.replace(self.config(node))

    # supervisors ------------------------------------------------------------------------------

    def run(self, node: str, *, wrapper: tuple[str, ...] = (), env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a supervisor; what it says is added to the node's log."""
        words = [*(wrapper or (sys.executable, "-m", "edgekeeper")), "--config", str(self.config(node)), "vip", "run"]
        with (self.home(node) / "log").open("ab") as log:
            self.runs[node] = subprocess.Popen(self.net.argv(node, words), stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(env or {})})
        return self.runs[node]

    def end(self, node: str, number: signal.Signals, deadline_s: float = 20.0) -> int:
        """Signal a supervisor and wait for its end; the exit code."""
        run = self.runs.pop(node)
        run.send_signal(number)
        return run.wait(deadline_s)

    def hup(self, *nodes: str) -> None:
        """Have the configs read again."""
        for node in nodes:
            self.runs[node].send_signal(signal.SIGHUP)

    def said(self, node: str, last: int = 3000) -> str:
        """What its supervisors wrote, the end of it."""
        return (self.home(node) / "log").read_text(errors="replace")[-last:]

    def cli(self, node: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on a node."""
        argv = self.net.argv(node, [sys.executable, "-m", "edgekeeper", "--config", str(self.config(node)), *words])
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=40)

    def ask(self, node: str, what: str, *vips: str) -> list[dict[str, Any]]:
        """The same words to a supervisor as the commands use, without a start of Python."""
        done = asyncio.run(control.ask(self.role(node) / "control.sock", {"do": what, "vips": list(vips), "force": False}, 30.0))["done"]
        return list(done)

    def rebalance(self, node: str, vip: str) -> None:
        """Hand a VIP to the other node, which may have let go of it a moment ago and be in FAULT for that."""
        until(lambda: self.ask(node, "rebalance", vip)[0]["ok"], f"{node} hands {vip} over: {self.all_said()}", 10.0)

    # what is seen -----------------------------------------------------------------------------

    def status(self, node: str) -> dict[str, Any]:
        """The role's part of a node's /status; empty when it does not answer."""
        listen = dict(zip(NODES, NODE_ADDRESSES, strict=True))[node]
        connection = http.client.HTTPConnection(listen, _OPS)
        try:
            connection.sock = self.net.socket(node)
            connection.sock.settimeout(2)
            connection.sock.connect((listen, _OPS))
            connection.request("GET", "/status", headers={"Authorization": f"Bearer {_TOKEN}"})
            return dict(json.load(connection.getresponse())["roles"]["vip"])
        except (OSError, ValueError, KeyError, http.client.HTTPException):
            return {}
        finally:
            connection.close()

    def rows(self, node: str) -> dict[str, dict[str, Any]]:
        """What it says of each VIP."""
        return {row["name"]: row for row in self.status(node).get("vips", ())}

    def told(self, node: str) -> dict[str, Any]:
        """The state file beside keepalived's FIFO, by VIP; empty while there is none."""
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((self.role(node) / "fifo" / "vip-state.json").read_text())["vips"])
        return {}

    def believes_able(self, node: str, name: str = "dns") -> bool:
        """Whether a node has heard from the other one that it could take a VIP."""
        said = json.loads((self.role(node) / "peers.json").read_text())["peers"][PEER[node]]
        return bool(said["vips"].get(name, {}).get("can_take"))

    def holders(self, ip: str = DNS) -> frozenset[str]:
        """The nodes whose kernel has it on eth0."""
        return self.watch.holders(ip)

    def owner(self, ip: str = DNS) -> str:
        """The one node that has it."""
        (node,) = self.until(lambda: (found := self.holders(ip)) if len(self.holders(ip)) == 1 else None, f"{ip} has one owner")
        return str(node)

    def covers(self, node: str) -> list[str]:
        """The VIPs that a node has on its loopback interface."""
        return [a.address for a in inside(self.net, node, addresses.held) if a.interface == "lo" and a.address in (DNS, WEB, NEW)]

    def arp_ignore(self, node: str, value: int | None = None) -> int:
        """A node's arp_ignore on eth0; with a value it is set."""
        if value is not None:
            inside(self.net, node, lambda: sysctl.set_arp_ignore("eth0", value))
        return inside(self.net, node, lambda: sysctl.arp_ignore("eth0"))

    def family(self, node: str, name: str = "keepalived") -> list[int]:
        """The pids of a node's processes whose command line names a program so, oldest first; the first one is keepalived's parent."""
        found = []
        for pid in self.net.pids(node):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if any(word.rpartition(b"/")[2] == name.encode() for word in words[:3]):
                    found.append(pid)
        return found

    def readers(self, node: str) -> list[int]:
        """The pids of those who read a node's FIFO."""
        return [pid for pid in self.net.pids(node) if b"\0fifo\0" in _words(pid)]

    def moves(self, since: float, ip: str = DNS) -> Holding:
        """What became of a VIP since a moment of the monotonic clock."""
        return holding(list(self.watch.changes), ip, since, time.monotonic())

    def load(self, ip: str = DNS) -> Load:
        """A client that asks all the time."""
        return Load(self.loop, self.net, ip)

    def settled(self) -> bool:
        """Whether both nodes stand: one owner a VIP, nothing drained, covered or alarming, and each has heard the other."""
        for node in PEER:
            status = self.status(node)
            rows = status.get("vips", ())
            if [row["name"] for row in rows] != ["dns", "web"] or status.get("alarms") or not (status.get("engine") or {}).get("pid"):
                return False
            if any(row["state"] not in ("MASTER", "BACKUP") or row["drained"] or row["shadow"] or row["health"] != "good" for row in rows):
                return False
            if any(row["weight"] != (row["configured_priority"] - LOW if row["held"] else 0) for row in rows):
                return False
            if any(peer["answered_s"] is None or peer["answered_s"] > 1.5 for peer in status["peers"]):
                return False
        return all(len(self.holders(ip)) == 1 for ip in (DNS, WEB)) and not self.holders(NEW)

    def until(self, true: Callable[[], Any], what: str, deadline_s: float = DEADLINE_S) -> Any:
        """Wait until something is so; an AssertionError says what never was, and what the nodes say."""
        try:
            return until(true, what, deadline_s)
        except AssertionError as err:
            raise AssertionError(f"{err}\n{self.all_said()}") from None

    def all_said(self) -> str:
        """What each node says of itself, and the end of what it logged."""
        every = [f"--- {self.version} {node}: {self.status(node)}\n{self.said(node)}" for node in NODES if (self.home(node) / "log").exists()]
        return "\n".join(every)

    def rest(self) -> None:
        """Back to what every test begins with."""
        self.wanted()
        for node in PEER:
            changed = self.write(node)
            if node not in self.runs or self.runs[node].poll() is not None:
                self.run(node)
            elif changed:
                self.hup(node)
        for node in PEER:
            self.until(lambda node=node: self.rows(node), f"{node} tells its status")
            for name, row in self.rows(node).items():
                if row["drained"]:
                    self.ask(node, "undrain", name)
        self.until(self.settled, "both nodes stand")

    # life and death ---------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.loop.do(self.net.__aenter__())
        self._closing.append(lambda: self.loop.do(self.net.__aexit__()))
        self.watch = Watch(self.net, NODES)
        self.loop.do(_plain(self.watch.start))
        self._closing.append(lambda: self.loop.do(_plain(self.watch.stop)))
        for node in NODES:
            self.loop.do(self._serve(node))
        self.loop.submit(self._feel())
        self.rest()
        return self

    def __exit__(self, *_: object) -> None:
        for run in self.runs.values():
            with contextlib.suppress(ProcessLookupError):
                run.kill()
            run.wait()
        for node in NODES:
            self.net.kill(node, signal.SIGKILL)
        for close in reversed(self._closing):
            close()
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _feel(self) -> None:
        """Remember the longest time that this machine stood still."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.02)
            self.stood_s = max(self.stood_s, time.monotonic() - before - 0.02)

    async def _serve(self, node: str) -> None:
        loop = asyncio.get_running_loop()
        for ip in (DNS, WEB, NEW):
            transport, _ = await loop.create_datagram_endpoint(lambda: Echo(node), sock=echo_socket(self.net, node, ip))
            self._closing.append(lambda transport=transport: self.loop.do(_plain(transport.close)))
        sock = self.net.socket(node)
        sock.bind(("127.0.0.1", _ALIVE))
        server = await asyncio.start_server(lambda _, writer: writer.close(), sock=sock)
        self._closing.append(lambda: self.loop.do(_plain(server.close)))


class Pairs:
    """A pair for each version of keepalived; what both shall do they do beside each other. One that failed is made anew for the next test."""

    def __init__(self) -> None:
        self._made: dict[str, Pair] = {}
        self._serial = 0

    def each(self, story: Callable[[Pair], None]) -> None:
        """Tell a story of both; it begins and must end with both nodes at rest.

        One that failed while this machine stood still is told once more: with adverts each 100 ms that alone moves a VIP, and loses questions.
        """

        def one(version: str) -> None:
            made = self._ready(version)
            made.stood_s = 0.0
            try:
                story(made)
                made.rest()
            except BaseException as err:
                self._made.pop(version).__exit__()
                err.add_note(f"with keepalived {version}; the machine stood still for {made.stood_s:.2f} s")
                if made.stood_s < STOOD_S or not isinstance(err, Exception):
                    raise
                again = self._ready(version)
                story(again)
                again.rest()

        with concurrent.futures.ThreadPoolExecutor(len(SUITES)) as both:
            for done in [both.submit(one, version) for version in SUITES]:
                done.result()

    def _ready(self, version: str) -> Pair:
        if version not in self._made:
            self._serial += 1
            made = Pair(version, self._serial)
            self._made[version] = made
            try:
                made.__enter__()
            except BaseException:
                self._made.pop(version).__exit__()
                raise
        return self._made[version]

    def close(self) -> None:
        for made in self._made.values():
            made.__exit__()


@contextlib.contextmanager
def pairs() -> Iterator[Pairs]:
    """Pairs for the tests of one module, ended whatever happens."""
    made = Pairs()
    try:
        yield made
    finally:
        made.close()


async def _plain(do: Callable[[], object]) -> None:
    do()


def _words(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
