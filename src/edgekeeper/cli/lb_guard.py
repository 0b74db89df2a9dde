"""``edgekeeper lb guard``: free the pinned sessions of a HAProxy that edgekeeper does not own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import say
from edgekeeper.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.root import Root
    from edgekeeper.lb.guard import Settings

RUN_DIR, STATE_DIR = "/run/edgekeeper", "/var/lib/edgekeeper"


def guard(
    ctx: typer.Context,
    socket: Annotated[str, typer.Option("--socket", metavar="PATH", help="HAProxy's stats socket of level admin, or its master socket.")],
    hold: Annotated[str, typer.Option("--hold", help="How long a server must be DOWN or in MAINT before its sessions are ended.")] = "2s",
    probe: Annotated[
        str,
        typer.Option("--probe", metavar="on|off|PATH", help="Ask the servers for PATH (on: /readyz), and mark those that take connections and never answer."),
    ] = "on",
    tls: Annotated[bool, typer.Option("--tls/--no-tls", help="Whether the probe speaks TLS; any certificate is taken.")] = True,
    backend: Annotated[
        list[str] | None, typer.Option("--backend", metavar="NAME", help="Only this backend; may be repeated. Else all; the probe asks servers on port 6443.")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", metavar="N/TIME", help="At most N acts in any TIME, over restarts.")] = "6/10m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    state_dir: Annotated[
        str | None, typer.Option("--state-dir", metavar="DIR", help="Where marks, budget and journal are kept; else the config's, else /var/lib/edgekeeper.")
    ] = None,
    release_all: Annotated[bool, typer.Option("--release-all", help="Take every server that a guard has marked out of MAINT, and end.")] = False,
) -> None:
    """Watch a HAProxy that edgekeeper does not own, and free the clients that it leaves on dead servers.

    Sessions of a server that stays DOWN or in MAINT are ended. A server that passes its check but gives the probe no byte is put into
    MAINT, never the last usable one and never more than one of three, and released when it answers again. TERM ends it; what it marked
    stays in MAINT until the next guard, or --release-all. Needs no config.
    """
    import asyncio
    import hashlib

    from edgekeeper import runtime
    from edgekeeper.host.clock import SystemClock
    from edgekeeper.host.files import make_folder
    from edgekeeper.host.journal import FileJournal
    from edgekeeper.lb.guard import Guard

    if release_all and dry_run:
        msg = "--release-all does not go with --dry-run; nothing was done, the file marks.json in the guard's folder of --state-dir says what is marked"
        raise UsageError(msg)
    told = _settings(socket, hold, probe, budget, tls=tls, backends=tuple(backend or ()), dry_run=dry_run)
    root = _config(ctx)
    node = _node(ctx, root)
    settings(ctx).start_logging(node)
    state = state_dir or (root.state_dir if root is not None else STATE_DIR)
    run_dir = state if state_dir is not None else (root.run_dir if root is not None else RUN_DIR)
    role = f"lb-guard-{hashlib.sha256(_same(socket).encode()).hexdigest()[:8]}"  # one guard a HAProxy, several HAProxies a machine
    make_folder(state, 0o755, ours=False)
    with runtime.alone(run_dir, role, state):
        clock = SystemClock()
        watcher = Guard(told, make_folder(Path(state) / role), Path(state), clock, FileJournal(state, node, clock))
        if release_all:
            said = asyncio.run(watcher.release_all())
            say(*(said or ("no server is marked",)))
        else:
            asyncio.run(watcher.run())


def _settings(socket: str, hold: str, probe: str, budget: str, *, tls: bool, backends: tuple[str, ...], dry_run: bool) -> Settings:
    from edgekeeper.engines.haproxy.admin import word
    from edgekeeper.lb.decide import Rules
    from edgekeeper.lb.guard import Settings
    from edgekeeper.model.time import parse_duration

    try:
        hold_s = parse_duration(hold)
    except ValueError as err:
        msg = f"--hold: {err}"
        raise UsageError(msg) from None
    number, slash, window = budget.partition("/")
    try:
        if not (slash and number.isascii() and number.isdigit() and len(number) < 7):
            raise ValueError(budget)  # noqa: TRY301 - one sentence for all that is no budget
        window_s = parse_duration(window)
    except ValueError:
        msg = f"--budget {budget!r} is not a number of acts in a time; write it as 6/10m"
        raise UsageError(msg) from None
    path = {"on": "/readyz", "off": None}.get(probe, probe)
    if path is not None and not (path.startswith("/") and path.isascii() and path.isprintable() and " " not in path):
        msg = f"--probe {probe!r} is neither on, off nor a path that begins with a slash; write --probe /readyz"
        raise UsageError(msg)
    return Settings(socket, Rules(hold_s), path, tls, tuple(word(name) for name in backends), int(number), window_s, dry_run)


def _config(ctx: typer.Context) -> Root | None:
    """The config, when one was named or stands in a usual place: a guard needs none."""
    chosen = settings(ctx)
    try:
        return chosen.load().root
    except ConfigError:
        raise
    except UsageError:
        if chosen.config is not None:
            raise
        return None


def _node(ctx: typer.Context, root: Root | None) -> str:
    import socket

    chosen = settings(ctx).node
    return chosen or (root.node if root is not None else None) or socket.gethostname()


def _same(path: str) -> str:
    """One name for one socket, however it is written."""
    return str(Path(path).resolve()) if path.startswith("/") or "/" in path else path
