"""``edgekeeper lb sessions``: who is on which server, who is pinned to a dead one, and their freeing.

Works on any HAProxy, with or without a config file of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.lb_find import config, find, names, places
from edgekeeper.cli.output import Cell, Format, Tone, complain, progress, progress_done, say, say_json, say_json_rows, table
from edgekeeper.errors import EdgekeeperError, MissingError, RefusedError, StepFailedError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.root import Root
    from edgekeeper.engines.haproxy.look import Picture
    from edgekeeper.engines.haproxy.pinned import Judge, Row, Tally
    from edgekeeper.kube.nodelease import NodeLease
    from edgekeeper.lb.free import Freed

_MANY_CLIENTS = 8


def sessions(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[BACKEND[/SERVER]...]", help="Only these; with --free, the servers to free (or all, as without any).")
    ] = None,
    socket: Annotated[
        str | None, typer.Option("--socket", metavar="PATH", help="Stats or master socket, or host:port; else edgekeeper's own HAProxy, else the usual places.")
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only sessions on a server that is DOWN or in MAINT; exit 1 when there are any.")] = False,
    free: Annotated[bool, typer.Option("--free", help="End the pinned sessions, one server at a time: shows the plan, and acts with --yes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Carry out the plan.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Sessions to list, the pinned and the oldest first; 0 lists all.")] = 50,
    self_test: Annotated[bool, typer.Option("--self-test", help="Prove on a private HAProxy that this version ends sessions of a DOWN server.")] = False,
    binary: Annotated[str | None, typer.Option("--binary", metavar="FILE", help="With --self-test: the program; else lb.engine.binary, else haproxy.")] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """Every established session of a running HAProxy, also in workers that reloads left behind.

    The sessions on a server that is DOWN or in MAINT are the next victims: their clients wait for an
    answer that never comes. Health checks do not reach them, reloads hide them. Healthy sessions are
    never touched.
    """
    import asyncio

    if yes and not free:
        msg = "--yes goes with --free; nothing was done"
        raise UsageError(msg)
    root = config(settings(ctx))
    if self_test:
        _self_test(binary or (root.lb.engine.binary if root is not None and root.lb is not None else "haproxy"), output)
        return
    picture, why_not = asyncio.run(find(places(socket, root), wants_sessions=free))
    leases, unseen = asyncio.run(_leases(root))
    known = {address: lease.name for lease in leases for address in lease.addresses} | names(root)
    view = _View(picture, known, targets or [], leases)
    for text in (*picture.blind, *why_not, *unseen):
        complain(f"not seen: {text}")
    if free:
        _free(view, output, yes=yes)
        return
    if output is Format.JSON:
        say_json_rows(_head(view), "sessions", (_row_json(row, view) for row in view.rows() if row.pinned or not pinned))
    else:
        _show(view, limit, only_pinned=pinned)
    if pinned and any(tally.pinned for tally in view.tallies()):
        raise typer.Exit(EdgekeeperError.exit_code)


class _View:
    """A picture with what the command line narrows it to."""

    def __init__(self, picture: Picture, names: Mapping[str, str], targets: list[str], leases: Sequence[NodeLease] = ()) -> None:
        from edgekeeper.engines.haproxy.pinned import Judge, twins

        self.picture = picture
        self.judge: Judge = Judge(picture.stats, twins(picture.stats))
        self.names = names
        self.leases = {address: lease for lease in leases for address in lease.addresses}
        self._tallies: list[Tally] | None = None
        self._targets = [] if targets == ["all"] else [_target(picture, text) for text in targets]

    def wanted(self, backend: str, server: str) -> bool:
        return not self._targets or (backend, server) in self._targets or (backend, "") in self._targets

    def rows(self) -> Iterator[Row]:
        from edgekeeper.engines.haproxy.pinned import rows

        found = rows(self.judge, self.picture.sessions, self.picture.workers, self.names)
        return (row for row in found if self.wanted(row.session.backend, row.session.server))

    def tallies(self) -> list[Tally]:
        from edgekeeper.engines.haproxy.pinned import tallies, tallies_by_count

        if self._tallies is None:
            stats = self.picture.stats
            # Where it may not be seen whose they are, how many there are still is.
            found = tallies(self.judge, stats, self.rows()) if self.picture.sessions else tallies_by_count(self.judge, stats)
            self._tallies = [tally for tally in found if self.wanted(tally.backend, tally.server)]
        return self._tallies

    def named(self) -> list[tuple[str, str]]:
        """The servers that were named one by one."""
        return [(backend, server) for backend, server in self._targets if server]

    def lease(self, row: Row) -> str:
        """How old the Lease of the client's node is, and when that is fatal; "-" for a client that is no node of the cluster."""
        from edgekeeper.kube.nodelease import NOT_READY_S, OLD_S

        found = self.leases.get(row.session.source_host)
        if found is None or found.age_s is None:
            return "-"
        late = found.age_s > OLD_S
        end = f", NotReady in {NOT_READY_S - found.age_s:.0f} s" if found.ready and found.age_s < NOT_READY_S else ", Ready" if found.ready else ", NotReady"
        return f"{found.age_s:.0f} s old{end if late else ''}"


