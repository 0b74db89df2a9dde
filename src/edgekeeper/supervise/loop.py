"""The one loop that all engines share: feed events to ``decide``, carry out its commands.

Level, not edge: whatever is wanted now is compared with what runs now, and events only make the
next look come sooner. The role says what it wants with ``want`` (or why it cannot, with
``unreadable``); everything else happens here.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, assert_never

from edgekeeper import __version__
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.process import Process
from edgekeeper.log import ERROR, INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Change, Clock, Cost, Engine, Journal
from edgekeeper.supervise import decide as mind
from edgekeeper.supervise.act import Actor
from edgekeeper.supervise.crew import Hand
from edgekeeper.supervise.debounce import Debounce, acted, due_in, noticed

TICK_S = 0.5
"""How often time alone is an event: the shortest back-off is as long."""

Count = Callable[[str, dict[str, str]], None]


def intent_digest(engine: Engine, intent: Any) -> str:
    """What names an intent: the same for every seat, another after an upgrade of edgekeeper."""
    return hashlib.sha256(f"{__version__}\0{engine.dump(intent, None)}".encode()).hexdigest()[:12]


class Supervisor:
    """Keeps one engine running what its role wants. ``run`` returns when ``stop`` or ``leave`` was called."""

    def __init__(self, role: str, engine: Engine, actor: Actor, clock: Clock, journal: Journal, *, debounce_s: float, count: Count) -> None:
        self.role = role
        self.state = mind.State()
        self.why = "starting"
        self.last_change: dict[str, Any] = {}
        self.adopted = False
        self._engine = engine
        self.actor = actor
        self._clock = clock
        self._journal = journal
        self._count = count
        self._debounce = Debounce(debounce_s)
        self._wanted: Any = None
        self._unreadable: str | None = None
        self._ends: asyncio.Queue[tuple[Process, int | None]] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._ending: str | None = None
        self._urgent = False
        self._doubt: str | None = None
        self._refusal = ""

    # what the role says -------------------------------------------------------------------

    def want(self, intent: Any, *, urgent: bool = False) -> None:
        """This is what should run; ``urgent`` does not wait for the debounce (a person or a signal asked)."""
        if intent != self._wanted:
            self._wanted = intent
            self._unreadable = None
            self._debounce = noticed(self._debounce, self._clock.monotonic())
        self._urgent = (self._urgent or urgent) and self._debounce.waiting is not None
        self._wake.set()

    def unreadable(self, why: str) -> None:
        """Nothing can be wanted, and why; what was accepted last runs on, or is started."""
        if self._wanted is None:
            self._unreadable = why
            self._wake.set()

    def doubt(self, why: str) -> None:
        """What the engine holds is not certain, or nobody can ask it any more: what is wanted is brought into force once more."""
        if self._wanted is not None and self._doubt is None:
            self._doubt = why
            self._debounce = noticed(self._debounce, self._clock.monotonic())
            self._wake.set()

    def surroundings_changed(self) -> None:
        """Something outside is another than it was (an address has come, say): what was refused is asked again at once."""
        refused = self.state.refused
        if refused is not None:
            self.state = replace(self.state, refused=replace(refused, retry_at=self._clock.monotonic()))
            self._wake.set()

    def end(self, *, leave: bool) -> None:
        """End the loop: stop the engine, or leave it running for the next supervisor."""
        self._ending = "leave" if leave else "stop"
        self._wake.set()

    # the loop -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Adopt or start the engine and keep it right until ``end`` is called."""
        await self._adopt()
        watcher: asyncio.Task[None] | None = None
        watched: Hand | None = None
        try:
            while self._ending is None:
                serving = self.actor.crew.serving
                if serving is not watched:
                    if watcher is not None:
                        watcher.cancel()
                    watched, watcher = serving, self._watch(serving) if serving is not None else None
                await self._step()
        finally:
            if watcher is not None:
                watcher.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watcher
        await self._end()

    async def _step(self) -> None:
        now = self._clock.monotonic()
        wait = due_in(self._debounce, now)
        if wait is not None and (wait == 0 or self._urgent):
            self._debounce = acted(self._debounce, now)
            self._urgent = False
            await self._handle(self._rendered(self._wanted))
            return
        if self._unreadable is not None:
            why, self._unreadable = self._unreadable, None
            await self._handle(mind.Unreadable(why))
            return
        if not self._ends.empty():
            process, code = self._ends.get_nowait()
            serving = self.actor.crew.serving
            if serving is not None and serving.process is process:  # else it was stopped, or exchanged in the meantime
                self.actor.crew.serving = None
                await self._handle(mind.Exited(code))
            return
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TICK_S if wait is None else min(TICK_S, wait)):
                await self._wake.wait()
                return
        await self._handle(mind.Tick())

    def _rendered(self, intent: Any) -> mind.Event:
        digest = intent_digest(self._engine, intent)
        self.actor.intents[digest] = intent
        running = self.actor.running_intent()
        doubt, self._doubt = self._doubt, None
        if running is None:
            change = Change(Cost.RESTART, "other", "the engine is not running yet")
        elif self.actor.crew.applying is not None:
            change = Change(self._engine.uncertain, "other", "a change was interrupted, so what the engine holds is not certain")
        elif doubt is not None:
            change = Change(self._engine.uncertain, "other", doubt)
        else:
            change = self._engine.change(running, intent)
        self.actor.changes[digest] = change
        return mind.Rendered(digest, change.cost, change.why, self._engine.uncertain)

    def _watch(self, hand: Hand) -> asyncio.Task[None]:
        async def wait() -> None:
            self._ends.put_nowait((hand.process, await hand.process.wait()))
            self._wake.set()

        return asyncio.create_task(wait())

    async def _handle(self, event: mind.Event) -> None:
        """Decide about an event and carry the commands out; a command's own event is handled next."""
        following: mind.Event | None = event
        while following is not None:
            before = self.state
            decision = mind.decide(before, following, self._clock.monotonic())
            self.state = decision.state
            self._tell(following, before, decision)
            following = await self._carry_out(decision)

    async def _carry_out(self, decision: mind.Decision) -> mind.Event | None:
        report: mind.Event | None = None
        for command in decision.commands:
            try:
                report = await self.actor.do(command)
            except (EdgekeeperError, OSError) as err:
                return self._failed(command, str(err))
        self.actor.tidy()
        return report

    def _failed(self, command: mind.Command, why: str) -> mind.Event:
        """An effect failed (a full disk, a missing program): that is a refusal, and nothing else happens."""
        match command:
            case mind.Check():
                return mind.Checked(command.digest, why)
            case mind.Swap():
                return mind.Failed(command.digest, why)
            case mind.Rollback() | mind.Start() | mind.Live() | mind.Reload() | mind.Replace():
                return mind.Proved(command.digest, why, running=self.actor.serves())
            case _:
                assert_never(command)

    # adoption and end ---------------------------------------------------------------------

    async def _adopt(self) -> None:
        adopted = await self.actor.adopt()
        now = self._clock.monotonic()
        self.state = mind.State(live=adopted.digest, good=adopted.good, running=adopted.running, since=now)
        self.adopted = adopted.running
        self.why = adopted.why
        if adopted.running:
            emit(Event.ENGINE_ADOPTED, adopted.why, pid=adopted.pid)
            self._journal.write(Entry(self.role, Event.ENGINE_ADOPTED, str(adopted.pid), "act", adopted.why))

    async def _end(self) -> None:
        serving = self.actor.crew.serving
        if serving is None:
            return
        if self._ending == "leave":
            why = f"pid {serving.process.pid} is left running for the next supervisor"
            event = Event.HANDOVER_DONE
        else:
            how = await self.actor.stop(serving)
            why = f"pid {serving.process.pid} {how}"
            event = Event.ENGINE_STOPPED
        emit(event, why)
        self._journal.write(Entry(self.role, event, str(serving.process.pid), "act", why))

    # telling ------------------------------------------------------------------------------

    def _tell(self, event: mind.Event, before: mind.State, decision: mind.Decision) -> None:
        """Log and journal what was decided, once each time that it is news."""
        if isinstance(event, mind.Tick) and not decision.commands:
            return
        name, level, verb = _news(event, before, decision)
        if isinstance(event, mind.Rendered) and not decision.commands:
            self._count("renders", {"result": "unchanged"})
        if isinstance(event, mind.Checked):
            self._count("renders", {"result": "ok" if event.refusal is None else self.actor.refusal_kind})
        if isinstance(event, mind.Exited):
            self._count("restarts", {"reason": "exit"})
        self.why = decision.why
        emit(name, decision.why, level=level)
        if verb == "refuse":  # the same refusal of the same thing, asked again, is no news for the journal
            said, self._refusal = self._refusal, decision.why
            verb = "note" if said == decision.why else verb
        elif verb == "act":
            self._refusal = ""
        if verb == "note":
            return
        change = self.actor.changes.get(getattr(event, "digest", ""))
        data = {"cost": str(change.cost), "kind": change.reason, "change": change.why} if change is not None else {}
        if isinstance(event, mind.Proved):
            if event.refusal is None and self.actor.replaced and change is not None:
                self._count("restarts", {"reason": change.reason})
            data["how"] = self.actor.how
            self.last_change = {"at": self._clock.wall(), "why": decision.why, "ok": event.refusal is None, **data}
        serving = self.actor.crew.serving
        self._journal.write(Entry(self.role, name, str(serving.process.pid) if serving else "", verb, decision.why, data))


