"""Keepalived in network namespaces of one Ethernet segment, started on rendered files alone: no supervisor of ours is there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

from tests.fakes.keepalived import of

from edgekeeper.config.root import Root
from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.engines.keepalived.features import parse
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Topology
from edgekeeper.lab.netns import Net
from edgekeeper.lab.topology import NODES, lan_plan


class Segment:
    """Nodes of a config, each with a keepalived; the first node of the config is in the first namespace, and so on."""

    def __init__(self, net: Net, root: Root, binary: Path, folder: Path) -> None:
        told = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
        self.engine = KeepalivedEngine(parse(told.stdout + told.stderr), str(binary))
        self.net, self.root, self.folder = net, root, folder
        self.place = dict(zip(root.nodes, NODES, strict=False))
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def seat(self, node: str) -> Seat:
        return Seat(str(self.folder / self.place[node]))

    def topology(self, node: str) -> Topology:
        return of(self.root, node, self.engine.features, folder=self.seat(node).folder)

    def start(self, node: str) -> None:
        """Write its files and start it."""
        seat = self.seat(node)
        for part in ("fifo", "dumps"):
            (Path(seat.folder) / part).mkdir(parents=True, exist_ok=True)
        for name, text in self.engine.files(self.topology(node), seat).items():
            (Path(seat.folder) / name).write_text(text, encoding="utf-8")
        argv = self.net.argv(self.place[node], list(self.engine.run_argv(seat.folder, seat)))
        with (Path(seat.folder) / "log").open("ab") as log:
            self.running[node] = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    def weigh(self, node: str, file: str, value: int) -> None:
        """Write a track file."""
        path = Path(self.seat(node).folder) / file
        path.with_suffix(".new").write_text(f"{value}\n", encoding="ascii")
        path.with_suffix(".new").replace(path)

    def stop(self, node: str) -> None:
        """TERM, and wait until it has ended."""
        process = self.running.pop(node)
        process.terminate()
        process.wait(10)

    def kill_all(self) -> None:
        for process in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)

    async def owners(self) -> dict[str, set[str]]:
        """VIP to the nodes whose kernel has it, keepalived running or not."""
        assert self.root.vip is not None
        held = {}
        for node, space in self.place.items():
            words = (await self.net.ip(space, "-oneline", "address", "show", "dev", "eth0")).split()
            held[node] = {word.partition("/")[0] for word, before in zip(words[1:], words, strict=False) if before.startswith("inet")}
        return {vip.name: {node for node, ips in held.items() if vip.address.partition("/")[0] in ips} for vip in self.root.vip.vips}

    async def until(self, true: Callable[[dict[str, set[str]]], Any], what: str, deadline_s: float = 8.0, stays_s: float = 0.5) -> dict[str, set[str]]:
        """Wait until the owners are so, and stay so for a while."""
        loop = asyncio.get_running_loop()
        end, since, found = loop.time() + deadline_s, None, None
        while loop.time() < end:
            found = await self.owners()
            if not true(found):
                since = None
            elif since is None:
                since = loop.time()
            elif loop.time() - since >= stays_s:
                return found
            await asyncio.sleep(0.03)
        raise AssertionError(f"not within {deadline_s:g} s: {what}; {found}\n{self.log()}")

    def log(self) -> str:
        return "\n".join(f"{path.parent.name}: {path.read_text(errors='replace')[-1500:]}" for path in sorted(self.folder.glob("*/log")))


def one_each(owners: dict[str, set[str]], among: Collection[str] | None = None) -> bool:
    """Whether every VIP has exactly one owner, and it is one of these."""
    return all(len(nodes) == 1 and (among is None or nodes <= set(among)) for nodes in owners.values())


@contextlib.asynccontextmanager
async def segment(root: Root, binary: Path, folder: Path) -> AsyncIterator[Segment]:
    """Namespaces for the nodes of a config, removed with everything in them."""
    async with Net(lan_plan(len(root.nodes))) as net:
        made = Segment(net, root, binary, folder)
        try:
            yield made
        finally:
            made.kill_all()
