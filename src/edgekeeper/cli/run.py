"""``edgekeeper run``: all roles of this node in one process; and how each role's own ``run`` is started."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import Settings, settings
from edgekeeper.errors import UsageError

if TYPE_CHECKING:
    from edgekeeper.config.load import Loaded
    from edgekeeper.config.root import Root
    from edgekeeper.runtime import Ground, Role

    Maker = Callable[[Root, Ground], Awaitable[Role]]

ROLES = ("dns", "vip", "lb", "watch", "expose", "probe")
"""The sections that are roles; how each is made stands in its own folder, and is imported only when it is configured."""

LISTEN = {
    "dns": "127.0.0.1:8084",
    "vip": "127.0.0.1:8085",
    "lb": "127.0.0.1:8086",
    "watch": "127.0.0.1:8087",
    "expose": "127.0.0.1:8088",
    "probe": "127.0.0.1:8089",
}
"""Where a role that runs alone serves health, status and metrics when the config does not say."""

LISTEN_TOGETHER = "127.0.0.1:8084"
"""Where all of them do."""


_ROOMS = {"probe": "meter"}
"""Where a role is made, when that is not the folder of its name: `probe/` asks one question, and is below all roles."""


def room(role: str) -> str:
    """The package that a role is made in."""
    return f"edgekeeper.{_ROOMS.get(role, role)}"


def maker(role: str) -> Maker:
    """How a role is made of a config."""
    made: Maker = importlib.import_module(f"{room(role)}.role").make
    return made


def known_roles() -> tuple[str, ...]:
    """The roles that this version can run."""
    from edgekeeper.config.root import Root

    return tuple(role for role in ROLES if role in Root.model_fields)


def configured(root: Root) -> tuple[str, ...]:
    """The roles that a config has."""
    return tuple(role for role in ROLES if getattr(root, role, None) is not None)


def start(chosen: Settings, loaded: Loaded, makers: Mapping[str, Maker], listen: str, adjust: Callable[[Root], Root] = lambda root: root) -> None:
    """Run roles until they are told to end; LockHeldError when one of them runs elsewhere on this machine already.

    ``adjust`` is what the command line changes in the config, now and each time that it is read again.
    """
    import asyncio
    from contextlib import ExitStack

    from edgekeeper import runtime
    from edgekeeper.host.clock import SystemClock
    from edgekeeper.host.journal import FileJournal
    from edgekeeper.ops.metrics import Metrics

    node = chosen.this_node(loaded)
    chosen.start_logging(node)
    root, clock, metrics = adjust(loaded.root), SystemClock(), Metrics()
    with ExitStack() as held:
        folders = {role: held.enter_context(runtime.alone(root.run_dir, role, root.state_dir)) for role in makers}
        journal = FileJournal(root.state_dir, node, clock)

        def post(role: str, make: Maker) -> runtime.Post:
            ground = runtime.Ground(node, folders[role], clock, journal, metrics)
            return runtime.Post(role, lambda fresh: make(fresh, ground), first=role == "vip")

        async def work() -> None:
            posts = [post(role, make) for role, make in makers.items()]
            reread = lambda: adjust(chosen.load().root)  # noqa: E731
            await runtime.Runtime(posts, root, node, clock, journal, metrics, reread=reread, listen=listen).run()

        asyncio.run(work())


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
    chosen = settings(ctx)
    loaded = chosen.load()
    known = known_roles()
    wanted = tuple(only.split(",")) if only is not None else known
    for name in wanted:
        if name not in known:
            msg = f"--only {name!r}: this version runs {', '.join(known)}"
            raise UsageError(msg)
    there = configured(loaded.root)
    roles = [role for role in there if role in wanted]
    if not roles:
        has = f"none of {', '.join(wanted)}" if only is not None and there else "no role to run"
        msg = f"{loaded.file} configures {has}; add {wanted[0]}:, `edgekeeper init` shows how"
        raise UsageError(msg)
    start(chosen, loaded, {role: maker(role) for role in roles}, LISTEN_TOGETHER)
