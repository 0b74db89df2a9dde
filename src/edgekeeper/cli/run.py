"""``edgekeeper run``: all roles of this node in one process, wired as each role's own ``run`` is."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.errors import UsageError

_ROLES = ("dns",)


def run(
    ctx: typer.Context,
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="The config; else --config, else the usual places.")] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="ROLES", help="Only these roles, separated by commas.")] = None,
) -> None:
    """Run all roles that are configured for this node, in one process.

    TERM stops them and their engines, QUIT leaves the engines for the next supervisor, HUP reads the config again.
    """
    if config is not None:
        ctx.find_root().obj = replace(settings(ctx), config=config)
    loaded = settings(ctx).load()
    wanted = tuple(only.split(",")) if only is not None else _ROLES
    for name in wanted:
        if name not in _ROLES:
            msg = f"--only {name!r}: this version runs {', '.join(_ROLES)}"
            raise UsageError(msg)
    if not any(getattr(loaded.root, name) is not None for name in wanted):
        msg = f"{loaded.file} configures no role to run; add dns:, `edgekeeper init` shows how"
        raise UsageError(msg)
    from edgekeeper.cli import dns

    dns.run(ctx)
