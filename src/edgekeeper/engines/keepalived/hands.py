"""``ports.Hands`` for keepalived: what its validator cannot see, proof of what it holds, reloads."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import stat
from pathlib import Path
from typing import Any

from edgekeeper.engines.keepalived.dump import Dump, difference, parse
from edgekeeper.engines.keepalived.seat import Seat
from edgekeeper.engines.keepalived.topology import Instance, Topology
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import addresses
from edgekeeper.host.files import make_folder, read_text
from edgekeeper.host.process import can_run, catches, children, named, same_network, start_time

PROVE_DEADLINE_S = 10.0
PROVE_EVERY_S = 0.05
RUN_S = 10.0
DUMP_S = 1.0
"""How long a dump may take; 1 to 5 ms measured with 2.2.7 and 2.3.4."""
_PRIVATE = 0o077


class KeepalivedHands:
    """What is done to, and asked of, a keepalived whose files lie in ``folder``."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def new_seat(self, intent: Any) -> Seat:  # noqa: ARG002 - the port's shape
        """Always the same paths: there is one keepalived, never two beside each other."""
        seat = Seat(self._folder)
        _forget_the_dead(seat)
        return seat

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:  # noqa: ARG002 - the port's shape
        """Why it would not hold what it should, or would do harm: keepalived's check knows neither addresses nor other keepalived."""
        topology: Topology = intent
        held = await asyncio.to_thread(addresses.held)
        refusal = stranger(seat, serving) or _keys(topology)
        unable = await can_run(topology.script_user, [*topology.program, "--version"], RUN_S) if refusal is None else None
        if unable is not None:
            where = "install edgekeeper where that user can reach it, or name another one in vip.engine.script_user"
            refusal = f"track script and FIFO reader could not run: {unable}; {where}"
        for instance in topology.instances:
            refusal = refusal or _world(instance, held)
        return refusal

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        """That process ``pid`` and its VRRP child hold these instances, peers and scripts: they write down what they hold."""
        missing: str | None = "it has not been asked"
        try:
            async with asyncio.timeout(PROVE_DEADLINE_S):
                while True:
                    said = await self.ask(seat, pid)
                    missing = difference(intent, said) if isinstance(said, Dump) else said
                    if missing is None:
                        return None
                    await asyncio.sleep(PROVE_EVERY_S)
        except TimeoutError:
            return f"keepalived did not prove itself within {PROVE_DEADLINE_S:g} s: {missing}"

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:  # noqa: ARG002 - the port's shape
        """It never can: keepalived takes changes from its file only."""
        return "keepalived takes nothing while it runs; it reads its file again"

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:
        """SIGHUP, then proof."""
        if not catches(pid, signal.SIGHUP):
            return f"keepalived (pid {pid}) does not take signals yet"
        try:
            os.kill(pid, signal.SIGHUP)
        except OSError as err:
            return f"keepalived (pid {pid}) could not be told to reload: {err.strerror or err}"
        return await self.prove(new, seat, pid)

    async def ask(self, seat: Seat, pid: int) -> Dump | str:
        """What the process holds now; a sentence when it does not say.

        Only when both processes have their handlers: before, the signal would end them.
        """
        vrrp = vrrp_child(pid)
        if vrrp is None:
            return f"keepalived (pid {pid}) has no VRRP process yet"
        if not (catches(pid, signal.SIGUSR1) and catches(vrrp, signal.SIGUSR1)):
            return f"keepalived (pid {pid}) is still starting"
        make_folder(seat.dumps)
        file = Path(seat.dumps) / "keepalived.data"
        file.unlink(missing_ok=True)
        try:
            os.kill(pid, signal.SIGUSR1)
            async with asyncio.timeout(DUMP_S):
                while True:
                    await asyncio.sleep(0.005)
                    if file.exists() and (found := parse(read_text(file, tolerant=True))) is not None:
                        return found
        except TimeoutError:
            return f"keepalived (pid {pid}) did not say within {DUMP_S:g} s what it holds"
        except (OSError, EdgekeeperError) as err:
            return f"keepalived (pid {pid}) cannot be asked: {err}"


def vrrp_child(pid: int) -> int | None:
    """The VRRP process of a keepalived that runs VRRP only: its one child of the same name. Not by its pid file, which somebody may wipe away."""
    family = set(children(pid)) & set(named("keepalived"))
    return min(family, default=None)


