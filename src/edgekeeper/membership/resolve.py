"""Host names of members to addresses: the engine is given addresses only, and the names are watched."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

from edgekeeper.config.kinds import is_address
from edgekeeper.errors import MissingError
from edgekeeper.model.backend import Member


async def resolved(members: tuple[Member, ...], known: dict[str, tuple[str, ...]]) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """Members with addresses only, and a sentence for each name that is not resolved right now.

    ``known`` keeps each name's last answer: a name that stops resolving keeps its addresses. A name
    with several addresses becomes several members, of which none carries the node's name (which of
    them would it be?). A name that never resolved is left out and told.
    """
    names = sorted({m.host for m in members if not is_address(m.host)})
    answers = await asyncio.gather(*(_lookup(name) for name in names), return_exceptions=True)
    notes = []
    for name, answer in zip(names, answers, strict=True):
        if isinstance(answer, tuple) and answer:
            known[name] = answer
        elif isinstance(answer, BaseException) and not isinstance(answer, MissingError):
            raise answer
        else:
            why = str(answer) if isinstance(answer, BaseException) else f"{name} has no addresses"
            notes.append(f"{why}; {'its last addresses stay' if name in known else 'it is left out until it has some'}")
    out: list[Member] = []
    for member in members:
        found = (member.host,) if is_address(member.host) else known.get(member.host, ())
        out += [replace(member, host=a, name=member.name if len(found) == 1 else "") for a in found]
    return tuple(sorted(set(out))), tuple(notes)


async def _lookup(name: str) -> tuple[str, ...]:
    """DNS, whose failure can be told from an empty answer; else the system's way, which knows /etc/hosts too."""
    from edgekeeper.membership.dns import addresses  # noqa: PLC0415 - a resolver is a fifth of a start (95 ms); a config with addresses needs none

    with contextlib.suppress(MissingError):
        found = await addresses(name)
        if found:
            return tuple(found)
    return await _from_hosts(name)


async def _from_hosts(name: str) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(4):
            found = await loop.getaddrinfo(name.removesuffix("."), None)
    except (OSError, TimeoutError) as err:
        msg = f"{name} cannot be resolved: {str(err) or 'no answer within 4 s'}"
        raise MissingError(msg) from err
    return tuple(sorted({str(entry[4][0]) for entry in found}))