async def _leases(root: Root | None) -> tuple[tuple[NodeLease, ...], list[str]]:
    """The nodes of the cluster with the ages of their Leases, where the config names one; and why they are not known."""
    if root is None or "kubernetes" not in root.model_fields_set:
        return (), []
    from edgekeeper.host.clock import SystemClock
    from edgekeeper.kube.client import connect
    from edgekeeper.kube.nodelease import node_leases

    try:
        async with connect(root.kubernetes) as api:
            return await node_leases(api, SystemClock(), patience_s=0.0), []
    except EdgekeeperError as err:
        return (), [f"the Leases of the cluster's nodes: {err}"]


def _target(picture: Picture, text: str) -> tuple[str, str]:
    """A backend, or backend/server, of the command line; UsageError when this HAProxy and its sessions do not know it."""
    backend, _, server = text.partition("/")
    known = {(s.backend, s.server) for s in picture.stats.servers} | {(s.backend, s.server) for found in picture.sessions.values() for s in found}
    if any(backend == b and server in ("", s) for b, s in known):
        return backend, server
    near = sorted({f"{b}/{s}" for b, s in known if b == backend}) or sorted({b for b, _ in known})
    msg = f"this HAProxy has no {text!r}; it has {', '.join(near[:12]) or 'no servers at all'}"
    raise UsageError(msg)


def _show(view: _View, limit: int, *, only_pinned: bool) -> None:
    import heapq

    from edgekeeper.engines.haproxy.pinned import order
    from edgekeeper.model.time import format_duration

    found = view.tallies()
    if only_pinned:
        found = [tally for tally in found if tally.pinned]
    if found:
        _show_tallies(found)
    many = sum(tally.pinned if only_pinned else tally.sessions for tally in found)
    shown = (row for row in view.rows() if row.pinned or not only_pinned)
    listed = sorted(shown, key=order) if limit == 0 else heapq.nsmallest(limit, shown, key=order)
    if listed:
        say("")
        table(
            ("CLIENT", "ADDRESS", "SERVER", "STATUS", "AGE", "IN", "OUT", "WORKER", *(["NODE'S LEASE"] if view.leases else [])),
            [
                (
                    row.client,
                    row.session.source,
                    f"{row.session.backend}/{row.session.server}",
                    Cell(row.status, Tone.BAD if row.pinned else _tone(row.status)),
                    "-" if row.session.age_s is None else format_duration(row.session.age_s),
                    _size(row.session.bytes_in),
                    _size(row.session.bytes_out),
                    f"{row.worker} (old)" if row.old else str(row.worker),
                    *([view.lease(row)] if view.leases else []),
                )
                for row in listed
            ],
        )
        if len(listed) < many:
            say(f"... and {many - len(listed)} more; --limit 0 lists all, -o json has them too")
    pinned = sum(tally.pinned for tally in found)
    if found:
        say("")
    say(
        f"{pinned} pinned; `edgekeeper lb sessions --free` shows what ending them would do"
        if pinned
        else "no session is pinned to a dead server"
        if many or only_pinned
        else "no session is established to any server"
    )


