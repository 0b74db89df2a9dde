"""The expose role, wired: passes that a change or the time asks for, one writer among several, and what the role says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from edgekeeper.config.root import Root
from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose import pace as pacing
from edgekeeper.expose import report
from edgekeeper.expose.kinds import Origin, Remark
from edgekeeper.expose.parts import Parts, parts
from edgekeeper.expose.prover import Prover
from edgekeeper.expose.seen import Seen
from edgekeeper.expose.sync import Pass, setting_of
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import Ground, accepted, cancelled, kept_alive

if TYPE_CHECKING:
    from edgekeeper.expose.tell import Teller
    from edgekeeper.kube.lease import Election, Term

MEASURE_S: Final = 1.0

NOBODY_S: Final = 30.0
"""So long may the Lease be nobody's before it is an alarm: a dead holder's lasts half of it."""

OF_A_PASS: Final = ("sources", "mesh", "network", "targets", "deletions", "memory", "token")
"""Alarms of a pass: while another one holds the Lease they are its to raise."""

FIRST_VIEW_S: Final = 10.0
"""So long the first view of the sources may take before it is an alarm: a server that answers is asked for all of them within a moment."""


async def make(root: Root, ground: Ground) -> ExposeRole:
    """The role of a config that has it; MissingError or UsageError when the cluster's access is not there at all (nothing is asked yet)."""
    async with parts(root, ground.clock, ground.journal, remember=False):
        return ExposeRole(root, ground)


