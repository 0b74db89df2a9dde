"""One writer among several, by a Lease of the cluster: who leads works, the others wait. What is decided is in ``election``."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from typing_extensions import override

from edgekeeper.errors import EdgekeeperError, LockHeldError
from edgekeeper.kube import election
from edgekeeper.kube.client import Api
from edgekeeper.kube.election import ABSENT, Read, Record, Rest, Rules, State, Write, Yield
from edgekeeper.kube.errors import Absent, Conflict, Unreachable
from edgekeeper.kube.objects import Lease, LeaseSpec, ObjectMeta, meta
from edgekeeper.log import ERROR, WARNING, Event, emit
from edgekeeper.model.text import printable
from edgekeeper.ports import Clock

RELEASE_S: Final = 2.0
"""How long an orderly end waits for the release to be acknowledged; without it the next leads when the Lease is over."""

SILENT_S: Final = 1.0
"""Who waited for so long, and could not any longer, asks another server next, if there is one."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)

Work = Callable[["Term"], Awaitable[None]]


class TermOverError(LockHeldError):
    """What was about to be done needs the lead, and the lead is lost."""


class Term:
    """The time in which this process leads. It grows with each renewal; once over it stays over, and the next one is another.

    It is counted by CLOCK_BOOTTIME from before the last acknowledged renewal was sent, so one who was stopped, or whose machine slept, sees the
    truth with the first instruction after it.
    """

    def __init__(self, election: Election) -> None:
        self._of: Election | None = election

    def left_s(self) -> float:
        """Seconds in which something may still be begun; 0.0 when the term is over."""
        return max(self._of.ends() - self._of.now(), 0.0) if self._of is not None else 0.0

    def last_s(self) -> float:
        """Seconds before which nobody else can lead, so the deadline of an act that is begun now; 0.0 when the term is over."""
        return max(self._of.others() - self._of.now(), 0.0) if self._of is not None and self.left_s() else 0.0

    def check(self) -> None:
        """Ask right before each write: TermOverError (a LockHeldError) when the term is over; then nothing may be done."""
        if not self.left_s():
            msg = "the lead is lost, so this is not done here; whoever leads now does it"
            raise TermOverError(msg)

    def end(self) -> None:
        """It is over, whatever the time says."""
        self._of = None


