"""``ports.Hands`` for dnsdist: what its validator cannot see, proof of a start, changes of a running engine."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from edgekeeper.engines.dnsdist import api, certificates, functions, live, view
from edgekeeper.engines.dnsdist.console import Console
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.engines.dnsdist.names import AUTHORITATIVE, RESOLVER
from edgekeeper.engines.dnsdist.quote import lua_string, lua_value
from edgekeeper.engines.dnsdist.seat import Seat, console_key_bytes, make
from edgekeeper.engines.dnsdist.topology import Listener, Topology
from edgekeeper.errors import EdgekeeperError, MissingError, StepFailedError
from edgekeeper.host import owner

PROVE_DEADLINE_S = 10.0
PROVE_EVERY_S = 0.05
LIVE_DEADLINE_S = 10.0
LIVE_PER_COMMAND_S = 1.5
"""Removing a member waits until its receiver wakes up, up to 1 s when it is idle (measured; 6 ms in the best case)."""
LEAVE_S = 2.5
"""How long a member that leaves may finish what it was asked; its queries time out after 3 to 4 s, most resolvers answer within 2."""
SWEEP_EVERY_S = 0.05
PASS_S = 0.05
"""From when another member is up until one that goes is down, in s. dnsdist picks a member in a list that it took before, looking at one
after the other: where both happen at once, a query can see neither up and gets SERVFAIL. (In two console commands the other way round, 1 to 6
of 2,500 queries a second did at each change of all members, 1.7.3 and 2.1.3, 2026-11-30.)"""
_TRIES, _LOWEST, _ENOUGH = 1000, 10240, 1000
_SERVERS = "/api/v1/servers/localhost"
_TABLE = "showServers({showUUIDs=true})"


class DnsdistHands:
    """What is done to, and asked of, a dnsdist with these features. Holds no state: every call names its seat."""

    def __init__(self, features: Features) -> None:
        self.features = features

    def new_seat(self, intent: Any) -> Seat:
        """Fresh secrets and three free loopback ports. The API's may be chosen in the config; while the engine beside has it, it is a free one."""
        topology: Topology = intent
        console, web, private = _free_ports(3)
        wanted = topology.tuning.api_port
        if wanted and _bindable("127.0.0.1", wanted, socket.SOCK_STREAM, reuse=False) is None:
            web = wanted
        return make((console, web, private), secrets.token_bytes(128))

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:
        """Why it would not start, or would start without a listener, its API or its console."""
        topology: Topology = intent
        refusal = _sense(topology)
        if refusal is None and console_key_bytes(seat.console_key) is None:
            refusal = "the console key is not base64 of 32 bytes; dnsdist would run without a console"
        if refusal is None:
            refusal = await asyncio.to_thread(_certificates, topology)
        if refusal is not None or seat == beside:  # a live change binds nothing
            return refusal
        return _private_ports(seat) or await asyncio.to_thread(_listen_ports, topology, beside, serving)

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        """That process ``pid`` answers DNS on its private port, holds this configuration and has every listener.

        The web API answers before DNS is served (0.6 s before, measured with a black-holed member), so
        the private port is asked last and must answer our own question.
        """
        try:
            async with asyncio.timeout(PROVE_DEADLINE_S):
                while True:
                    missing = await self._missing(intent, seat, pid)
                    if missing is None:
                        return None
                    await asyncio.sleep(PROVE_EVERY_S)
        except TimeoutError:
            return f"dnsdist did not prove itself within {PROVE_DEADLINE_S:g} s: {await self._last(intent, seat, pid)}"

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:
        """Bring the difference into the running engine and read it back; a sentence when they differ."""
        done = live.commands(old, new, self.features)
        deadline = LIVE_DEADLINE_S + LIVE_PER_COMMAND_S * len(done)
        try:
            async with asyncio.timeout(deadline):
                if done:
                    async with Console(seat.console_port, seat.console_key) as console:
                        for command in done:
                            await console.run(command)
                        await self._part(console, live.staying(old, new))
                        await self._sweep(console)
                found = view.differences(new, await self.read(seat))
                if found:
                    return f"after the live change {found[0]}"
                if "reloadAllCertificates()" in done:
                    return await asyncio.to_thread(_shown, new)
        except TimeoutError:
            return f"the live change was not done within {deadline:g} s"
        except EdgekeeperError as err:
            return str(err)
        return None

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:  # noqa: ARG002 - the port's shape
        """It never can: SIGHUP ends dnsdist (1.7.3 to 2.1.3)."""
        return "dnsdist does not read its configuration again; it must be replaced"

    async def _part(self, console: Console, pools: str) -> None:
        """Give the members that go no more queries, once those that stay take them."""
        if (await console.run(f"return ek_hope({pools})")).strip() == "somebody goes":
            await asyncio.sleep(PASS_S)
        await console.run(f"ek_part({pools})")

    async def _sweep(self, console: Console) -> None:
        """Take away the members that left, each when it has answered what it was asked, all after ``LEAVE_S``."""
        end = asyncio.get_running_loop().time() + LEAVE_S
        await asyncio.sleep(SWEEP_EVERY_S)  # a query whose member was chosen before it left is sent by now
        while (state := (await console.run(f"return ek_sweep({lua_value(asyncio.get_running_loop().time() > end)})")).strip()) != "done":
            if state == "busy":
                await asyncio.sleep(SWEEP_EVERY_S)
        await console.run(functions.FORGET)

    async def read(self, seat: Seat) -> view.EngineView:
        """What the engine holds now; MissingError when it cannot be asked, StepFailedError when it answers nonsense."""
        async with Console(seat.console_port, seat.console_key) as console:
            table = await console.run(_TABLE)
        return await self.status(seat, table)

    async def status(self, seat: Seat, table: str = "") -> view.EngineView:
        """The same without the members' ids: one request, for once a second."""
        held = view.parse(await api.get(seat.api_port, _SERVERS, seat.api_key), table)
        if held is None:
            msg = "dnsdist's API answered something that is no JSON object"
            raise StepFailedError(msg)
        return held

    async def flush(self, seat: Seat, name: str | None = None, *, pools: tuple[str, ...] = (RESOLVER, AUTHORITATIVE)) -> None:
        """Forget cached answers under ``name`` (all when None) in the caches of ``pools``; a pool without a cache is no error."""
        how = "expunge(0)" if name is None else f"expungeByName(newDNSName({lua_string(name)}), DNSQType.ANY, true)"
        async with Console(seat.console_port, seat.console_key) as console:
            for pool in pools:
                await console.run(f"do local cache = getPool({lua_string(pool)}):getCache() if cache ~= nil then cache:{how} end end")

    async def _missing(self, topology: Topology, seat: Seat, pid: int) -> str | None:
        """What is not proven yet, or None."""
        for port, kind, what in (
            (seat.private_port, "udp", "its private DNS port"),
            (seat.api_port, "tcp", "its API"),
            (seat.console_port, "tcp", "its console"),
        ):
            if not owner.owns(pid, "127.0.0.1", port, kind):
                return f"process {pid} does not listen on {what} ({port})"
        try:
            found = view.differences(topology, await self.read(seat))
        except EdgekeeperError as err:
            return str(err)
        if found:
            return found[0]
        return await _answers(seat.private_port)

    async def _last(self, topology: Topology, seat: Seat, pid: int) -> str:
        try:
            async with asyncio.timeout(2):
                return await self._missing(topology, seat, pid) or "it did only now"
        except TimeoutError:
            return "it does not answer"


