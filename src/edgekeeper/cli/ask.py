"""What the nodes say of themselves, asked of all of them at once: for every command that shows more than this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from edgekeeper.cli.context import Settings
from edgekeeper.cli.run import LISTEN, LISTEN_TOGETHER, configured
from edgekeeper.errors import EdgekeeperError

if TYPE_CHECKING:
    from edgekeeper.config.load import Loaded
    from edgekeeper.config.root import Root
    from edgekeeper.host.http import Trust

DEADLINE_S = 3.0


@dataclass(frozen=True, slots=True)
class Told:
    """What a node said of itself; ``status`` is None when it did not, and ``why`` says so. ``age_s`` is how old the answer is."""

    node: str
    status: Mapping[str, Any] | None
    why: str
    age_s: float | None = None


async def ask_all(loaded: Loaded, chosen: Settings, role: str | None = None) -> list[Told]:
    """What every node says, this one first; only of one role, where one is named."""
    import asyncio

    from edgekeeper.host.http import Trust

    here = chosen.this_node(loaded)
    ops = loaded.root.ops
    scheme = "https" if ops.certificate else "http"
    named = loaded.root.nodes.get(here)
    # A certificate has the node's name, not loopback's.
    own = [named.ops] if named and named.ops and ops.certificate else [f"{scheme}://{_reachable(listen)}" for listen in _listens(loaded.root, role)]
    peers = {name: peer.ops for name, peer in loaded.root.nodes.items() if name != here}
    headers: dict[str, str] = {}
    if ops.token_file:
        from edgekeeper.host.secrets import read

        headers["Authorization"] = f"Bearer {read(ops.token_file)}"
    trust = Trust(ops.believed_ca, ops.certificate, ops.key)
    targets = [*((here, url) for url in own), *peers.items()]
    page = f"/status?role={role}" if role else "/status"
    said = await asyncio.gather(*(_ask(name, url, page, headers, trust) for name, url in targets))
    expected = tuple(name for name in configured(loaded.root) if role in {None, name})
    return [together(said[: len(own)], expected), *said[len(own) :]]


def _listens(root: Root, role: str | None) -> list[str]:
    """Where this node's roles speak: one place for all, or one for each that runs alone."""
    roles = configured(root) if role is None else (role,)
    return [root.ops.listen] if root.ops.listen else list(dict.fromkeys((LISTEN_TOGETHER, *(LISTEN[name] for name in roles))))


def together(said: Sequence[Told], roles: Sequence[str]) -> Told:
    """What the processes of one node said, as one answer; of the ``roles`` that it should have, one that nobody speaks for is unknown."""
    answered = [one for one in said if one.status is not None]
    if not answered:
        return said[0]
    found: dict[str, Any] = {}
    for one in answered:
        more = one.status.get("roles") if one.status is not None else None
        found = {**(more if isinstance(more, Mapping) else {}), **found}
    silent = {"verdict": "unknown", "why": "it is in the config, and nothing on this machine speaks for it; is it running?"}
    found |= {role: silent for role in roles if role not in found}
    ages = [one.age_s for one in answered if one.age_s is not None]
    return replace(answered[0], status={**(answered[0].status or {}), "roles": found}, age_s=max(ages) if ages else None)


def _reachable(listen: str) -> str:
    """Where a listener is asked from its own machine: all addresses means loopback."""
    return listen.replace("0.0.0.0:", "127.0.0.1:", 1) if listen.startswith("0.0.0.0:") else listen.replace("[::]:", "[::1]:", 1)


async def _ask(node: str, url: str | None, page: str, headers: Mapping[str, str], trust: Trust) -> Told:
    import asyncio

    from edgekeeper.host.http import get

    if url is None:
        return Told(node, None, "no ops address in nodes:; give one to see its state here")
    try:
        async with asyncio.timeout(DEADLINE_S + 1):
            answer = await get(url.rstrip("/") + page, deadline_s=DEADLINE_S, headers=headers, trust=trust)
    except TimeoutError:
        return Told(node, None, f"{url} did not answer within {DEADLINE_S:g} s")
    except EdgekeeperError as err:
        return Told(node, None, str(err))
    if answer.status != 200:
        return Told(node, None, f"{url}/status answered {answer.status}" + ("; check ops.token_file" if answer.status in {401, 403} else ""))
    return parse_status(node, answer.text, time.time())


def parse_status(node: str, text: str, now: float) -> Told:
    """A node's answer; what is not a status of schema 1 is unknown. ``now`` is Unix time, for its age."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Told(node, None, "its answer is not JSON")
    if not isinstance(document, dict) or document.get("schema") != 1:
        return Told(node, None, "its answer is not a status of schema 1; update the older of the two")
    stamp = document.get("ts")
    try:
        at = float(stamp) if isinstance(stamp, int | float) else datetime.fromisoformat(str(stamp)).timestamp()
    except (ValueError, OverflowError):
        return Told(node, document, "", None)
    return Told(node, document, "", max(0.0, now - at))
