"""Carry out the mind's commands. Each short; each says in an event what came of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, assert_never

from edgekeeper.errors import EdgekeeperError, StepFailedError
from edgekeeper.host import process
from edgekeeper.ports import Change, Clock, Cost, Engine, Hands
from edgekeeper.supervise import decide as mind
from edgekeeper.supervise.ask import CHECK_DEADLINE_S
from edgekeeper.supervise.crew import Adopted, Crew, Hand
from edgekeeper.supervise.enginelog import last_complaint, size
from edgekeeper.supervise.replace import Exchange, exchange, release, steer_to
from edgekeeper.supervise.shield import Shield, Step, unshielded
from edgekeeper.supervise.stage import Generation, Stage

PROVE_DEADLINE_S = 15.0
"""From start to proven: 0.2 s measured, 1.3 s with a black-holed backend."""

SURVIVE_S = 2.0
"""How long an engine must run that cannot be asked: one with a bad configuration is gone after 0.1 s (dnsdist 1.7.3 to 2.1.3)."""


class Actor:
    """Holds what runs and what is staged, and does what it is told."""

    def __init__(
        self,
        engine: Engine,
        hands: Hands,
        stage: Stage,
        crew: Crew,
        clock: Clock,
        *,
        manner: str,
        stop_timeout_s: float,
        drain: Callable[[], Awaitable[None]],
        shield: Shield = unshielded,
    ) -> None:
        self.crew = crew
        self.intents: dict[str, Any] = {}
        self.changes: dict[str, Change] = {}
        self.stop_timeout_s = stop_timeout_s
        self.manner = manner
        self.how = ""
        self.refusal_kind = "check_failed"
        self.replaced = False
        self._engine = engine
        self._hands = hands
        self._stage = stage
        self._clock = clock
        self._drain = drain
        self._shield = shield
        self._staged: Generation | None = None
        self._fresh = False
        self._known: tuple[tuple[int, str], tuple[Any, Any]] | None = None
        self._log_from = 0

    # what runs ----------------------------------------------------------------------------

    def running_generation(self) -> Generation | None:
        """The generation that the serving process has, when it can be read."""
        serving = self.crew.serving
        return self._stage.read(serving.generation) if serving is not None and serving.generation else None

    def running(self) -> tuple[Any, Any] | None:
        """Intent and seat of the serving process: what its generation was written for, also where its files were damaged since."""
        serving = self.crew.serving
        if serving is None or not serving.generation:
            return None
        who = (serving.process.pid, serving.generation)
        if self._known is None or self._known[0] != who:  # asked twice a second: what was read once is known
            document = self._stage.document(serving.generation)
            try:
                self._known = (who, self._engine.load(document)) if document is not None else None
            except ValueError:
                self._known = None
        return self._known[1] if self._known is not None else None

    def running_intent(self) -> Any:
        """Intent of the serving process, or None."""
        running = self.running()
        return running[0] if running is not None else None

    def serves(self) -> bool:
        """Whether the serving process is there and alive."""
        return self.crew.serving is not None and self.crew.serving.process.alive()

    def tidy(self) -> None:
        """Forget what no event can name any more, and old generations."""
        self.crew.keep()
        self._stage.prune(self.crew.in_use | ({self._staged.name} if self._staged else set()))
        for digest in list(self.intents)[:-8]:
            del self.intents[digest]
            self.changes.pop(digest, None)

    async def stop(self, hand: Hand) -> str:
        """Stop the serving process for sure; says how it ended."""
        async with self._shield(Step.STOP):
            return await self.crew.stop(hand, self.stop_timeout_s)

    # commands -----------------------------------------------------------------------------

    async def do(self, command: mind.Command) -> mind.Event | None:
        """Carry out one command; the event says what came of it (None: the next command goes on)."""
        match command:
            case mind.Check(digest=digest):
                return mind.Checked(digest, await self._check(digest))
            case mind.Swap(digest=digest):
                return self._swap(digest)
            case mind.Rollback(digest=digest):
                self._rollback(digest)
                return None
            case mind.Start(digest=digest):
                async with self._shield(Step.START):
                    return await self._start(digest)
            case mind.Live(digest=digest):
                return await self._live(digest)
            case mind.Reload(digest=digest):
                async with self._shield(Step.RELOAD):
                    return await self._reload(digest)
            case mind.Replace(digest=digest):
                async with self._shield(Step.START):
                    return await self._replace(digest)
            case _:
                assert_never(command)

    async def _check(self, digest: str) -> str | None:
        intent = self.intents[digest]
        change = self.changes.get(digest)
        running = self.running()
        alone = running is None or change is None or change.cost is Cost.RESTART
        seat = self._hands.new_seat(intent) if alone or running is None else running[1]
        beside = running[1] if running is not None else None
        serving = self.crew.serving.process.pid if self.crew.serving is not None else None
        refusal = await self._hands.preflight(intent, seat, beside, serving)
        if refusal is not None:
            self.refusal_kind = "invalid"
            return refusal
        self.refusal_kind = "check_failed"
        staged = self._stage.write(digest, self._engine.dump(intent, seat), self._engine.files(intent, seat), self._clock.wall())
        refusal = await self._ask_validator(staged)
        if refusal is not None:
            self._stage.drop(staged.name)
            return refusal
        self._staged, self._fresh = staged, alone
        return None

    async def _ask_validator(self, generation: Generation) -> str | None:
        try:
            done = await process.run(self._engine.check_argv(str(self._stage.path(generation.name))), CHECK_DEADLINE_S)
        except EdgekeeperError as err:
            return str(err)
        return self._engine.judge(done.code, done.output)

    def _swap(self, digest: str) -> mind.Event | None:
        staged = self._staged
        if staged is None or staged.digest != digest:
            msg = f"{digest} is not staged; the current generation stays"
            raise StepFailedError(msg)
        self._stage.swap(staged.name)
        change = self.changes.get(digest)
        if change is None or change.cost is not Cost.NOTHING or self.crew.serving is None:
            return None
        self.replaced = False
        self.how = "files only"
        self.crew.moved_on(staged.name)
        return mind.Proved(digest)

    def _rollback(self, digest: str) -> None:
        serving = self.running_generation()
        found = serving if serving is not None and serving.digest == digest else self._stage.latest(digest)
        if found is None:
            msg = f"generation {digest} is no longer on disk"
            raise StepFailedError(msg)
        self._stage.swap(found.name)
        self._fresh = False

    async def _start(self, digest: str) -> mind.Event:
        """Start on the current generation, with fresh credentials and ports when it has been used before."""
        if self.crew.serving is not None:
            await self.crew.stop(self.crew.serving, self.stop_timeout_s)
        self.how = "start"
        for stray in self.crew.strays():  # a worker that outlived its master (frozen, say) would go on taking every other client
            with contextlib.suppress(EdgekeeperError):
                await self.crew.stop(stray, self.stop_timeout_s)
        generation = await self._reseat(beside=False)
        self.replaced = True
        hand = self._spawn(generation, beside=False)
        refusal = await self._prove(hand, generation)
        if refusal is not None:
            await self.crew.stop(hand, self.stop_timeout_s)
        return mind.Proved(digest, refusal, running=refusal is None)

    async def _reseat(self, *, beside: bool) -> Generation:
        current = self._stage.current()
        if current is None:
            msg = "there is no accepted generation on disk"
            raise StepFailedError(msg)
        if self._fresh and self._staged is not None and self._staged.name == current.name:
            return current
        try:
            intent, _ = self._engine.load(current.document)
        except ValueError:
            return self._as_it_is(current)  # written by another version
        seat = self._hands.new_seat(intent)
        try:
            fresh = self._stage.write(current.digest, self._engine.dump(intent, seat), self._engine.files(intent, seat), self._clock.wall())
            refusal = await self._ask_validator(fresh)
            if refusal is None:
                self._stage.swap(fresh.name)
                return fresh
            self._stage.drop(fresh.name)
        except EdgekeeperError as err:
            refusal = str(err)  # a full disk must not keep the engine down
        if beside:  # the seat on the disk may be that of the one that runs
            raise StepFailedError(refusal)
        self.how = f"start; with the credentials of {current.name}, because {refusal}"
        return self._as_it_is(current)

    def _as_it_is(self, generation: Generation) -> Generation:
        """A generation that the validator accepted before; the link names it also where that was damaged and this is the one before."""
        if self._stage.linked() != generation.name:
            self._stage.swap(generation.name)
        return generation

    def _spawn(self, generation: Generation, *, beside: bool) -> Hand:
        self._fresh = False
        self._log_from = size(self.crew.log)
        seat = None
        with contextlib.suppress(ValueError):  # written by another version
            seat = self._engine.load(generation.document)[1]
        return self.crew.start(self._engine.run_argv(str(self._stage.current_path), seat), generation.name, self._clock.wall(), beside=beside)

    async def _prove(self, hand: Hand, generation: Generation) -> str | None:
        """Ask the started process; that it ends, or runs into the deadline, is an answer too."""
        proof = asyncio.create_task(self._ask(hand, generation))
        end = asyncio.create_task(hand.process.wait())
        try:
            done, _ = await asyncio.wait({proof, end}, timeout=PROVE_DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
            if end in done:
                said = last_complaint(self.crew.log, self._log_from)
                return f"{self._engine.name} ended at its start{_code(end.result())}{f', saying: {said}' if said else ''}; more is in {self.crew.log}"
            if proof in done:
                return proof.result()
            return f"{self._engine.name} did not answer within {PROVE_DEADLINE_S:g} s of its start"
        except EdgekeeperError as err:
            return str(err)
        finally:
            proof.cancel()
            end.cancel()
            await asyncio.gather(proof, end, return_exceptions=True)

    async def _ask(self, hand: Hand, generation: Generation) -> str | None:
        try:
            intent, seat = self._engine.load(generation.document)
        except ValueError:  # written by another version: nobody knows its ports and keys, so that it lives must do
            await asyncio.sleep(SURVIVE_S)
            return None
        return await self._hands.prove(intent, seat, hand.process.pid)

    async def _live(self, digest: str) -> mind.Event:
        staged, running = self._staged, self.running()
        if staged is None or running is None or self.crew.serving is None:
            msg = "there is no running engine to change"
            raise StepFailedError(msg)
        self.replaced = False
        self.how = "live"
        self.crew.applying = staged.name
        self.crew.save()
        old, seat = running
        refusal = await self._hands.live(old, self.intents[digest], seat)
        if refusal is None:
            self.crew.moved_on(staged.name)
        return mind.Proved(digest, refusal, running=self.serves())

    async def _reload(self, digest: str) -> mind.Event:
        """The running process reads the current generation; until that is proven, what it holds is not certain."""
        current, running, serving = self._stage.current(), self.running(), self.crew.serving
        if current is None or current.digest != digest or running is None or serving is None:
            msg = "there is no running engine that could read its files again"
            raise StepFailedError(msg)
        self.replaced = False
        self.how = "reload"
        self.crew.applying = current.name
        self.crew.save()
        log_from = size(self.crew.log)
        intent, _ = self._engine.load(current.document)
        refusal = await self._hands.reload(intent, running[1], serving.process.pid)
        if refusal is None:
            self.crew.moved_on(current.name)
        elif (said := last_complaint(self.crew.log, log_from)) and said not in refusal:
            refusal = f"{refusal}, saying: {said}"
        return mind.Proved(digest, refusal, running=self.serves())

    async def _replace(self, digest: str) -> mind.Event:
        generation = await self._reseat(beside=self.serves())
        running = self.running()
        new_intent, _ = self._engine.load(generation.document)
        old_shared = set(self._engine.steerable(running[0])) if running is not None else set()
        plan = Exchange(
            start=lambda beside: self._spawn(generation, beside=beside),
            prove=lambda hand: self._prove(hand, generation),
            shared=[a for a in self._engine.steerable(new_intent) if a in old_shared],
            stop_timeout_s=self.stop_timeout_s,
            drain=self._drain,
        )
        done = await exchange(self.crew, plan, self.manner if running is not None else "plain")
        if done.refusal is None:
            self.crew.applying = None
            self.crew.note()
        self.replaced = True
        self.how = f"{done.manner}; {done.note}" if done.note else done.manner
        return mind.Proved(digest, done.refusal, running=self.serves())

    # adoption -----------------------------------------------------------------------------

    async def adopt(self) -> Adopted:
        """Take over a running engine; finish or undo what its former supervisor was in the middle of."""
        found = self.crew.find()
        current = self._stage.current()
        on_disk = current.digest if current is not None else None
        if found.serving is None:
            age = f", made {self._clock.wall() - current.made_at:.0f} s ago" if current is not None else ""
            return Adopted(False, on_disk, on_disk, f"no engine is running; the last accepted configuration is {on_disk}{age}")
        self.crew.serving = found.serving
        self.crew.steering = found.steering
        notes = await self._retire(found.serving, found.others)
        self.crew.note()
        running = self.running_generation()
        pid = found.serving.process.pid
        if running is None:
            return Adopted(True, None, on_disk, f"pid {pid} serves, but its generation is not on disk; it is replaced at the next render{notes}", pid)
        if not found.recorded and (doubt := await self._doubt(found.serving)) is not None:
            self.crew.applying = running.name
            return Adopted(True, None, running.digest, f"adopted pid {pid}, whose record is lost: {doubt}{notes}", pid)
        if found.applying is not None:
            self.crew.applying = found.applying
            notes += await self._finish(running, found.applying)
            running = self.running_generation() or running
            if self.crew.applying is not None:
                return Adopted(True, None, running.digest, f"adopted pid {pid}{notes}", pid)
        return Adopted(True, running.digest, running.digest, f"adopted pid {pid} with configuration {running.digest}{notes}", pid)

    async def _retire(self, serving: Hand, others: tuple[Hand, ...]) -> str:
        """End every other engine of ours without losing what it has in hand."""
        for other in others:
            self.crew.beside = other
            if self.crew.steering:
                await steer_to(self.crew, serving, other)
            await self.crew.stop(other, self.stop_timeout_s)
        note = release(self.crew, serving)
        ended = f"; ended {len(others)} engine(s) that an interrupted exchange had left" if others else ""
        return ended + (f"; {note}" if note else "")

    async def _doubt(self, serving: Hand) -> str | None:
        """Why a process that was found by its environment does not run what it was started with (it was changed since, perhaps)."""
        running = self.running()
        if running is None:
            return "what it was started with is not known"
        try:
            return await self._hands.prove(*running, serving.process.pid)
        except EdgekeeperError as err:
            return str(err)

    async def _finish(self, running: Generation, applying: str) -> str:
        """A change was interrupted: a live one is done again (it is idempotent), so that engine and record agree; a reload at the next render."""
        target = self._stage.read(applying)
        try:
            if target is None:
                msg = "its files are gone"
                raise StepFailedError(msg)
            (old, seat), (new, _) = self._engine.load(running.document), self._engine.load(target.document)
            if self._engine.change(old, new).cost is Cost.RELOAD:
                refusal: str | None = "a reload was interrupted"
            else:
                refusal = await self._hands.live(old, new, seat)
        except (EdgekeeperError, ValueError) as err:
            refusal = str(err)
        if refusal is not None:
            return f"; an interrupted change could not be finished ({refusal}), so the engine is brought up to date at the next render"
        self.crew.moved_on(applying)
        self._stage.swap(applying)
        return "; an interrupted live change was finished"


def _code(code: int | None) -> str:
    if code is None:
        return ""
    return f" with exit code {code}" if code >= 0 else f" by signal {-code}"