def _sense(topology: Topology) -> str | None:
    if not topology.listeners:
        return "there is no listener; dnsdist would serve nobody"
    if not topology.backends:
        return "there is no member; dnsdist would answer SERVFAIL to everybody"
    ids = [backend.id for backend in topology.backends]
    twice = next((backend for backend in topology.backends if ids.count(backend.id) > 1), None)
    if twice is not None:
        return f"two members have the id of {twice.name}; dnsdist accepts that and then mixes them up"
    pools = {pool.name for pool in topology.pools}
    astray = next((rule for rule in topology.rules if rule.pool and rule.pool not in pools), None)
    if astray is not None:
        return f"the rule {astray.name} sends to the pool {astray.pool}, which does not exist"
    return None


def _certificates(topology: Topology) -> str | None:
    for pair in dict.fromkeys((item.certificate.chain, item.certificate.key) for item in topology.listeners if item.certificate):
        refusal = certificates.refusal(*pair)
        if refusal is not None:
            return refusal
    bare = next((item for item in topology.listeners if item.protocol != "do53" and item.certificate is None), None)
    return f"{bare.address} has no certificate" if bare else None


def _shown(topology: Topology) -> str | None:
    for listener in topology.listeners:
        if listener.protocol in ("dot", "doh") and listener.certificate is not None:
            refusal = certificates.shown(listener.address, listener.certificate.chain)
            if refusal is not None:
                return refusal
    return None


