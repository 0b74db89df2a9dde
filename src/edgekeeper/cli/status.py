"""``edgekeeper status`` and ``history``: what the nodes say now, and what they did and held back."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import Settings, settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, repaint, say, say_json, table
from edgekeeper.cli.run import LISTEN, LISTEN_TOGETHER, configured
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.load import Loaded
    from edgekeeper.config.root import Root

_DEADLINE_S = 3.0
_WATCH_S = 2.0
_TONES = {"ok": Tone.GOOD, "bad": Tone.BAD, "unknown": Tone.DOUBT}
_DECISION_TONES = {"act": Tone.GOOD, "refuse": Tone.BAD, "alarm": Tone.BAD, "hold": Tone.DOUBT, "suppress": Tone.DOUBT}


@dataclass(frozen=True, slots=True)
class Told:
    """What a node said of itself; ``status`` is None when it did not, and ``why`` says so. ``age_s`` is how old the answer is."""

    node: str
    status: Mapping[str, Any] | None
    why: str
    age_s: float | None = None


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """One table of what each node says of itself.

    A node that does not answer is unknown, with the time since it last did (with --watch). Exit code 0
    whatever the nodes say: this command reports, it does not judge.
    """
    import asyncio

    chosen = settings(ctx)
    loaded = chosen.load()
    last: dict[str, Told] = {}
    while True:
        told = [_with_last(one, last) for one in asyncio.run(_ask_all(loaded, chosen))]
        if watch:
            repaint()
        if output is Format.JSON:
            say_json({"nodes": [{"node": one.node, "age_s": one.age_s, "why": one.why, "status": one.status} for one in told]})
        else:
            table(("NODE", "ROLE", "VERDICT", "AGE", "WHY"), [row for one in told for row in rows(one)])
        if not watch:
            return
        asyncio.run(asyncio.sleep(_WATCH_S))


def rows(told: Told) -> list[tuple[str | Cell, ...]]:
    """A node's rows of the table: one a role; the answer came from outside and may hold anything."""
    age = "-" if told.age_s is None else f"{told.age_s:.0f}s"
    roles = told.status.get("roles") if told.status else None
    if not isinstance(roles, Mapping) or not roles:
        return [(told.node, "-", Cell("unknown", Tone.DOUBT), age, told.why)]
    out: list[tuple[str | Cell, ...]] = []
    for name, role in roles.items():
        said = role if isinstance(role, Mapping) else {}
        verdict, why = str(said.get("verdict", "unknown")), str(said.get("why", ""))
        if told.why:  # an old answer: what it said then is not what is
            verdict, why = "unknown", f"{told.why}; then: {verdict}, {why}"
        out.append((told.node, str(name), Cell(verdict, _TONES.get(verdict, Tone.DOUBT)), age, why))
    return out


async def _ask_all(loaded: Loaded, chosen: Settings) -> list[Told]:
    import asyncio

    here = chosen.this_node(loaded)
    ops = loaded.root.ops
    scheme = "https" if ops.certificate else "http"
    named = loaded.root.nodes.get(here)
    # A certificate has the node's name, not loopback's.
    own = [named.ops] if named and named.ops and ops.certificate else [f"{scheme}://{_reachable(listen)}" for listen in _listens(loaded.root)]
    peers = {name: peer.ops for name, peer in loaded.root.nodes.items() if name != here}
    headers: dict[str, str] = {}
    if ops.token_file:
        from edgekeeper.host.secrets import read

        headers["Authorization"] = f"Bearer {read(ops.token_file)}"
    ca = ops.client_ca if ops.certificate else None
    targets = [*((here, url) for url in own), *peers.items()]
    said = await asyncio.gather(*(_ask(name, url, headers, ca) for name, url in targets))
    return [together(said[: len(own)], configured(loaded.root)), *said[len(own) :]]


def _listens(root: Root) -> list[str]:
    """Where this node's roles speak: one place for all, or one for each that runs alone."""
    return [root.ops.listen] if root.ops.listen else list(dict.fromkeys((LISTEN_TOGETHER, *(LISTEN[role] for role in configured(root)))))


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


async def _ask(node: str, url: str | None, headers: Mapping[str, str], ca_file: str | None) -> Told:
    import asyncio

    from edgekeeper.host.http import get

    if url is None:
        return Told(node, None, "no ops address in nodes:; give one to see its state here")
    try:
        async with asyncio.timeout(_DEADLINE_S + 1):
            answer = await get(f"{url.rstrip('/')}/status", deadline_s=_DEADLINE_S, headers=headers, ca_file=ca_file)
    except TimeoutError:
        return Told(node, None, f"{url} did not answer within {_DEADLINE_S:g} s")
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


def _with_last(told: Told, last: dict[str, Told]) -> Told:
    """For a node that does not answer any more, what it said last, with its age."""
    if told.status is not None:
        last[told.node] = told
        return told
    former = last.get(told.node)
    if former is None or former.status is None:
        return told
    again = parse_status(told.node, json.dumps(former.status), time.time())
    return Told(told.node, again.status, told.why, again.age_s)


def history(
    ctx: typer.Context,
    role: Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Only this role's entries.")] = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="A duration (1h, 30m), or a date and time; all when not said.")] = "",
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """The journal of this node: what acted, what was held back, and why."""
    from edgekeeper.host.journal import read_journal

    folder = settings(ctx).load().root.state_dir
    try:
        records, unreadable = read_journal(folder, since_time(since, time.time()))
    except OSError as err:
        msg = f"the journal in {folder} cannot be read: {err.strerror or err}; run as its owner"
        raise MissingError(msg) from err
    wanted = [record.fields for record in records if role is None or record.fields.get("role") == role]
    if output is Format.JSON:
        say_json({"entries": wanted, "unreadable_lines": unreadable})
        return
    if not wanted:
        say(f"no entry in {folder}" + (f" since {since}" if since else ""))
    else:
        table(("TIME", "ROLE", "EVENT", "OBJECT", "DECISION", "WHY"), [_entry(fields) for fields in wanted])
    if unreadable:
        complain(f"{unreadable} line{'s' if unreadable > 1 else ''} of the journal could not be read (torn by a crash, or of another version)")


def _entry(fields: Mapping[str, Any]) -> tuple[str | Cell, ...]:
    decision = str(fields.get("decision", ""))
    first, rest = (str(fields.get(name, "")) for name in ("ts", "why"))
    named = [str(fields.get(name, "")) for name in ("role", "event", "object")]
    return (first, *named, Cell(decision, _DECISION_TONES.get(decision, Tone.PLAIN)), rest)


def since_time(text: str, now: float) -> float:
    """Unix seconds of ``1h`` (before ``now``) or ``2026-11-29T12:00`` (local when it names no zone); UsageError otherwise."""
    from edgekeeper.model.time import parse_duration

    if not text:
        return 0.0
    try:
        return now - parse_duration(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        msg = f"--since {text!r} is neither a duration like 1h nor a time like 2026-11-29T12:00"
        raise UsageError(msg) from None