def _forget_the_dead(seat: Seat) -> None:
    """Remove pid files that a killed keepalived left: 2.2.7 does not start while such a pid is anybody's, a zombie's too ("daemon is already running")."""
    left = [file for of in ("parent", "vrrp", "checkers", "bfd") if (file := Path(seat.pid_file(of))).exists()]
    running = named("keepalived") if left else []
    for file in left:
        try:
            pid = int(read_text(file).strip() or 0)
        except (EdgekeeperError, ValueError):
            pid = 0
        if pid not in running:
            file.unlink(missing_ok=True)


def stranger(seat: Seat, serving: int | None) -> str | None:
    """A keepalived that is not ours: the same VRIDs twice on one machine, or a pid file that keeps ours from starting."""
    for pid in named("keepalived"):
        if pid == serving or not same_network(pid):
            continue
        if _mentions(pid, seat.folder):
            continue  # ours, of an earlier supervisor: the crew ends it
        return f"another keepalived (pid {pid}) runs here and may hold the same VIPs; stop it (systemctl disable --now keepalived, or kill {pid}) and try again"
    try:
        holder = int(read_text(seat.pid_file("parent")).strip())
    except (EdgekeeperError, ValueError):
        return None
    if holder not in (serving, None) and start_time(holder) is not None and holder in named("keepalived") and not same_network(holder):
        return f"keepalived (pid {holder}) in another network namespace holds {seat.pid_file('parent')}; give each its own run_dir"
    return None


def _mentions(pid: int, folder: str) -> bool:
    """Whether a process, or its parent, was started with files in this folder."""
    try:
        return os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _keys(topology: Topology) -> str | None:
    for instance in topology.instances:
        if instance.hmac_key_file is None:
            continue
        try:
            found = Path(instance.hmac_key_file).stat()
        except OSError as err:
            return f"the HMAC key {instance.hmac_key_file} of VIP {instance.name} cannot be read: {err.strerror or err}"
        if stat.S_IMODE(found.st_mode) & _PRIVATE:
            return f"the HMAC key {instance.hmac_key_file} can be read by others; chmod 0600 it, keepalived refuses it else"
        refusal = _unusable(Path(instance.hmac_key_file))
        if refusal is not None:
            return f"the HMAC key {instance.hmac_key_file} {refusal}; make one with: openssl rand -hex 32"
    return None


def _unusable(file: Path) -> str | None:
    """Why keepalived could not use a key: it reads text, cut at a NUL byte and without its line end, or ``hex:`` and digits (2.4.3)."""
    try:
        raw = file.read_bytes()[:200].rstrip(b"\r\n")
    except OSError as err:
        return f"cannot be read: {err.strerror or err}"
    if not raw.isascii() or not all(33 <= byte < 127 for byte in raw):
        return "is not one word of printable text"
    if raw.startswith(b"hex:"):
        digits = raw.removeprefix(b"hex:")
        good = 64 <= len(digits) <= 128 and len(digits) % 2 == 0 and all(d in b"0123456789abcdefABCDEF" for d in digits)
        return None if good else "is not hex: and 64 to 128 hexadecimal digits"
    return None if 32 <= len(raw) <= 64 else f"has {len(raw)} characters, not 32 to 64"


def _world(instance: Instance, held: tuple[addresses.Address, ...]) -> str | None:
    """Whether the VIP can live there: its source is on this machine, and its network is one of the interface's."""
    if not any(address.address == instance.source for address in held):
        return f"the own address {instance.source} of VIP {instance.name} is on no interface here; nobody would hear its adverts"
    vip = ipaddress.ip_interface(instance.address)
    if vip.network.prefixlen == vip.max_prefixlen:
        return None
    there = [a for a in held if a.interface == instance.interface and a.address != instance.ip and ":" not in a.address] if vip.version == 4 else None
    if there is None:
        there = [a for a in held if a.interface == instance.interface and a.address != instance.ip and ":" in a.address]
    if any(ipaddress.ip_address(a.address) in vip.network for a in there):
        return None
    own = ", ".join(f"{a.address}/{a.prefix}" for a in there) or "none"
    whole = f"{instance.ip}/{vip.max_prefixlen}"
    return f"VIP {instance.name} ({instance.address}) lies in no network of {instance.interface} (it has {own}); correct it, or write {whole}, if it is routed here"
