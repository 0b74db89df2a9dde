"""``edgekeeper lb render|run|audit|sessions|guard``."""

from __future__ import annotations

from typing import Annotated

import typer

from edgekeeper.cli.audit import audit
from edgekeeper.cli.context import settings
from edgekeeper.cli.lb_guard import guard
from edgekeeper.cli.lb_sessions import sessions
from edgekeeper.cli.output import complain, say, say_block
from edgekeeper.errors import UsageError

app = typer.Typer(help="HAProxy under supervision, and no client left on a dead server.")
app.command()(audit)
app.command()(sessions)
app.command()(guard)


@app.command()
def render(
    ctx: typer.Context,
    directory: Annotated[str | None, typer.Option("--dir", metavar="DIR", help="Write the file there instead of printing it.")] = None,
    ask: Annotated[bool, typer.Option("--check", help="Ask HAProxy's own validator about it.")] = False,
) -> None:
    """Render haproxy.cfg from the config and what the sources say now; nothing that runs is touched."""
    import asyncio

    from edgekeeper.lb.preview import preview

    loaded = settings(ctx).load_role("lb")
    found = asyncio.run(preview(loaded.root, ask=ask))
    for note in found.notes:
        complain(f"note: {note}")
    for name, text in found.files.items():
        if directory is None:
            say_block(text)
        else:
            from edgekeeper.host.files import make_folder, write_text

            write_text(make_folder(directory, ours=False) / name, text)
            say(f"{name} written to {directory}")
    if found.refusal is not None:
        msg = f"{found.refusal}; nothing was changed"
        raise UsageError(msg)
    if ask:
        complain(f"HAProxy {found.version} accepts it")


@app.command()
def run(ctx: typer.Context) -> None:
    """Supervise HAProxy until TERM (stops it) or QUIT (leaves it for the next supervisor); HUP reads the config again."""
    from edgekeeper.cli.run import LISTEN, maker, start

    start(settings(ctx), settings(ctx).load_role("lb"), {"lb": maker("lb")}, LISTEN["lb"])