def _show_tallies(found: Sequence[Tally]) -> None:
    from edgekeeper.model.time import format_duration

    table(
        ("SERVER", "STATUS", "SINCE", "SESSIONS", "PINNED", "IN OLD WORKERS", "LAST CHECK"),
        [
            (
                tally.name,
                Cell(tally.status, _tone(tally.status)),
                "-" if tally.since_s is None else format_duration(tally.since_s),
                str(tally.sessions),
                Cell(str(tally.pinned), Tone.BAD if tally.pinned else Tone.PLAIN),
                "-" if tally.in_old is None else str(tally.in_old),
                tally.check,
            )
            for tally in found
        ],
    )


def _tone(status: str) -> Tone:
    if status.startswith(("DOWN", "MAINT")):
        return Tone.BAD
    return Tone.GOOD if status == "UP" else Tone.DOUBT


def _size(number: int | None) -> str:
    if number is None:
        return "-"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"


def _free(view: _View, output: Format, *, yes: bool) -> None:
    import asyncio

    for backend, server in view.named():
        if not view.judge.pins(backend, server):
            stat = view.judge.server(backend, server)
            status = stat.status if stat else "not in the running configuration"
            msg = f"{backend}/{server} is {status}: its sessions are not pinned and not ended; to empty it on purpose put it in MAINT first"
            raise RefusedError(msg)
    plan = [tally for tally in view.tallies() if tally.pinned]
    steps = _steps(view)
    if not yes or not plan:
        if output is Format.JSON:
            say_json({**_head(view), "plan": steps, "freed": []})
        elif not plan:
            say("no session is pinned to a dead server; there is nothing to do")
        else:
            _show_plan(view, plan, steps)
        if plan:
            raise typer.Exit(EdgekeeperError.exit_code)
        return
    done = asyncio.run(_act(view, plan, output))
    if output is Format.JSON:
        say_json({**_head(view), "plan": steps, "freed": [{**asdict(one), "cut": {str(pid): n for pid, n in one.cut.items()}} for one in done]})
    if len(done) < len(plan) or not all(one.ok for one in done):
        msg = f"{done[-1].left} sessions on {done[-1].backend}/{done[-1].server} are still there; the servers after it were not touched, look and try again"
        raise StepFailedError(msg)


async def _act(view: _View, plan: list[Tally], output: Format) -> list[Freed]:
    """One server at a time; what does not succeed ends it."""
    from edgekeeper.engines.haproxy.pinned import twins
    from edgekeeper.host.clock import SystemClock
    from edgekeeper.lb.free import free_one

    done: list[Freed] = []
    for tally in plan:
        progress(f"ending the sessions of {tally.name}")
        one = await free_one(view.picture.socket, tally.backend, tally.server, SystemClock(), same=twins(view.picture.stats))
        progress_done()
        done.append(one)
        for note in one.notes:
            if note not in view.picture.blind:
                complain(f"note: {note}")
        if output is Format.TEXT:
            say(one.why)
            if one.seen:
                names = view.names
                table(
                    ("CLIENT", "AGAIN ON", "AFTER"),
                    [
                        (names.get(s.host, s.host), s.server or Cell("not seen within 3 s", Tone.DOUBT), "-" if s.after_ms is None else f"{s.after_ms:.0f} ms")
                        for s in sorted(one.seen, key=lambda s: (s.after_ms is not None, s.host))[:50]
                    ],
                )
        if not one.ok:
            break
    return done