class Election:
    """One candidate for one Lease. ``me`` names it for people; a word of chance is added, so that a process started anew is another candidate."""

    def __init__(
        self, api: Api, name: str, namespace: str, me: str, clock: Clock, *, lease_s: float = 15.0, renew_s: float = 10.0, retry_s: float = 2.0
    ) -> None:
        self.api, self.name, self.namespace = api, name, namespace
        self.rules = Rules(f"{me}_{secrets.token_hex(4)}", lease_s, renew_s, retry_s)
        self._clock = clock
        self._state = State()
        self._last: Lease | None = None
        self._claimed = False
        self._error: EdgekeeperError | None = None
        self._term: Term | None = None
        self._busy = False

    @property
    def me(self) -> str:
        """The name of this candidate in the Lease."""
        return self.rules.me

    @property
    def holder(self) -> str:
        """Who holds the Lease as it was last read; "" when nobody does, or it was never read."""
        return printable(self._state.record.holder, 200) if self._state.record is not None else ""

    @property
    def leads(self) -> bool:
        """Whether this process leads at this moment."""
        return self._term is not None and self._term.left_s() > 0

    @property
    def why(self) -> str:
        """The last that is known of the Lease, as a sentence."""
        return self._state.why

    def now(self) -> float:
        """The time that terms are counted in."""
        return self._clock.moment().boot

    def ends(self) -> float:
        """When the term is over unless it is renewed."""
        return election.ends(self.rules, self._state)

    def others(self) -> float:
        """When others may lead, unless the term is renewed."""
        return election.others(self.rules, self._state)

    async def lead(self, work: Work, *, wait_s: float | None = None, take: bool = False) -> None:
        """Run ``work(term)`` whenever this process leads, for ever: it is cancelled when the lead is lost, and begun anew with the next term.

        When ``work`` ends of itself the Lease is released, so that the next leads at once, and ``lead`` ends as it did; so it does when it is
        cancelled. ``wait_s``: LockHeldError, or why the Lease cannot be had, when this process does not lead within so many seconds.
        ``take``: a person wants it, so it is taken from who holds it, who may end in order first; ``wait_s`` should be twice a Lease then.
        """
        if self._busy:
            msg = f"{self} is led from twice"
            raise RuntimeError(msg)
        self._busy = True
        self._state = election.yielded(self._state, self.now(), self.why)  # and ask at once, however lately that was done
        try:
            done = False
            while not done:
                if take:
                    await self._take(wait_s)
                await self._campaign(wait_s)
                done = await self._reign(work)
        finally:
            self._busy = False
            await self._release()

    async def _take(self, wait_s: float | None) -> None:
        """Write our name over the holder's, and keep it there until nobody else's term can last: none of its renewals is taken from then on."""
        until = None if wait_s is None else self.now() + wait_s
        await self._carry_out(Read(), until)
        claim = election.taken(self.rules, self._state, self._clock.wall())
        if claim is None:
            return
        held_s, holder = max(self.rules.lease_s, float(self._state.record.duration_s if self._state.record is not None else 0)), self.holder
        await self._carry_out(claim, until)
        over = self.now() + held_s
        while self._state.term is not None and (now := self.now()) < over:
            if until is not None and over > until:
                break
            match self._step(now):
                case Rest(when):
                    await asyncio.sleep(min(when, over) - now)
                case Yield(why):
                    self._state = election.yielded(self._state, now, why)
                case Read() | Write() as step:
                    await self._carry_out(step, self.ends())
        if self._state.term is None or self.now() < over:
            self._state = election.yielded(self._state, self.now(), self.why)
            msg = f"{self} could not be taken from {holder}: {self.why}; nothing is done here"
            raise self._error or LockHeldError(msg)

    async def _campaign(self, wait_s: float | None) -> None:
        until = None if wait_s is None else self.now() + wait_s
        while True:
            now = self.now()
            if self._state.term is not None and now < self.ends():
                return
            if until is not None and now >= until:
                raise self._error or LockHeldError(f"{self}: {self.why}; nothing is done here")
            match self._step(now):
                case Rest(when):
                    await asyncio.sleep((when if until is None else min(when, until)) - now)
                case Yield(why):
                    self._state = election.yielded(self._state, now, why)
                case Read() | Write() as step:
                    await self._carry_out(step, until)

    async def _reign(self, work: Work) -> bool:
        """Whether the work is done; False when the lead was lost."""
        self._term = term = Term(self)
        emit(Event.LEASE_GAINED, f"{self} is ours; {self.rules.me} leads", lease=self.name)
        task = asyncio.ensure_future(work(term))
        try:
            while not task.done():
                now = self.now()
                match self._step(now):
                    case Rest(when):
                        await asyncio.wait({task}, timeout=when - now)
                    case Yield(why):
                        await self._stop(task, term, why)
                        return False
                    case Read() | Write() as step:
                        await self._carry_out(step, self.ends())
        finally:
            term.end()
            if not task.done():  # lead() itself is cancelled
                task.cancel()
                await asyncio.wait({task})
        try:
            task.result()
        except TermOverError as err:  # it noticed before we did
            await self._stop(task, term, str(err))
            return False
        return True

    async def _stop(self, task: asyncio.Future[None], term: Term, why: str) -> None:
        """End the work; until it has ended nothing else happens here, least of all a term beside it."""
        term.end()
        emit(Event.LEASE_LOST, f"{self} is lost: {why}; the work is stopped", level=WARNING, lease=self.name)
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=self.rules.lease_s - self.rules.renew_s)
            if not task.done():
                emit(Event.LEASE_LOST, f"{self} is lost and the work has not ended yet; it is told again", level=ERROR, lease=self.name)
        self._state = election.yielded(self._state, self.now(), why)
        with contextlib.suppress(asyncio.CancelledError, EdgekeeperError):  # what the work was told, or met, at its end
            task.result()

    async def _release(self) -> None:
        if not self._claimed:
            return
        self._state = election.yielded(self._state, self.now(), self.why)
        try:
            async with asyncio.timeout(RELEASE_S):
                while (step := election.release(self.rules, self._state, self._clock.wall())) is not None:
                    await self._carry_out(step, None)
                    if self._error is not None:
                        return
        except TimeoutError:
            return
        self._claimed = False
        emit(Event.LEASE_RELEASED, f"{self} is given up by {self.rules.me}", lease=self.name)

    def _step(self, now: float) -> election.Step:
        return election.step(self.rules, self._state, now, self._clock.wall())

    async def _carry_out(self, step: Read | Write, until: float | None) -> None:
        """Ask the API, once; what comes of it is in the state. ``until``: when the answer is worth nothing any more."""
        sent = self.now()
        try:
            async with asyncio.timeout(None if until is None else max(until - sent, 0.0)):
                if isinstance(step, Read):
                    self._last = await self.api.get(Lease, self.name, namespace=self.namespace)
                    self._state = election.read(self.rules, self._state, _record(self._last), sent, self.now())
                else:
                    self._claimed = True
                    self._last = await self._write(step.record)
                    self._state = election.wrote(self.rules, _record(self._last), sent, self.now())
        except TimeoutError:
            self._failed(Unreachable(f"{self.api.server} did not answer in time"), sent)
            if self.now() - sent >= SILENT_S:
                await self.api.pass_on()
        except (Conflict, Absent) as err:
            if isinstance(err, Absent) and not (isinstance(step, Write) and step.record.version):
                self._failed(err, sent)
            else:
                self._state = election.refused(self.rules, self._state, self.now())
        except EdgekeeperError as err:
            self._failed(err, sent)
        except asyncio.CancelledError:  # what was sent may be done all the same
            self._state = election.failed(self.rules, self._state, self.why, sent, self.now())
            raise
        else:
            self._error = None

    async def _write(self, record: Record) -> Lease:
        spec = LeaseSpec(
            holderIdentity=record.holder,
            leaseDurationSeconds=record.duration_s,
            acquireTime=_time(record.acquired),
            renewTime=_time(record.renewed),
            leaseTransitions=record.transitions,
        )
        if self._last is None or not record.version:
            return await self.api.create(Lease(metadata=ObjectMeta(name=self.name, namespace=self.namespace), spec=spec))
        return await self.api.replace(Lease(metadata=self._last.metadata, spec=spec))

    def _failed(self, err: EdgekeeperError, sent: float) -> None:
        if type(err) is not type(self._error):
            emit(Event.LEASE_UNREACHABLE, f"{self}: {err}; it is asked again every {self.rules.retry_s:g} s", level=WARNING, lease=self.name)
        self._error = err
        self._state = election.failed(self.rules, self._state, str(err), sent, self.now())

    @override
    def __str__(self) -> str:
        return f"Lease {self.namespace}/{self.name}"


def _record(lease: Lease | None) -> Record:
    if lease is None:
        return ABSENT
    spec = lease.spec or LeaseSpec()
    return Record(
        spec.holderIdentity or "",
        spec.leaseDurationSeconds or 0,
        _micro(spec.acquireTime),
        _micro(spec.renewTime),
        spec.leaseTransitions or 0,
        meta(lease).resourceVersion or "",
    )


def _micro(when: Any) -> int:
    return (when - _EPOCH) // _US if isinstance(when, datetime) else 0


def _time(micro: int) -> datetime:
    return _EPOCH + micro * _US
