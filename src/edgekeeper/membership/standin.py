"""Members for a check of the config alone: what only the running machine knows stands as an address from the documentation range."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from edgekeeper.config.kinds import is_address
from edgekeeper.config.members import MembersFrom
from edgekeeper.host.clock import SystemClock
from edgekeeper.membership.local import FileSource, as_members
from edgekeeper.model.backend import Member


async def members(source: MembersFrom, where: str, doubts: list[str], default_port: int = 0) -> tuple[Member, ...]:
    """The members that can be told without asking the network; ``doubts`` gets a sentence where a stand-in is used. ``where`` is the key."""
    if source.static is not None:
        return as_members(source.static, default_port)
    if source.file is not None:
        if Path(source.file).exists():
            return (await FileSource(source.file, SystemClock(), source.entry, default_port).read()).members
        doubts.append(f"{where}.file: {source.file} is not on this machine; its members are not judged here")
    elif source.dns is not None:
        doubts.append(f"{where}.dns: members from DNS are not asked for by a check; they are not judged here")
    else:
        key = "endpointslice" if source.endpointslice is not None else "nodes"
        doubts.append(f"{where}.{key}: the cluster is not asked by a check; its members are not judged here")
    return (Member("stand-in", "stand-in", default_port or 53),)


def addressed(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Host names replaced by addresses of the documentation range, one each."""
    return tuple(m if is_address(m.host) else replace(m, host=f"2001:db8::{number:x}") for number, m in enumerate(members, 1))
