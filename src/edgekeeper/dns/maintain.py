"""Drain and undrain: remembered first, then seen in the running engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from edgekeeper.config.root import Root
from edgekeeper.dns import drained
from edgekeeper.dns.desired import may_drain
from edgekeeper.dns.visit import members, running, states
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, StepFailedError, UsageError
from edgekeeper.host.clock import SystemClock

LOOK_S = 0.1


async def change(root: Root, name: str, *, drain: bool, force: bool, wait_s: float) -> str:
    """Drain or undrain a member and wait until the engine shows it; says what is so now."""
    assert root.dns is not None  # noqa: S101 - the command has checked it
    folder = Path(root.state_dir) / "dns"
    found, _, _ = await members(root, SystemClock())
    try:
        gone = drained.read(folder).names
    except UsageError:  # damaged: this change writes it anew
        gone = frozenset({name} if not drain else ())
    if drain:
        refusal = may_drain(name, found, gone, await states(root))
        known = any(name in (m.name, m.address) for m in found)
        if refusal is not None and not (force and known):
            raise RefusedError(refusal)
    elif name not in gone:
        return f"{name} is not drained; nothing was changed"
    drained.change(folder, name, drain=drain, force=force)
    word = "drained" if drain else "back in service"
    addresses = {m.address for m in found if name in (m.name, m.address)}
    try:
        engine = await running(root)
    except MissingError as err:
        return f"{name} is {word} from the next start on ({err})"
    deadline = asyncio.get_running_loop().time() + wait_s
    while asyncio.get_running_loop().time() < deadline:
        try:
            held = {s.address for s in (await engine.view()).servers}
            if (not addresses & held) if drain else (addresses <= held):
                return f"{name} is {word}"
        except EdgekeeperError:
            engine = await running(root)
        await asyncio.sleep(LOOK_S)
    msg = f"{name} is written down as {word}, but the engine does not show it after {wait_s:g} s; is the supervisor running? See edgekeeper status"
    raise StepFailedError(msg)