def _steps(view: _View) -> list[dict[str, Any]]:
    """The plan: what is done in which worker to how many sessions, and whose they are."""
    groups: dict[tuple[str, str, int, bool], Counter[str]] = {}
    for row in view.rows():
        if row.pinned:
            groups.setdefault((row.session.backend, row.session.server, row.worker, row.old), Counter())[row.client] += 1
    return [
        {
            "backend": backend,
            "server": server,
            "worker": worker,
            "old_worker": old,
            "sessions": clients.total(),
            "how": "shutdown session, each by its id" if old else f"shutdown sessions server {backend}/{server}",
            "clients": dict(clients.most_common()),
        }
        for (backend, server, worker, old), clients in sorted(groups.items(), key=lambda item: (item[0][:2], item[0][3]))
    ]


def _show_plan(view: _View, plan: Sequence[Tally], steps: Sequence[Mapping[str, Any]]) -> None:
    table(
        ("SERVER", "STATUS", "WORKER", "SESSIONS", "HOW", "CLIENTS"),
        [
            (
                f"{step['backend']}/{step['server']}",
                Cell(next((tally.status for tally in plan if tally.name == f"{step['backend']}/{step['server']}"), ""), Tone.BAD),
                f"{step['worker']} (old)" if step["old_worker"] else str(step["worker"]),
                str(step["sessions"]),
                step["how"],
                _few(step["clients"]),
            )
            for step in steps
        ],
    )
    for tally in plan:
        base = view.judge.server(tally.backend, tally.server)
        if base is not None and not any(s.usable for s in view.picture.stats.of(base.backend)):
            say(f"note: no server of {base.backend} is up; its clients will find nobody to go to")
    say(f"{sum(tally.pinned for tally in plan)} sessions would be ended, one server at a time; nothing was done, --yes does it")


def _few(clients: Mapping[str, int]) -> str:
    named = [f"{name} ({count})" if count > 1 else name for name, count in list(clients.items())[:_MANY_CLIENTS]]
    rest = len(clients) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest > 0 else "")


def _head(view: _View) -> dict[str, Any]:
    picture = view.picture
    return {
        "socket": picture.socket.path,
        "haproxy": {"version": picture.info.version, "pid": picture.info.pid},
        "workers": [{**asdict(w), "sessions": len(picture.sessions[w.pid]) if w.pid in picture.sessions else None} for w in picture.workers],
        "not_seen": list(picture.blind),
        "servers": [asdict(tally) for tally in view.tallies()],
    }


def _row_json(row: Row, view: _View) -> dict[str, Any]:
    s, lease = row.session, view.leases.get(row.session.source_host)
    return {
        "client": s.source,
        "host": s.source_host,
        "node": row.node,
        "frontend": s.frontend,
        "backend": s.backend,
        "server": s.server,
        "status": row.status,
        "age_s": s.age_s,
        "bytes_in": s.bytes_in,
        "bytes_out": s.bytes_out,
        "worker": row.worker,
        "old_worker": row.old,
        "pinned": row.pinned,
        "why": row.why,
        "node_lease_age_s": round(lease.age_s, 1) if lease is not None and lease.age_s is not None else None,
    }


def _self_test(binary: str, output: Format) -> None:
    import asyncio

    from edgekeeper.lb.canary import self_test
    from edgekeeper.model.verdict import Health

    verdict = asyncio.run(self_test(binary))
    if output is Format.JSON:
        say_json({"binary": binary, "verdict": verdict.health, "why": verdict.why, "evidence": verdict.evidence})
    else:
        say(f"{verdict.health}: {verdict.why}")
    if verdict.health is Health.UNKNOWN:
        raise typer.Exit(MissingError.exit_code)
    if not verdict.ok:
        raise typer.Exit(EdgekeeperError.exit_code)