class ExposeRole:
    """``edgekeeper expose run``."""

    def __init__(self, root: Root, ground: Ground) -> None:
        self._started = self._root = root
        self._ground = ground
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self._parts: Parts | None = None
        self._prover: Prover | None = None
        self.alarms = Alarms("expose", ground.journal)
        self.seen = Seen()

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:  # noqa: ARG002 - there is no engine to stop or to leave
        """End it. A write that is under way is cut off; the next pass sees what became of it."""
        self._ended.set()

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return report.status(self.seen, self._parts, self._prover, self.alarms.raised, self._ground.clock)

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config: its parts are built anew."""
        root = accepted("expose", self._started, fresh, self.alarms, self._ground.journal)
        if root is None or root.expose is None:
            return
        same = (root.expose, root.kubernetes) == (self._root.expose, self._root.kubernetes)
        self._root = root
        if not same:
            self._changed.set()

    async def run(self) -> None:
        """Publish until ``end``."""
        measuring = asyncio.create_task(kept_alive("metrics", self._measure, lambda why: self.alarms.set("watcher metrics", why)))
        try:
            while not self._ended.is_set():
                self._changed.clear()
                work = asyncio.create_task(kept_alive("expose", self._work, lambda why: self.alarms.set("access", why)))
                waits = [asyncio.create_task(event.wait()) for event in (self._ended, self._changed)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                await cancelled([work, *waits])  # type: ignore[list-item]
        finally:
            await cancelled([measuring])

    # the work of one config ---------------------------------------------------------------

    async def _work(self) -> None:
        """The parts of the config as it is now, and passes with them, for ever."""
        ground, root = self._ground, self._root
        async with parts(root, ground.clock, ground.journal, counted=self._counted, told=self._wrote) as built:
            self._parts = built
            self._prover = Prover(built.expose, ground.clock, ground.journal)
            api, expose = built.api, built.expose
            teller: Teller | None = None
            if api is not None and expose.events:
                from edgekeeper.expose.tell import Teller  # noqa: PLC0415 - hosts of a file need no client of a cluster

                teller = Teller(api, ground.clock, prefix=expose.prefix, kind_of=built.source.kind_of)
            tasks = [asyncio.create_task(self._kept("sources", built.source.run)), asyncio.create_task(self._kept("proofs", self._prover.run))]
            try:
                await self._passes_by_one(built, teller)
            finally:
                self._parts = self._prover = None
                self.seen.leads = False
                await cancelled(tasks)

    async def _kept(self, name: str, work: Any) -> None:
        await kept_alive(name, work, partial(self.alarms.set, f"watcher {name}"))

    async def _passes_by_one(self, built: Parts, teller: Teller | None) -> None:
        """Passes by this process alone, or while it holds the Lease."""
        lease = built.expose.lease
        if lease is None or built.api is None:
            self.seen.leads = True
            await self._passes(built, teller, None)
            return
        from edgekeeper.kube.lease import Election  # noqa: PLC0415 - as above

        ground = self._ground
        election = Election(built.api, lease, self._root.kubernetes.namespace, ground.node, ground.clock)

        async def lead(term: Term) -> None:
            built.mesh.may = term.check
            self._says(leads=True, why=f"{ground.node} holds the Lease {lease} and writes")
            try:
                await self._passes(built, teller, term)
            finally:
                self._says(leads=False, why=f"{ground.node} does not hold the Lease {lease} any more; it writes nothing")

        following = asyncio.create_task(self._follow_lease(election))
        try:
            await election.lead(lead)
        finally:
            await cancelled([following])

    def _says(self, *, leads: bool, why: str) -> None:
        self.seen.leads = leads
        emit(Event.EXPOSE_LEADS, why, level=INFO)
        self._ground.journal.write(Entry("expose", Event.EXPOSE_LEADS, "lease", "act" if leads else "hold", why))

    async def _follow_lease(self, election: Election) -> None:
        """Say who holds the Lease; that nobody does is an alarm once it has lasted: a change of holder is none."""
        clock = self._ground.clock
        held = clock.monotonic()
        while True:
            self.seen.lease = election.why
            if election.leads or election.holder:
                held = clock.monotonic()
            self.alarms.set("lease", election.why if clock.monotonic() - held > NOBODY_S else None)
            if not self.seen.leads and election.holder not in {"", election.me}:
                self.seen.last = self.seen.at = None
                for name in OF_A_PASS:
                    self.alarms.set(name, None)
            await asyncio.sleep(MEASURE_S)

    async def _passes(self, built: Parts, teller: Teller | None, term: Term | None) -> None:
        """Pass after pass: at a change, when the time is over, or when the mesh takes calls again."""
        clock, expose = self._ground.clock, built.expose
        began = clock.monotonic()
        pace, first = pacing.begin(expose.every, expose.debounce, began), True
        change: asyncio.Task[None] | None = None
        telling = [asyncio.create_task(self._kept("events", teller.run))] if teller is not None else []
        try:
            while True:
                change = change or asyncio.create_task(built.source.changed())
                wait_s = pace.wait_s(clock.monotonic())
                if wait_s > 0:
                    done, _ = await asyncio.wait([change], timeout=wait_s)
                    if done:
                        change.result()
                        change, pace = None, pace.noticed(clock.monotonic())
                    continue
                now = clock.monotonic()
                snapshot = built.source.snapshot()
                if not snapshot.lists:  # nothing is known yet: not even a first view
                    self.alarms.set("sources", f"not known yet: {snapshot.why}" if now - began > FIRST_VIEW_S else None)
                    pace = pace.later(now, MEASURE_S)
                    continue
                self.alarms.set("sources", None if snapshot.whole else f"not known in full: {snapshot.why}; nothing is taken away until they are")
                saw, again_s = await self._pass(built, teller, term, first=first)
                first = not saw
                pace = pace.passed(now, clock.monotonic(), saw=saw, again_s=again_s)
        finally:
            await cancelled([*telling, *([change] if change is not None else [])])

    async def _pass(self, built: Parts, teller: Teller | None, term: Term | None, *, first: bool) -> tuple[bool, float | None]:
        """One pass with its alarms; whether it saw the mesh, and when the mesh wants to be asked again."""
        clock = self._ground.clock
        try:
            result = await built.sync.once(setting_of(built.expose), first=first, may=term.check if term is not None else _may)
        except EdgekeeperError as err:
            if term is not None:
                term.check()  # the end of one's term is no fault of the mesh
            self.alarms.set("mesh", f"{err}; what is published stays")
            emit(Event.EXPOSE_FAILED, f"{err}; nothing was changed", level=WARNING)
            return False, getattr(err, "again_s", None)
        self.seen.last, self.seen.at = result, clock.wall()
        self.alarms.set("mesh", next((one.why for one in result.outcomes if one.kind in {"not_allowed", "unauthenticated"}), None))
        self.alarms.set("network", "; ".join(built.sync.ground.remarks) or None)
        self.alarms.set("targets", "; ".join(result.lost) or None)
        self.alarms.set("deletions", result.plan.refused)
        if result.plan.refused is not None:
            self._ground.metrics.count("edgekeeper_expose_refused_deletions")
        self.alarms.set("memory", built.sync.doubt)
        self.alarms.set("token", built.token.why or None)
        if teller is not None:
            teller.remark([*result.plan.remarks, *_remarks(result)])
            teller.status(_by_origin(result), built.source.status_of)
            self.seen.untold = teller.untold
        return True, result.again_s

    # what is told -------------------------------------------------------------------------

    def _wrote(self, outcome: Any) -> None:
        self._ground.metrics.count("edgekeeper_expose_writes", {"kind": outcome.action.kind, "result": outcome.kind or "done"})
        if self._prover is not None and outcome.done:
            if outcome.action.kind in {"disable", "delete"}:
                self._prover.forget(outcome.action.host)
            else:
                self._prover.wrote(outcome.action.host)

    def _counted(self, method: str, path: str, status: int) -> None:  # noqa: ARG002 - the kind of call is no label: there are many
        self.seen.calls += 1
        self._ground.metrics.count("edgekeeper_expose_api_calls", {"method": method, "status": str(status)})

    async def _measure(self) -> None:
        while True:
            report.measure(self.seen, self._prover, self.alarms.raised, self._ground.metrics)
            await asyncio.sleep(MEASURE_S)


def _may() -> None:
    """There is one edgekeeper only: it may always write."""


_REASONS = {"unknown_domain": "DomainUnknown", "taken": "Conflict", "invalid": "Refused", "no_cluster": "ProxyOffline"}


def _remarks(result: Pass) -> list[Remark]:
    """What the mesh's refusals mean for who owns an object."""
    out: list[Remark] = []
    for one in result.outcomes:
        reason, wish = _REASONS.get(one.kind), one.action.wish
        if reason is not None and wish is not None:
            out.append(Remark(wish.origin, reason, f"{one.action.host}: {one.why}", host=one.action.host))
        elif one.done and wish is not None and one.action.kind in {"create", "adopt", "migrate"}:
            out.append(Remark(wish.origin, "Published", f"{one.action.host} is published", warning=False, host=one.action.host))
    return out


def _by_origin(result: Pass) -> Mapping[Origin, Mapping[str, str]]:
    """The word for each host, by the object that wants it."""
    out: dict[Origin, dict[str, str]] = {}
    states = result.states()
    for wish in result.plan.wishes.values():
        state = states.get(wish.host)
        if state is not None:
            out.setdefault(wish.origin, {})[wish.host] = state[0]
    return out
