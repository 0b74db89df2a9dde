"""One watch at work: lines, answers and time are fed to ``decide``, and what it says is carried out, told and journaled."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host import budgets
from edgekeeper.log import ERROR, INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.runtime import kept_alive
from edgekeeper.watch import memory
from edgekeeper.watch.decide import begin, decide, due, hindrance
from edgekeeper.watch.parts import Parts, Shared
from edgekeeper.watch.pulse import Pulse
from edgekeeper.watch.record import EVENTS, act_data, entry_data
from edgekeeper.watch.seams import Answer, Asker, Cure, Sight, Source
from edgekeeper.watch.siblings import Place
from edgekeeper.watch.state import Answered, Apply, Ask, Cured, Decision, Former, Hit, Look, Outlook, Phase, Refused, Started, State, Tick
from edgekeeper.watch.state import Event as Happening

OUTSTANDING = 8
"""Rounds under way at the same time."""

CURE_MOST_S = 700.0
"""A cure has its own deadline; this one is for a cure that forgets it."""

STOOD_S = 5.0
"""Longer than a locked store makes a spending wait (2 s): then this process was frozen, and what it had decided on is no longer so."""

BLIND_AFTER_S = 3.0
"""A log that comes back within this time was never lost sight of: a restart of the service takes as long."""

SPENT_EVERY_S = 5.0
"""How often the store of budgets is read for the status; an act of our own is known at once."""

HELD_EVERY_S = 5.0
"""How often the reason for which a cure is held back may be told anew: two that alternate must not fill the log."""

SHORTEST_WAIT_S = 0.005
_NUMBERS = re.compile(r"[0-9.]+")
ROLE = "watch"


class Patrol:
    """One watch from its begin to its end."""

    def __init__(self, parts: Parts, shared: Shared) -> None:
        self.parts = parts
        self.answer: Answer | None = None
        self.sight = Sight(seeing=parts.source is None, why="it is being followed" if parts.source else "no log is followed")
        self.cures = 0
        self.why = "it begins"
        self._shared = shared
        self._clock = shared.clock
        self._file = memory.file(shared.folder, parts.name)
        self._ended = False
        self._begin()
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking = 0
        self._pulse = Pulse()
        self._looking = False
        self._applying: asyncio.Task[None] | None = None
        self.begun = False  # the cure that is under way was counted, and so is told and done
        self._last_line = self._unseen = self._told_held = self._clock.monotonic()
        self.blind = False
        self._since_start: float | None = None
        self._spent_read: tuple[float, tuple[float, ...]] | None = None

    def _begin(self) -> None:
        former = memory.recall(self._file)
        self.ours = former is not None and former.ours
        now, moment = self._clock.monotonic(), self._clock.moment()
        if former is None:
            self.state = begin(now, self.parts.policy)
            return
        age_s = moment.boot - former.since_s if former.boot_id == moment.boot_id else 0.0
        self.state = begin(now, self.parts.policy, Former(now - max(age_s, 0.0), former.line, former.curing, former.step))

    async def run(self) -> None:
        """Watch for ever; when cancelled, a cure that is under way is waited for: half of one is worse than none."""
        self._ended = False
        if not self._tasks:
            self._begin()  # once more: a former watch of this name may have ended its cure meanwhile
        if self._shared.place is not None:
            self._shared.place.rests()
            self._shared.place.wakes(awake=self.state.phase is not Phase.QUIET)
        if self.parts.source is not None:
            self._spawn(self._follow(self.parts.source))
        if self.state.phase is not Phase.QUIET:
            self._tell(Event.WATCH_ARMED, "hold", WARNING, f"{self._told_again()}: {self.state.line or 'failed rounds of the probe'}")
        try:
            while True:
                self._wake.clear()
                self._listen()
                wait = due(self.state, self.parts.policy) - self._clock.monotonic()
                if wait <= 0:
                    self._feed(Tick())
                    await asyncio.sleep(0)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(max(wait, SHORTEST_WAIT_S), 1.0)):
                        await self._wake.wait()
        finally:
            self._ended = True
            for task in self._tasks:
                task.cancel()
            if self._applying is not None:
                await asyncio.wait([self._applying], timeout=CURE_MOST_S)

    def _told_again(self) -> str:
        proving = self.state.phase is Phase.PROVING
        return "an earlier process had begun a cure, which is to be proved, after" if proving else "armed again by what an earlier process had seen"

    async def _follow(self, source: Source) -> None:
        """Follow the log, again and again: a source should never end, and one that does must not be believed to see."""

        async def follow() -> None:
            await source.follow(self.arrived, self.seen)
            msg = "it has ended by itself"
            raise StepFailedError(msg)

        def failed(why: str | None) -> None:
            if why is not None:
                self.seen(Sight(seeing=False, why=why))

        await kept_alive("following the log", follow, failed)

    def spent_ages_s(self, most: int) -> list[float]:
        """Ages of this node's own acts on the budget, youngest first; none when the store cannot be read."""
        now = self._clock.monotonic()
        if self._spent_read is None or now - self._spent_read[0] > SPENT_EVERY_S:
            try:
                ages = budgets.ages(self._shared.store, self.parts.key, self._clock.moment())
            except EdgekeeperError:
                ages = ()
            self._spent_read = (now, ages)
        read, found = self._spent_read
        return [round(age + now - read, 2) for age in found[:most]]

    # what happens -----------------------------------------------------------------------------

    def arrived(self, chunk: bytes, at: float) -> None:
        """Lines of the service's log came."""
        self._last_line = max(self._last_line, at)
        if self.parts.matcher is None:
            return
        matches = self.parts.matcher.hits(chunk)
        for number, match in enumerate(matches):  # in a flood those before the last say nothing more: it is armed already
            if self.state.phase is Phase.QUIET or len(matches) - number <= self.parts.policy.burst.lines:
                self._feed(Hit(match.line, match.rest))

    def seen(self, sight: Sight) -> None:
        """The source sees, or does not see any more; and when the service was last started."""
        before, self.sight = self.sight, sight
        if sight.started is not None and sight.started != self._since_start:
            self._since_start = sight.started
            self._feed(Started(self._clock.monotonic() - max(0.0, self._clock.wall() - sight.started)))
        if sight.seeing:
            self._last_line = self._clock.monotonic() if not before.seeing else self._last_line
        if before.seeing and not sight.seeing:
            self._unseen = self._clock.monotonic()
        if (before.seeing, before.why) != (sight.seeing, sight.why):
            self._wake.set()

    def _listen(self) -> None:
        """A log that cannot be followed, and one that is silent for longer than it ever should be. A cure cuts the log: that is no news."""
        now, sight = self._clock.monotonic(), self.sight
        if sight.seeing != self.blind:
            self._shared.alarm("blind", f"the log cannot be followed: {sight.why}" if self.blind else None)  # the reason may be another one by now
        elif sight.seeing:
            self.blind = False
            self._tell(Event.WATCH_SEES, "hold", INFO, sight.why)
            self._shared.alarm("blind", None)
        elif now - self._unseen > BLIND_AFTER_S and self.state.phase not in {Phase.CURING, Phase.PROVING}:
            self.blind = True
            self._tell(Event.WATCH_BLIND, "hold", WARNING, f"the log cannot be followed: {sight.why}")
        limit = self.parts.blind_after_s
        if limit is not None and self.parts.source is not None:
            why = f"no line at all for {limit:g} s: the log's level may be too high, or the log is not the service's"
            self._shared.alarm("silent", why if sight.seeing and now - self._last_line > limit else None)

    # what is decided --------------------------------------------------------------------------

    def _feed(self, event: Happening) -> None:
        now = self._clock.monotonic()
        before = self.state
        decision = decide(before, event, now, self.parts.policy)
        self.state = decision.state
        if decision.state.phase is not before.phase:
            self._changed(before)
        moved = decision.state.phase is not before.phase and not isinstance(event, Refused)
        if decision.kind != "act" and (decision.kind != "hold" or moved):  # an act is one once it was counted
            self.why = decision.why
        elif isinstance(event, Outlook) and decision.state.phase is Phase.WANTED and decision.state.held:
            self._held_on(decision.why)
        told = EVENTS.get(decision.kind)
        if told is not None:
            self._tell(*told, decision.why, entry_data(decision, event, now))
        if isinstance(event, Refused) and self._shared.place is not None:
            self._shared.place.rests()
        if decision.kind == "prove" or (decision.kind == "fail" and not isinstance(event, Cured)):  # what could not be carried out says nothing
            self._spawn(self._note(helped=decision.kind == "prove"))
        self._do(decision)
        self._wake.set()

    def _held_on(self, why: str) -> None:
        """What holds a cure back may be another thing by now; its countdown is no news."""
        if _NUMBERS.sub("", why) != _NUMBERS.sub("", self.why) and self._clock.monotonic() - self._told_held >= HELD_EVERY_S:
            self.why, self._told_held = why, self._clock.monotonic()
            self._shared.alarm("wanted", why)

    def _do(self, decision: Decision) -> None:
        if self._ended:
            return
        match decision.do:
            case Ask():
                self._ask()
            case Look():
                self._look()
            case Apply(step):
                if self._shared.place is not None:
                    self._shared.place.cures()
                self._applying = asyncio.create_task(self._apply(step, decision.why))
            case None:
                pass

    def _changed(self, before: State) -> None:
        phase = self.state.phase
        if phase is Phase.QUIET:
            self.ours = False
        if phase is Phase.WANTED:
            self._pulse = Pulse()  # it is down, which is another matter
        self._remember()
        if before.phase is Phase.WANTED and phase is not Phase.CURING:
            self._shared.alarm("wanted", None)
        if self._shared.place is not None:
            self._shared.place.wakes(awake=phase is not Phase.QUIET)
            if phase in {Phase.QUIET, Phase.ARMED}:
                self._shared.place.rests()

    def _remember(self) -> None:
        """What a successor must know, should this process die now: that something was wrong, and whether a cure may be half done."""
        state, kept = self.state, None
        if state.phase is not Phase.QUIET:
            moment = self._clock.moment()
            curing = state.phase is Phase.PROVING or (state.phase is Phase.CURING and self.begun)
            kept = memory.Memory(state.line, curing, self.ours, state.step, moment.boot - (self._clock.monotonic() - state.sign), moment.boot_id)
        why = memory.remember(self._file, kept)
        self._shared.alarm("memory", why)

    def _tell(self, event: Event, decision: str, level: int, why: str, data: dict[str, Any] | None = None) -> None:
        emit(event, f"{self.parts.name}: {why}", level=level)
        self._shared.journal.write(Entry(ROLE, event, self.parts.name, decision, why, data or {"state": str(self.state.phase)}))
        self._shared.count(str(event))
        if event is Event.WATCH_SUPPRESSED:
            self._shared.alarm("wanted", why)

    # what is done -----------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except EdgekeeperError as err:
                emit(Event.INTERNAL_ERROR, f"{self.parts.name}: {err}", level=WARNING)
            except Exception as err:  # noqa: BLE001 - a bug must not end the watch, nor be silent
                emit(Event.INTERNAL_ERROR, f"{self.parts.name}: {type(err).__name__}: {err}", level=ERROR)

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # one that is cancelled before it begins never awaits it

    def _ask(self) -> None:
        if self.parts.asker is not None and self._asking < OUTSTANDING:
            self._asking += 1
            self._spawn(self._round(self.parts.asker))

    async def _round(self, asker: Asker) -> None:
        try:
            answer = await asker.ask()
        finally:
            self._asking -= 1
        if answer.stale(self._clock.monotonic(), self.parts.policy.timeout_s):
            return  # the next round is due at once
        if self.answer is None or answer.asked >= self.answer.asked:
            self.answer = answer
        self._shared.alarm("probe", None if answer.known else f"the service cannot be asked: {answer.why}; that says nothing of it, and it is not cured for it")
        if answer.known:
            if self.state.phase in {Phase.QUIET, Phase.ARMED}:
                self._shared.alarm("flaps", self._pulse.beat(answer.asked, well=answer.well))
            self._feed(Answered(answer.well, answer.why, answer.asked))

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self._spawn(self._find_out())

    async def _find_out(self) -> None:
        try:
            asked = [*(guard.forbids() for guard in self.parts.guards), self.parts.cures[self.state.step].ready(ours=self.ours, since=self._against())]
            forbidden = [why for why in map(_said, await asyncio.gather(*asked, return_exceptions=True)) if why is not None]
            moment = self._clock.moment()
            try:
                found = await asyncio.to_thread(budgets.look, self._shared.store, self.parts.key, self.parts.budget, moment, self._shared.others_s())
            except EdgekeeperError as err:
                forbidden.append(str(err))
                found = self.parts.budget
            seen = Outlook(forbidden[0] if forbidden else None, None, found, self._clock.monotonic())
            turn = await self._turn(self._shared.place, seen) if self._shared.place is not None else None
        finally:
            self._looking = False
        # nothing is awaited between the turn and what follows from it
        self._feed(replace(seen, turn=turn, at=self._clock.monotonic()))

    def _against(self) -> float:
        """Unix time of the evidence against the service: when the oldest of the rounds was asked that are needed to confirm, else of the first sign."""
        failed = self.state.failed[-self.parts.policy.failures :]
        return self._clock.wall() - (self._clock.monotonic() - (failed[0] if failed else self.state.sign))

    async def _turn(self, place: Place, seen: Outlook) -> str | None:
        """Why another member goes first; a watch that may not act anyhow does not announce a wish, which would hold up the others."""
        able = self.state.phase is Phase.WANTED and hindrance(self.state, seen, seen.at, self.parts.policy) is None
        why = await place.may(able=able)
        return why or (place.outdated(self.state.bad_asked) if self.parts.policy.probed else None)

    async def _apply(self, step: int, why: str) -> None:
        """Spend, tell, cure; in this order, so that what is cured was always counted and told before."""
        decided = self._clock.monotonic()
        await asyncio.sleep(0)
        try:
            if step == 0:
                moment = self._clock.moment()
                spending = await asyncio.to_thread(budgets.spend, self._shared.store, self.parts.key, self.parts.budget, moment, self._shared.others_s())
                if not spending.allowed:
                    self._feed(Refused(spending.why, self._clock.monotonic() + spending.again_s))
                    return
                self._spent_read = None
                why = f"{why}; {spending.why}"
            if (stood := self._clock.monotonic() - decided) > STOOD_S:
                self._feed(Refused(f"this process stood still for {stood:.0f} s between the decision and the cure; it is looked at anew"))
                return
            cure = self.parts.cures[step]
            self.ours = self.begun = True
            self._remember()
            self.cures, self.why = self.cures + 1, why
            self._tell(
                Event.WATCH_CURED,
                "act",
                WARNING,
                f"{cure.name}: {why}",
                act_data(self.state, cure.name, [guard.note for guard in self.parts.guards]),
            )
            self._shared.alarm("wanted", None)
            failed = await self._carry_out(cure)
            self.ours = failed is not None  # it runs now: who stops it from here on is somebody
        except EdgekeeperError as err:
            self._feed(Refused(f"{err}; nothing was done"))
            return
        finally:
            self._applying = None
            self.begun = False
        self._feed(Cured(failed))

    async def _carry_out(self, cure: Cure) -> str | None:
        try:
            async with asyncio.timeout(CURE_MOST_S):
                return await cure.apply()
        except TimeoutError:
            return f"{cure.name} did not end within {CURE_MOST_S:g} s"
        except EdgekeeperError as err:
            return str(err)
        except Exception as err:  # noqa: BLE001 - a bug in a cure must not leave the watch waiting for its end
            emit(Event.INTERNAL_ERROR, f"{self.parts.name}: {cure.name}: {type(err).__name__}: {err}", level=ERROR)
            return f"{cure.name} failed: {type(err).__name__}"

    async def _note(self, *, helped: bool) -> None:
        """Whether the last cure helped decides how long the next pause is."""
        await asyncio.to_thread(budgets.note, self._shared.store, self.parts.key, helped)


def _said(found: str | BaseException | None) -> str | None:
    """What was not found out forbids, and is told: a bug in a guard must not lead to cures, nor keep the watch silent."""
    if not isinstance(found, BaseException):
        return found
    if not isinstance(found, Exception):
        raise found
    return f"whether it may be cured could not be found out: {type(found).__name__}"
