"""What the formats of events read, from the daemons themselves: FRR and BIRD over a cable that is cut, keepalived on two nodes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import End, Plan
from edgekeeper.report.book import Book
from edgekeeper.report.formats import stamps
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.rules import Rules

from .routers import HOLD_S, NODE, OFFSET_S, pair

pytestmark = [pytest.mark.engine, pytest.mark.root, pytest.mark.timeout(90)]
ROOTED = any(line.split()[4] == "/" for line in Path("/proc/self/mountinfo").read_text().splitlines())
FRR = {"debian12": ("1.7", 3), "debian13": ("1.9", 0), "testing": ("2.1", 6)}
"""FRR 8.4, 10.3 and 10.7, BIRD 2.0, 2.17 and 2.20, each with another precision of FRR's stamps."""
KEEPALIVED = {"2.2.7": "1.7", "2.3.3": "1.9", "2.3.4": "2.1"}


def book_of(*inputs: Input) -> Book:
    book = read(inputs, Rules(), jobs=1)
    assert all(not source.skipped for source in book.sources.values()), [source.skipped for source in book.sources.values()]
    return book


def of(book: Book, source: str, *kinds: Kind) -> list[Mark]:
    return [mark for mark in book.marks if mark.source == source and mark.kind in kinds]


def at(mark: Mark) -> float:
    assert mark.at is not None
    return mark.at


@dataclass(slots=True)
class Said:
    """What was done and when, and what the daemons said of it meanwhile: FRR's seconds since 1970 of each session, BIRD's states with their time."""

    told: dict[str, float] = field(default_factory=dict)
    established: list[int] = field(default_factory=list)
    since: list[tuple[str, str]] = field(default_factory=list)


async def bgp_story(binaries: Path, folder: Path, precision: int) -> Said:
    said = Said()
    async with pair(binaries, folder, precision) as both:

        async def step(name: str, *words: str) -> None:
            said.told[name] = time.time()
            await asyncio.to_thread(both.birdc, *words)

        async def up() -> None:
            await both.up()
            await both.until(lambda: both.neighbour()["bgpState"] == "Established")
            said.established.append(both.neighbour()["bgpTimerUpEstablishedEpoch"])

        await up()
        said.told["cut"] = time.time()
        await both.net.ip("node", "link", "set", "eth0", "down")
        await both.until(lambda: both.look()[0] != "up")
        await both.until(lambda: both.neighbour()["bgpState"] != "Established")
        await both.net.ip("node", "link", "set", "eth0", "up")
        await up()
        await step("withdrawn", "disable", "own")
        await asyncio.sleep(0.3)
        await step("disabled", "disable", "gw1")
        await both.until(lambda: both.look()[0] == "down")
        await both.until(lambda: both.neighbour()["bgpState"] != "Established")
        await step("enabled", "enable", "gw1")
        await up()
        said.told["ended"] = time.time()
        both.stop_bird()
        await both.until(lambda: both.neighbour()["bgpState"] != "Established")
        said.since = both.since
    return said


