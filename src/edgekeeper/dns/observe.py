"""Ask every member, on the path that dnsdist asks them: the health question, and who they are."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable

from edgekeeper.dns.desired import Observation
from edgekeeper.host.udp import exchange
from edgekeeper.model.backend import Member
from edgekeeper.probe import packet

PROXY_LOCAL = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"
"""A PROXY v2 header of kind LOCAL, as dnsdist's own health checks send it to members that want one."""

AT_ONCE = 100
"""Members asked at the same time."""


async def observe(members: Iterable[Member], question: tuple[str, str], *, proxy: bool, deadline_s: float) -> dict[str, Observation]:
    """One full round: what each member (by address) answered."""
    everyone = list(members)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(member: Member) -> Observation:
        async with gate:
            return await _observe(member, question, proxy=proxy, deadline_s=deadline_s)

    answers = await asyncio.gather(*(one(m) for m in everyone))
    return {m.address: a for m, a in zip(everyone, answers, strict=True)}


async def _observe(member: Member, question: tuple[str, str], *, proxy: bool, deadline_s: float) -> Observation:
    name, kind = question
    health = _ask(member, name, kind, "IN", proxy=proxy, deadline_s=deadline_s)
    if kind == "TXT" or not member.name:
        reply, error = await health
        says = reply.texts[0] if reply is not None and reply.texts else None
        return Observation(reply.rcode_name if reply is not None else None, says, error)
    who = _ask(member, "id.server.", "TXT", "CH", proxy=proxy, deadline_s=deadline_s)
    (reply, error), (named, _) = await asyncio.gather(health, who)
    says = named.texts[0] if named is not None and named.rcode == 0 and named.texts else None
    return Observation(reply.rcode_name if reply is not None else None, says, error)


async def _ask(member: Member, name: str, kind: str, qclass: str, *, proxy: bool, deadline_s: float) -> tuple[packet.Reply | None, str]:
    ident = secrets.randbelow(65536)
    asked = packet.question(ident, name, kind, qclass)

    def ours(data: bytes) -> bool:
        return data[:2] == asked[:2] and len(data) > 2 and bool(data[2] & 0x80)

    try:
        answer = await exchange(member.host, member.port, (PROXY_LOCAL if proxy else b"") + asked, ours, deadline_s)
        return packet.parse(answer), ""
    except TimeoutError:
        return None, f"no answer within {deadline_s:g} s"
    except (OSError, ValueError) as err:
        return None, str(err)


async def serial(members: Iterable[Member], zone: str, *, proxy: bool, deadline_s: float) -> int | None:
    """The SOA serial of a zone, from the first member that knows it."""
    for member in members:
        reply, _ = await _ask(member, zone, "SOA", "IN", proxy=proxy, deadline_s=deadline_s)
        if reply is not None and reply.rcode == 0 and reply.serial is not None:
            return reply.serial
    return None
