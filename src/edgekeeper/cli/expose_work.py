"""What the commands of ``edgekeeper expose`` do, each in one event loop, with the parts that the role has too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import TYPE_CHECKING, TypeVar

import typer

from edgekeeper.cli.context import settings
from edgekeeper.config.load import Loaded
from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.expose import mark, relinquish
from edgekeeper.expose.apply import apply
from edgekeeper.expose.names import canonical_host
from edgekeeper.expose.parts import Parts, parts
from edgekeeper.expose.proof import Proof, prove
from edgekeeper.expose.sync import Pass, setting_of
from edgekeeper.host.clock import SystemClock
from edgekeeper.host.journal import FileJournal
from edgekeeper.runtime import cancelled

if TYPE_CHECKING:
    from edgekeeper.config.expose import Expose
    from edgekeeper.kube.lease import Term

T = TypeVar("T")

SEEN_S = 30.0
"""How long a command waits for the first full view of the sources."""

LEASE_S = 20.0
"""How long a command waits for the Lease: longer than a dead holder's lasts."""


def looked(ctx: typer.Context, loaded: Loaded, *, force: bool = False, hosts: frozenset[str] | None = None, adopt: Collection[str] = ()) -> Pass:
    """What a pass would do."""

    async def work() -> Pass:
        async with _seen(ctx, loaded, remember=False) as built:
            found = await built.sync.look(setting_of(built.expose, force=force, adopt=adopt))
            return found.only(hosts) if hosts is not None else found

    return _run(work)


def applied(ctx: typer.Context, loaded: Loaded, *, force: bool = False, hosts: frozenset[str] | None = None, adopt: Collection[str] = ()) -> Pass:
    """One pass, by the one who may write."""

    async def work() -> Pass:
        async with _seen(ctx, loaded, remember=True) as built:

            async def once(may: Callable[[], None]) -> Pass:
                first = built.sync.kept.brake.passes == 0
                return await built.sync.once(setting_of(built.expose, force=force, adopt=adopt), first=first, may=may, hosts=hosts)

            return await _as_writer(ctx, loaded, built, once, take=force or bool(adopt))

    return _run(work)


def relinquished(ctx: typer.Context, loaded: Loaded, hosts: frozenset[str], *, really: bool) -> list[str]:
    """The hosts whose mark was (or would be) taken off; their services have the host as their name then."""

    async def work() -> list[str]:
        async with _seen(ctx, loaded, remember=really) as built:
            actions = relinquish.relinquished(await built.mesh.services(), hosts, setting_of(built.expose))
            if really:

                async def once(may: Callable[[], None]) -> None:
                    done = await apply(actions, built.mesh, built.sync.journal, concurrency=1, may=may)
                    failed = next((one for one in done if not one.done), None)
                    if failed is not None:
                        msg = f"{failed.action.host}: {failed.why}"
                        raise StepFailedError(msg)

                await _as_writer(ctx, loaded, built, once, take=True)
            return [action.host for action in actions]

    return _run(work)


def verified(ctx: typer.Context, loaded: Loaded, hosts: frozenset[str], echo: str | None) -> list[Proof]:
    """The proofs of these hosts, or of all that are published by us and enabled."""

    async def work() -> list[Proof]:
        expose = loaded.root.expose
        assert expose is not None  # noqa: S101 - load_role has checked it
        chosen = sorted(hosts) if hosts else await _published(ctx, loaded, expose)
        limit = asyncio.Semaphore(8)

        async def one(host: str) -> Proof:
            async with limit:
                return await prove(host, expose.prove.addresses, 443, expose.prove.timeout, echo or expose.prove.echo_path)

        return list(await asyncio.gather(*(one(host) for host in chosen)))

    return _run(work)


async def _published(ctx: typer.Context, loaded: Loaded, expose: Expose) -> list[str]:
    async with _opened(ctx, loaded, remember=False) as built:
        out = []
        for service in await built.mesh.services():
            own = mark.read(service.name)
            if own is not None and own.ours(expose.owner, expose.cluster) and service.raw.get("enabled", True):
                out.append(canonical_host(service.host))
    if not out:
        msg = f"nothing is published by {expose.owner}/{expose.cluster}; name hosts to ask for them all the same"
        raise MissingError(msg)
    return sorted(out)


def _run(work: Callable[[], Awaitable[T]]) -> T:
    """Run it in an event loop. Its result is no result of a task: ``asyncio.run`` writes a task out at its end (60 MiB of text for 10,000 hosts), and throws that away."""
    out: list[T] = []

    async def main() -> None:
        out.append(await work())

    asyncio.run(main())
    return out[0]


@contextlib.asynccontextmanager
async def _opened(ctx: typer.Context, loaded: Loaded, *, remember: bool) -> AsyncIterator[Parts]:
    chosen, clock = settings(ctx), SystemClock()
    node = chosen.this_node(loaded)
    async with parts(loaded.root, clock, FileJournal(loaded.root.state_dir, node, clock), remember=remember) as built:
        yield built


@contextlib.asynccontextmanager
async def _seen(ctx: typer.Context, loaded: Loaded, *, remember: bool) -> AsyncIterator[Parts]:
    """The parts, once the sources are known in full."""
    async with _opened(ctx, loaded, remember=remember) as built:
        following = asyncio.create_task(built.source.run())
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SEEN_S):
                    while not built.source.snapshot().whole:
                        await built.source.changed()
            snapshot = built.source.snapshot()
            if not snapshot.whole:
                msg = f"the sources are not known in full: {snapshot.why or 'no answer'}; nothing was done"
                raise MissingError(msg)
            yield built
        finally:
            await cancelled([following])


async def _as_writer(ctx: typer.Context, loaded: Loaded, built: Parts, once: Callable[[Callable[[], None]], Awaitable[T]], *, take: bool) -> T:
    """Do it while holding the Lease, where there is one; LockHeldError says who else does.

    ``take``: what a person has asked for is done here although `expose run` leads, which waits meanwhile and goes on afterwards.
    """
    lease = built.expose.lease
    if lease is None or built.api is None:
        return await once(_may)
    from edgekeeper.kube.lease import Election

    chosen = settings(ctx)
    election = Election(built.api, lease, loaded.root.kubernetes.namespace, f"{chosen.this_node(loaded)}-command", SystemClock())
    done: list[T] = []

    async def work(term: Term) -> None:
        built.mesh.may = term.check
        done.append(await once(term.check))

    await election.lead(work, wait_s=2 * LEASE_S if take else LEASE_S, take=take)
    return done[0]


def _may() -> None:
    """There is one edgekeeper only: it may always write."""