@pytest.mark.skipif(not ROOTED, reason="in a chroot, whose root is no mount, there is no private mount namespace to be had")
@pytest.mark.parametrize("version", FRR)
def test_both_ends_of_a_bgp_session(version: str, tmp_path: Path, real_engine: Callable[..., Path]) -> None:
    """A cut cable, an administrative shutdown, a withdrawn route and an end: each at the time that the daemons themselves say."""
    suite, precision = FRR[version]
    story = asyncio.run(bgp_story(real_engine(suite, "bgpd").parent, tmp_path, precision))
    told = story.told
    book = book_of(
        Input(str(tmp_path / "frr.log"), name="frr", node="router", zone="+01:00"), Input(str(tmp_path / "bird.log"), name="bird", node="node", zone="+01:00")
    )
    assert [book.sources[name].format for name in ("frr", "bird")] == ["frr", "bird"]

    bird = of(book, "bird", Kind.BGP_UP, Kind.BGP_DOWN)
    assert [mark.kind for mark in bird] == [Kind.BGP_UP, Kind.BGP_DOWN] * 3
    assert {mark.object for mark in bird} == {"gw1"}
    said = {word: [stamps.iso(stamp, stamps.utc) for state, stamp in story.since if state == word] for word in ("up", "down")}
    assert [at(mark) for mark in bird if mark.kind is Kind.BGP_UP] == pytest.approx([x - OFFSET_S for x in said["up"] if x is not None], abs=0.002)
    assert at(bird[3]) == pytest.approx((said["down"][-1] or 0) - OFFSET_S, abs=0.002)
    assert told["cut"] <= at(bird[1]) <= told["cut"] + 1.5  # the carrier is gone at once
    assert told["ended"] - 0.01 <= at(bird[5]) <= told["ended"] + 1.0

    coarse = 10.0**-precision
    frr = of(book, "frr", Kind.BGP_UP, Kind.BGP_DOWN)
    assert [mark.kind for mark in frr] == [Kind.BGP_UP, Kind.BGP_DOWN] * 3
    assert {mark.object for mark in frr} == {NODE}
    ups = [at(mark) for mark in frr if mark.kind is Kind.BGP_UP]
    assert ups == pytest.approx(story.established, abs=2.01)  # two truncated seconds are in what FRR tells
    assert ups == pytest.approx([at(mark) for mark in bird if mark.kind is Kind.BGP_UP], abs=0.1 + coarse)  # both ends of one handshake
    assert all(mark.stamp_s == pytest.approx(coarse) for mark in frr)
    cut, disabled, ended = (mark for mark in frr if mark.kind is Kind.BGP_DOWN)
    assert told["cut"] + HOLD_S - 1.5 - coarse <= at(cut) <= told["cut"] + HOLD_S + 1.5  # the hold timer has to run out
    assert told["disabled"] - 0.01 - coarse <= at(disabled) <= told["enabled"]
    assert told["ended"] - 0.01 - coarse <= at(ended) <= told["ended"] + 1.0
    assert [mark.data["code"] for mark in of(book, "frr", Kind.BGP_NOTIFY_SENT)][:1] == ["4/0"]
    assert [str(mark.data["code"])[:2] for mark in of(book, "frr", Kind.BGP_NOTIFY_HEARD)] == ["6/", "6/"]
    gone = of(book, "frr", Kind.BGP_WITHDRAWN)
    assert [(mark.object, mark.data["prefix"]) for mark in gone][:1] == [(NODE, "203.0.113.0/24")]
    assert told["withdrawn"] - 0.01 - coarse <= at(gone[0]) <= told["disabled"]


CONF = """\
global_defs {{
 router_id {name}
 vrrp_notify_fifo {folder}/fifo
}}
vrrp_track_file away {{
 file {folder}/away
 weight 0
}}
vrrp_instance VI_dns {{
 state BACKUP
 interface eth0
 virtual_router_id 51
 priority {priority}
 advert_int 1
 virtual_ipaddress {{ 198.51.100.53/32 }}
 track_file {{ away }}
}}
"""