def _news(event: mind.Event, before: mind.State, decision: mind.Decision) -> tuple[Event, int, str]:
    """The event's name, how loud it is, and the journal's verb ("note" is not journalled)."""
    match event:
        case mind.Rendered():
            return (Event.CONFIG_UNCHANGED, INFO, "note") if not decision.commands else (Event.CONFIG_RENDERED, INFO, "note")
        case mind.Checked(refusal=None):
            return Event.CONFIG_ACCEPTED, INFO, "note"
        case mind.Checked():
            return Event.CONFIG_REFUSED, ERROR, "refuse"
        case mind.Proved(refusal=None):
            cost = before.changing.cost if before.changing is not None and before.running else Cost.RESTART
            return {Cost.LIVE: Event.CONFIG_LIVE, Cost.RELOAD: Event.CONFIG_RELOADED}.get(cost, Event.ENGINE_PROVED), INFO, "act"
        case mind.Proved() | mind.Failed():
            return Event.ENGINE_NOT_PROVED, ERROR, "refuse"
        case mind.Exited():
            return Event.ENGINE_EXITED, ERROR, "act"
        case mind.Unreadable():
            return Event.MEMBERS_UNREADABLE, WARNING, "hold"
        case mind.Tick():
            return Event.ENGINE_STARTED if before.restart_at is not None else Event.CONFIG_RENDERED, INFO, "note"
