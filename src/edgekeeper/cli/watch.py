"""``edgekeeper watch run|pause|resume|replay|history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.watch_history import history
from edgekeeper.cli.watch_replay import replay
from edgekeeper.errors import UsageError

if TYPE_CHECKING:
    from edgekeeper.config.root import Root

app = typer.Typer(help="Watchdogs: a log line arms, a probe confirms, a cure is proved, and nothing suppressed is forgotten.")
app.command()(replay)
app.command()(history)


@app.command()
def run(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and tell, but cure nothing (shadow: true for all watches).")] = False,
) -> None:
    """Watch until TERM; a cure that is under way is waited for. HUP reads the config again."""
    from edgekeeper.cli.run import LISTEN, maker, start

    start(settings(ctx), settings(ctx).load_role("watch"), {"watch": maker("watch")}, LISTEN["watch"], _in_shadow if dry_run else lambda root: root)


@app.command()
def pause(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The watch.")],
    duration: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="For so long; until `watch resume` when not said.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; it is told with each cure that is held back.")] = "",
) -> None:
    """Hold a watch back: it goes on to decide and to tell, and cures nothing. A reboot ends it."""
    import time

    from edgekeeper.cli.output import say
    from edgekeeper.model.time import format_duration, parse_duration
    from edgekeeper.watch import pause as pauses

    run_dir = _known(ctx, name)
    try:
        seconds = parse_duration(duration) if duration is not None else None
    except ValueError as err:
        msg = f"--for: {err}"
        raise UsageError(msg) from None
    if seconds is not None and seconds < 1:
        msg = f"--for {duration}: a pause lasts a second at least"
        raise UsageError(msg)
    pauses.pause(pauses.pause_file(run_dir, name), time.time() + seconds if seconds is not None else None, reason)
    until = f"for {format_duration(seconds)}" if seconds is not None else f"until `edgekeeper watch resume {name}`, or a reboot"
    say(f"{name} cures nothing {until}; what it would have done is told in the journal")


@app.command()
def resume(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="The watch.")]) -> None:
    """End a pause: what is still wanted is cured at once."""
    from edgekeeper.cli.output import say
    from edgekeeper.watch import pause as pauses

    was = pauses.resume(pauses.pause_file(_known(ctx, name), name))
    say(f"{name} cures again" if was else f"{name} was not paused")


def _known(ctx: typer.Context, name: str) -> str:
    """The run_dir of a config that has a watch of this name."""
    loaded = settings(ctx).load_role("watch")
    names = [watch.name for watch in loaded.root.watch or ()]
    if name not in names:
        msg = f"{name!r} is no watch of {loaded.file}; it has {', '.join(names)}"
        raise UsageError(msg)
    return loaded.root.run_dir


def _in_shadow(root: Root) -> Root:
    return root.model_copy(update={"watch": tuple(watch.model_copy(update={"shadow": True}) for watch in root.watch or ())})