def _private_ports(seat: Seat) -> str | None:
    for port, kind, what in (
        (seat.console_port, socket.SOCK_STREAM, "the console"),
        (seat.api_port, socket.SOCK_STREAM, "the API"),
        (seat.private_port, socket.SOCK_STREAM, "the private DNS listener"),
        (seat.private_port, socket.SOCK_DGRAM, "the private DNS listener"),
    ):
        refusal = _bindable("127.0.0.1", port, kind, reuse=False)
        if refusal is not None:
            return f"port {port} for {what} cannot be used: {refusal}"
    return None


def _listen_ports(topology: Topology, beside: Seat | None, serving: int | None) -> str | None:
    """Why a listener cannot be had; what a process that will make room (it has no seat that we know) holds is no obstacle.

    Beside a sibling (its seat is given), a UDP port in use is well if all in the way is the sibling's:
    trying to share it would join its group of sockets for a moment and swallow queries. Its TCP twin
    is tried, which serves nobody before it listens.
    """
    sibling = owner.holder("127.0.0.1", beside.console_port, "tcp") if beside is not None else None
    for listener in topology.listeners:
        host, port = _split(listener.address)
        for kind in _kinds(listener):
            refusal = _bindable(host, port, kind, reuse=beside is not None and kind == socket.SOCK_STREAM)
            name = "udp" if kind == socket.SOCK_DGRAM else "tcp"
            if refusal == os.strerror(errno.EADDRINUSE) and beside is None and serving is not None and owner.all_his([serving], host, port, name):
                continue
            taken = beside is not None and kind == socket.SOCK_DGRAM and refusal == os.strerror(errno.EADDRINUSE)
            if refusal is not None and not (taken and (sibling is None or owner.all_his([sibling], host, port, "udp"))):
                over = "UDP" if kind == socket.SOCK_DGRAM else "TCP"
                return f"{listener.address} ({listener.protocol}, {over}) cannot be listened on: {refusal}"
    return None


def _kinds(listener: Listener) -> tuple[socket.SocketKind, ...]:
    if listener.protocol == "do53":
        return (socket.SOCK_DGRAM, socket.SOCK_STREAM)
    return (socket.SOCK_STREAM,) if listener.protocol in ("dot", "doh") else (socket.SOCK_DGRAM,)


def _bindable(host: str, port: int, kind: socket.SocketKind, *, reuse: bool) -> str | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, kind) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            probe.bind((host, port))
    except OSError as err:
        return os.strerror(err.errno) if err.errno else str(err)
    return None


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _free_ports(count: int) -> tuple[int, ...]:
    """Ports that are free for TCP and UDP on 127.0.0.1 right now; held together, so that they differ.

    They lie below the ephemeral range: a port of that could be taken by any outgoing connection before
    the engine binds it, and a client that connects too early would meet itself (seen on Linux 6.18).
    """
    top = min(_ephemeral_from(), 65_000)
    held: list[socket.socket] = []
    out: list[int] = []
    try:
        for _ in range(2000):
            if len(out) == count:
                return tuple(out)
            port = secrets.choice(range(top // 2, top))
            stream, datagram = socket.socket(socket.AF_INET, socket.SOCK_STREAM), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            held += [stream, datagram]
            try:
                stream.bind(("127.0.0.1", port))
                datagram.bind(("127.0.0.1", port))
            except OSError:
                continue
            out.append(port)
    finally:
        for item in held:
            item.close()
    msg = f"there are no {count} free ports on 127.0.0.1 between {top // 2} and {top}"
    raise MissingError(msg)


def _ephemeral_from() -> int:
    """The first port that the kernel gives to outgoing connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


async def _answers(port: int) -> str | None:
    """None when the private port answers our question. An AXFR: a rule before all members refuses it, so no member is needed."""
    identity = secrets.token_bytes(2)
    question = identity + bytes.fromhex("0000 0001 0000 0000 0000 00 00fc 0001")
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.setblocking(False)
        try:
            asker.connect(("127.0.0.1", port))
            await loop.sock_sendall(asker, question)
            async with asyncio.timeout(0.5):
                while True:
                    answer = await loop.sock_recv(asker, 4096)
                    if answer[:2] == identity:
                        return None
        except (OSError, TimeoutError):
            return f"the private DNS port {port} does not answer yet"