class Node:
    """A keepalived whose log and FIFO are kept; each line of the FIFO is stamped when it is read."""

    def __init__(self, net: Net, name: str, binary: Path, folder: Path, priority: int) -> None:
        folder.mkdir()
        (folder / "away").write_text("0\n")
        os.mkfifo(folder / "fifo")
        (folder / "conf").write_text(CONF.format(name=name, folder=folder, priority=priority))
        self.folder = folder
        self._end = os.open(folder / "fifo", os.O_RDWR)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        argv = [str(binary), "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file", str(folder / "conf")]
        argv += [f"--{kind}={folder / kind}" for kind in ("pid", "vrrp_pid", "checkers_pid", "bfd_pid")]
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                net.argv(name, argv), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={"TZ": "EKT-1", "PATH": "/usr/sbin:/usr/bin"}
            )

    def _read(self) -> None:
        with (self.folder / "fifo.log").open("w") as out:
            rest = b""
            while piece := os.read(self._end, 4096):
                now = time.time()
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line == b"end":
                        return
                    out.write(f"{stamp} {line.decode()}\n")
                out.flush()

    def states(self) -> list[str]:
        path = self.folder / "fifo.log"
        return [line.split()[3] for line in path.read_text().splitlines() if '"VI_dns"' in line] if path.exists() else []

    async def until(self, state: str, deadline_s: float = 20.0) -> None:
        end = time.monotonic() + deadline_s
        while self.states()[-1:] != [state]:
            assert time.monotonic() < end, (state, self.states(), (self.folder / "log").read_text()[-3000:])
            await asyncio.sleep(0.05)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        if self._reader.is_alive():
            os.write(self._end, b"end\n")
            self._reader.join(5)
            os.close(self._end)


@pytest.mark.parametrize("version", KEEPALIVED)
def test_a_hand_over_by_log_and_by_fifo(version: str, tmp_path: Path, real_engine: Callable[..., Path]) -> None:
    """The log has whole seconds, the FIFO says how short it was; both tell the same changes of state."""
    binary = real_engine(KEEPALIVED[version], "keepalived")

    async def story() -> None:
        cable = (End("a", "eth0", ("192.0.2.11/24",)), End("b", "eth0", ("192.0.2.12/24",)))
        async with Net(Plan(("a", "b"), (cable,)), serial=time.monotonic_ns() % 1_000_000) as net:
            a, b = Node(net, "a", binary, tmp_path / "a", 200), Node(net, "b", binary, tmp_path / "b", 190)
            try:
                await a.until("MASTER")
                await b.until("BACKUP")
                (a.folder / "away").write_text("1\n")
                await a.until("FAULT")
                await b.until("MASTER")
                (a.folder / "away").write_text("0\n")
                await a.until("MASTER")
                await b.until("BACKUP")
                a.stop()
                await b.until("MASTER")
            finally:
                a.stop()
                b.stop()

    asyncio.run(story())
    logs = {name: tmp_path / name / "log" for name in "ab"}
    inputs = [Input(str(path), name=f"{name} log", node=name, zone="+01:00") for name, path in logs.items()]
    book = book_of(*inputs, *(Input(str(path.with_name("fifo.log")), name=f"{name} fifo", node=name) for name, path in logs.items()))
    assert {source.format for source in book.sources.values()} == {"keepalived", "keepalived-fifo"}
    for name in "ab":
        log, fifo = of(book, f"{name} log", Kind.VRRP_STATE), of(book, f"{name} fifo", Kind.VRRP_STATE)
        assert [mark.data["state"] for mark in log] == [mark.data["state"] for mark in fifo]
        assert all(-0.1 <= at(exact) - at(coarse) <= 1.1 for coarse, exact in zip(log, fifo, strict=True)), (log, fifo)
        assert {mark.stamp_s for mark in log} == {1.0}
        assert all(mark.stamp_s == pytest.approx(0.001) for mark in fifo)
    assert [mark.data["state"] for mark in of(book, "a fifo", Kind.VRRP_STATE)] == ["BACKUP", "MASTER", "FAULT", "BACKUP", "MASTER", "STOP"]
    fault = next(mark for mark in of(book, "a fifo", Kind.VRRP_STATE) if mark.data["state"] == "FAULT")
    taken = next(mark for mark in of(book, "b fifo", Kind.VRRP_STATE) if mark.data["state"] == "MASTER" and at(mark) > at(fault))
    assert 0 < at(taken) - at(fault) < 1.0
    assert [mark.object for mark in of(book, "a log", Kind.VRRP_ZERO_SENT)] == ["VI_dns"] * 2
    assert of(book, "b log", Kind.VRRP_ZERO_HEARD)
    assert of(book, "a log", Kind.VRRP_TIMEOUT)
