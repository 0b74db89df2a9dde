"""What the source says, beside what the engine holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.dns import drained
from edgekeeper.dns.visit import members, running
from edgekeeper.engines.dnsdist.view import Server
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.backend import Member


@dataclass(frozen=True, slots=True)
class Row:
    """One member: what the source says of it, what the engine does, and the difference in words."""

    name: str
    address: str
    source: str
    engine: str
    pools: str
    difference: str


async def compare(root: Root) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """One row a member of either side, and notes about what could not be asked."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    found, where, more = await members(root, SystemClock())
    notes = [f"the source is {where}", *more]
    held: tuple[Server, ...] | None = None
    try:
        held = (await (await running(root)).view()).servers
    except EdgekeeperError as err:
        notes.append(str(err))
    gone: frozenset[str] = frozenset()
    try:
        gone = drained.read(Path(root.state_dir) / "dns").names
    except EdgekeeperError as err:
        notes.append(str(err))
    return rows(found, held, gone), tuple(notes)


def rows(members: tuple[Member, ...], held: tuple[Server, ...] | None, gone: frozenset[str]) -> tuple[Row, ...]:
    """The table; ``held`` is None when the engine could not be asked."""
    servers = {s.address: s for s in held or () if not any(p.startswith("forward-") for p in s.pools)}
    out = []
    for m in members:
        server = servers.pop(m.address, None)
        is_drained = m.label in gone or m.address in gone
        difference = ""
        if held is not None and server is None and not is_drained:
            difference = "not in the engine yet"
        elif server is not None and is_drained:
            difference = "drained, but still in the engine"
        engine = "not asked" if held is None else server.state if server is not None else "absent"
        out.append(Row(m.label, m.address, "drained" if is_drained else "present", engine, ",".join(server.pools) if server else "", difference))
    out += [Row(s.name, s.address, "absent", s.state, ",".join(s.pools), "not in the source any more") for s in servers.values()]
    return tuple(out)
