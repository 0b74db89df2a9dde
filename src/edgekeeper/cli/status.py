"""``edgekeeper status`` and ``history``: what the nodes say now, and what they did and held back."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.ask import Told, ask_all, parse_status
from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, repaint, say, say_json, table
from edgekeeper.errors import MissingError, UsageError

if TYPE_CHECKING:
    from edgekeeper.host.journal import Record

_WATCH_S = 2.0
_TONES = {"ok": Tone.GOOD, "bad": Tone.BAD, "unknown": Tone.DOUBT}
_DECISION_TONES = {"act": Tone.GOOD, "refuse": Tone.BAD, "alarm": Tone.BAD, "hold": Tone.DOUBT, "suppress": Tone.DOUBT}


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
        told = [_with_last(one, last) for one in asyncio.run(ask_all(loaded, chosen))]
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
    folder, records, unreadable = journal_since(ctx, since)
    wanted = [record.fields for record in records if role is None or record.fields.get("role") == role]
    if output is Format.JSON:
        say_json({"entries": wanted, "unreadable_lines": unreadable})
        return
    if not wanted:
        say(f"no entry in {folder}" + (f" since {since}" if since else ""))
    else:
        table(("TIME", "ROLE", "EVENT", "OBJECT", "DECISION", "WHY"), [_entry(fields) for fields in wanted])
    say_unreadable(unreadable)


def _entry(fields: Mapping[str, Any]) -> tuple[str | Cell, ...]:
    decision = str(fields.get("decision", ""))
    first, rest = (str(fields.get(name, "")) for name in ("ts", "why"))
    named = [str(fields.get(name, "")) for name in ("role", "event", "object")]
    return (first, *named, Cell(decision, _DECISION_TONES.get(decision, Tone.PLAIN)), rest)


def journal_since(ctx: typer.Context, since: str) -> tuple[str, Sequence[Record], int]:
    """The folder of this node's journal, its entries since then, and how many lines of it could not be read; MissingError when none can."""
    from edgekeeper.host.journal import read_journal

    folder = settings(ctx).load().root.state_dir
    try:
        return (folder, *read_journal(folder, since_time(since, time.time())))
    except OSError as err:
        msg = f"the journal in {folder} cannot be read: {err.strerror or err}; run as its owner"
        raise MissingError(msg) from err


def say_unreadable(lines: int) -> None:
    """How many lines of the journal could not be read, if any."""
    if lines:
        complain(f"{lines} line{'s' if lines > 1 else ''} of the journal could not be read (torn by a crash, or of another version)")


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
