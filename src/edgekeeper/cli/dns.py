"""``edgekeeper dns render|run|members|drain|undrain|flush``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Format, complain, say, say_json, table
from edgekeeper.errors import UsageError

app = typer.Typer(help="dnsdist under supervision.")

WAIT_S = 15.0
"""How long ``drain`` waits until the engine shows it."""


@app.command()
def render(
    ctx: typer.Context,
    directory: Annotated[str | None, typer.Option("--dir", metavar="DIR", help="Write the files there instead of printing them.")] = None,
    ask: Annotated[bool, typer.Option("--check", help="Ask dnsdist's own validator about them.")] = False,
) -> None:
    """Render dnsdist's files from the config and what the source says now; nothing that runs is touched.

    Credentials and private ports are fresh ones: a running engine keeps its own.
    """
    import asyncio

    from edgekeeper.cli.rendered import show
    from edgekeeper.dns.preview import preview

    loaded = settings(ctx).load_role("dns")
    found = asyncio.run(preview(loaded.root, ask=ask))
    show(found, "dnsdist", directory, asked=ask, heads=True, credentials=True)


@app.command()
def run(
    ctx: typer.Context,
    api_key_out: Annotated[str | None, typer.Option("--api-key-out", metavar="FILE", help="Write the API key of each start here, mode 0640.")] = None,
    api_key_group: Annotated[str | None, typer.Option("--api-key-group", metavar="GROUP", help="Group that may read it.")] = None,
) -> None:
    """Supervise dnsdist until TERM (stops it) or QUIT (leaves it for the next supervisor); HUP reads the config again."""
    from functools import partial

    from edgekeeper.cli.run import LISTEN, start
    from edgekeeper.dns.role import make

    loaded = settings(ctx).load_role("dns")
    out = (api_key_out, _group(api_key_group)) if api_key_out is not None else None
    start(settings(ctx), loaded, {"dns": partial(make, api_key_out=out)}, LISTEN["dns"])


def _group(name: str | None) -> int:
    import grp

    if name is None:
        return -1
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as err:
        msg = f"there is no group {name!r} here; the API key is not written, create the group or leave it out"
        raise UsageError(msg) from err


@app.command()
def members(ctx: typer.Context, output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT) -> None:
    """What the source says now, what the engine holds, and the difference."""
    import asyncio

    from edgekeeper.dns.compare import compare

    rows, notes = asyncio.run(compare(settings(ctx).load_role("dns").root))
    if output is Format.JSON:
        say_json({"members": [row.__dict__ if hasattr(row, "__dict__") else _fields(row) for row in rows], "notes": list(notes)})
        return
    table(
        ("NAME", "ADDRESS", "SOURCE", "ENGINE", "POOLS", "DIFFERENCE"),
        [(r.name, r.address, r.source, r.engine, r.pools, r.difference) for r in rows],
    )
    for note in notes:
        complain(f"note: {note}")


def _fields(row: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(row)


@app.command()
def drain(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The member's name, or address:port of an anonymous one.")],
    force: Annotated[bool, typer.Option("--force", help="Also the last usable one.")] = False,
) -> None:
    """Take a member out of service for maintenance: live, remembered over restarts."""
    _change(ctx, name, drain=True, force=force)


@app.command()
def undrain(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="The member.")]) -> None:
    """Put a drained member back into service."""
    _change(ctx, name, drain=False, force=False)


def _change(ctx: typer.Context, name: str, *, drain: bool, force: bool) -> None:
    import asyncio

    from edgekeeper.dns.maintain import change

    said = asyncio.run(change(settings(ctx).load_role("dns").root, name, drain=drain, force=force, wait_s=WAIT_S))
    say(said)


@app.command()
def flush(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The zone or name whose answers are thrown away, with all beneath it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Throw everything away.")] = False,
) -> None:
    """Empty the packet caches, for whatever changes answers behind them."""
    import asyncio

    from edgekeeper.config.kinds import check_domain
    from edgekeeper.dns.visit import running

    if (name is None) != everything:
        msg = "give a name, or --all"
        raise UsageError(msg)
    try:
        domain = check_domain(name) if name is not None else None
    except ValueError as err:
        msg = f"{err}; nothing was flushed"
        raise UsageError(msg) from err
    root = settings(ctx).load_role("dns").root

    async def work() -> None:
        engine = await running(root)
        await engine.build.hands.flush(engine.seat, domain)

    asyncio.run(work())
    say(f"cached answers {'under ' + domain if domain else ''} are thrown away".replace("  ", " "))
