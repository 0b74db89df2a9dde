"""A router with FRR and a node with BIRD, each in a network namespace of its own with a cable between them, for the tests of this folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import End, Plan

ROUTER, NODE = "192.0.2.1", "192.0.2.2"
HOLD_S = 3
ZONE = "EKT-1"
"""The daemons write local time: an hour before UTC's, and no zone with it."""
OFFSET_S = 3600.0

BGPD = f"""\
log file {{folder}}/frr.log
log timestamp precision {{precision}}
debug bgp updates in
router bgp 64512
 bgp router-id {ROUTER}
 no bgp ebgp-requires-policy
 bgp log-neighbor-changes
 neighbor {NODE} remote-as 64513
 neighbor {NODE} timers 1 {HOLD_S}
 neighbor {NODE} passive
"""
BIRD = f"""\
log "{{folder}}/bird.log" all;
timeformat protocol iso long ms;
timeformat log iso long ms;
router id {NODE};
debug protocols {{{{ states }}}};
protocol device {{{{}}}}
protocol static own {{{{ ipv4; route 203.0.113.0/24 blackhole; }}}}
protocol bgp gw1 {{{{
 local {NODE} as 64513; neighbor {ROUTER} as 64512; direct;
 hold time {HOLD_S}; keepalive time 1; connect delay time 0; connect retry time 1; error wait time 1, 2;
 ipv4 {{{{ import none; export all; }}}};
}}}}
"""
_GROUPS = "root:x:0:\nfrr:x:991:root\nfrrvty:x:992:root\n"
"""FRR asks for its groups by name before it does anything."""
_INSTALLED = """\
mount --make-rprivate / && mount --bind "$1/group" /etc/group && mount -t tmpfs none /usr/share && cp -r "$2/../share/yang" /usr/share/ && shift 2 && exec "$@"
"""
"""What FRR wants to find on a machine, for it alone: its groups, and its models."""
_SINCE = re.compile(r"^gw1\s+BGP\s+\S+\s+(\S+)\s+(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3})\s*(\S*)", re.MULTILINE)


class Pair:
    """Both daemons at work. ``since`` is each state of the session as BIRD told it when it was asked: the state, and since when."""

    def __init__(self, net: Net, binaries: Path, folder: Path) -> None:
        self.net, self.binaries, self.folder = net, binaries, folder
        self.since: list[tuple[str, str]] = []
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, precision: int) -> None:
        (self.folder / "group").write_text(_GROUPS)
        (self.folder / "bgpd.conf").write_text(BGPD.format(folder=self.folder, precision=precision))
        (self.folder / "bird.conf").write_text(BIRD.format(folder=self.folder))
        frr = ["-f", str(self.folder / "bgpd.conf"), "-u", "root", "-g", "frr", "-i", str(self.folder / "bgpd.pid"), "--vty_socket", str(self.folder), "-Z"]
        self._spawn(
            "router", ["unshare", "--mount", "sh", "-c", _INSTALLED, "sh", str(self.folder), str(self.binaries), str(self.binaries / "bgpd"), *frr], "bgpd"
        )
        bird = ["-f", "-c", str(self.folder / "bird.conf"), "-s", str(self.folder / "bird.ctl"), "-P", str(self.folder / "bird.pid")]
        self._spawn("node", [str(self.binaries / "bird"), *bird], "bird")

    def _spawn(self, namespace: str, argv: list[str], name: str) -> None:
        with (self.folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                self.net.argv(namespace, argv), stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={"TZ": ZONE, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
            )
        self._started.append(process)

    def birdc(self, *words: str) -> str:
        done = subprocess.run([self.binaries / "birdc", "-s", self.folder / "bird.ctl", *words], capture_output=True, text=True, timeout=5, check=False)
        return done.stdout

    def look(self) -> tuple[str, str]:
        """The session's state and its reason, as BIRD says; kept with the time since when."""
        found = _SINCE.search(self.birdc("show", "protocols", "gw1"))
        if found is None:
            return "", ""
        if (found[1], found[2]) not in self.since:
            self.since.append((found[1], found[2]))
        return found[1], found[3]

    def neighbour(self) -> dict[str, Any]:
        """What FRR says of the session."""
        done = subprocess.run(
            [
                *("unshare", "--mount", "sh", "-c", _INSTALLED, "sh", self.folder, self.binaries, self.binaries / "vtysh"),
                *("--vty_socket", self.folder, "-c", "show bgp neighbors json"),
            ],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return dict(json.loads(done.stdout)[NODE])

    async def until(self, what: Callable[[], bool], deadline_s: float = 15.0) -> None:
        end = time.monotonic() + deadline_s
        while not what():
            assert time.monotonic() < end, (self.look(), *(path.read_text()[-2000:] for path in self.folder.glob("*.out")))
            await asyncio.sleep(0.05)

    async def up(self) -> None:
        await self.until(lambda: self.look() == ("up", "Established"))

    def stop_bird(self) -> None:
        self._started[1].send_signal(signal.SIGTERM)
        self._started[1].wait(10)

    def stop(self) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait(5)


@contextlib.asynccontextmanager
async def pair(binaries: Path, folder: Path, precision: int) -> AsyncIterator[Pair]:
    """Both, with the session not yet up."""
    cable = (End("router", "eth0", (f"{ROUTER}/24",)), End("node", "eth0", (f"{NODE}/24",)))
    async with Net(Plan(("router", "node"), (cable,)), serial=time.monotonic_ns() % 1_000_000) as net:
        both = Pair(net, binaries, folder)
        both.start(precision)
        try:
            yield both
        finally:
            both.stop()
