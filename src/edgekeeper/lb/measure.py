"""How quickly the members answer their check, asked once before the first start; remembered, so that a restart changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgekeeper.config.kinds import split_host_port
from edgekeeper.config.lb import Service
from edgekeeper.engines.haproxy.topology import Check, check_of
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.lb.desired import Patience, patience
from edgekeeper.model.backend import Member
from edgekeeper.model.reach import Reach
from edgekeeper.probe import blackhole

ROUNDS = 100
"""Questions to each member: with fewer, one answer that this machine was slow to take would decide."""
DEADLINE_S = 2.0
"""The start does not wait longer than this for slow members; what they answered until then counts."""
NAME = "patience.json"


class Patiences:
    """Timeouts of the checks whose config says auto, by service."""

    def __init__(self, state: Path) -> None:
        self.known: dict[str, Patience] = {}
        self._file = state / NAME
        with contextlib.suppress(EdgekeeperError, ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(read_text(self._file))
            self.known = {str(name): Patience(float(kept["timeout_s"]), str(kept["why"])) for name, kept in record["services"].items()}

    @property
    def timeouts(self) -> Mapping[str, float]:
        """Seconds by service."""
        return {name: found.timeout_s for name, found in self.known.items()}

    async def learn(self, services: Sequence[Service], members: Mapping[str, tuple[Member, ...]]) -> None:
        """Ask the members of services that are not known yet; a service that nobody answered for is asked again at the next start."""
        wanted = [s for s in services if s.health.timeout is None and s.name not in self.known and check_of(s, 1.0).kind != "none"]
        found = await asyncio.gather(*(_times(check_of(s, 1.0), members.get(s.name, ())) for s in wanted))
        heard = {service.name: patience(times) for service, times in zip(wanted, found, strict=True) if times}
        if not heard:
            return
        self.known |= heard
        kept = {name: {"timeout_s": p.timeout_s, "why": p.why} for name, p in self.known.items()}
        with contextlib.suppress(EdgekeeperError):
            write_text(self._file, json.dumps({"schema": 1, "services": kept}, indent=1))


async def _times(check: Check, members: Sequence[Member]) -> list[float]:
    """Seconds of each good answer, from connecting to its first byte."""
    out: list[float] = []

    async def one(member: Member) -> None:
        for number in range(ROUNDS + 1):
            taken = await _once(check, member)
            if taken is None:
                return
            if number:  # the first pays for what both sides do once
                out.append(taken)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*(one(member) for member in members))
    return out


async def _once(check: Check, member: Member) -> float | None:
    host, port = split_host_port(member.address)
    if check.kind == "tcp":
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            return None
        writer.close()
        return loop.time() - began
    reached = await blackhole.ask(blackhole.Question(host, port, check.path, check.tls, check.host))
    if reached.reach is not Reach.OK:
        return None
    return ((reached.connect_ms or 0.0) + (reached.tls_ms or 0.0) + (reached.first_byte_ms or 0.0)) / 1000
