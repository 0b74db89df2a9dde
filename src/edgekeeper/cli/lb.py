"""``edgekeeper lb render|run|audit|sessions|guard``."""

from __future__ import annotations

from typing import Annotated

import typer

from edgekeeper.cli.audit import audit
from edgekeeper.cli.context import settings
from edgekeeper.cli.lb_guard import guard
from edgekeeper.cli.lb_sessions import sessions

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

    from edgekeeper.cli.rendered import show
    from edgekeeper.lb.preview import preview

    loaded = settings(ctx).load_role("lb")
    found = asyncio.run(preview(loaded.root, ask=ask))
    show(found, "HAProxy", directory, asked=ask)


@app.command()
def run(ctx: typer.Context) -> None:
    """Supervise HAProxy until TERM (stops it) or QUIT (leaves it for the next supervisor); HUP reads the config again."""
    from edgekeeper.cli.run import LISTEN, maker, start

    start(settings(ctx), settings(ctx).load_role("lb"), {"lb": maker("lb")}, LISTEN["lb"])
