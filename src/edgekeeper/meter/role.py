"""The probe role, wired: targets of the config asked all day, every outage journaled with its bounds, records kept where wanted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from edgekeeper.config.probe import Probe
from edgekeeper.config.root import Root
from edgekeeper.errors import EdgekeeperError, MissingError
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.measure.outages import Outage
from edgekeeper.meter import report
from edgekeeper.meter.kept import Kept, Told
from edgekeeper.meter.live import name, sentence
from edgekeeper.meter.meter import Meter, Pace
from edgekeeper.meter.record import Recording
from edgekeeper.meter.room import make_room
from edgekeeper.meter.tell import Purse
from edgekeeper.model.entry import Entry
from edgekeeper.model.sample import Sample
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.status import RoleStatus
from edgekeeper.probe.icmp import need_icmp
from edgekeeper.probe.target import Target, parse
from edgekeeper.runtime import Ground, accepted, cancelled, watched

MEASURE_S = 1.0
RECORDS = "questions.jsonl"
HELD_UP_SHARE = 0.05
"""Of the questions since the last look: more that do not count are worth an alarm."""
HELD_UP_S = 30.0
"""So long an alarm about questions that do not count stays after the last of them."""


async def make(root: Root, ground: Ground) -> MeterRole:
    """The role of a config that has it; UsageError when a target cannot be used."""
    return MeterRole(root, ground)


class MeterRole:
    """``edgekeeper probe run``."""

    def __init__(self, root: Root, ground: Ground) -> None:
        assert root.probe is not None  # noqa: S101 - the command has checked it
        self._started = root
        self._ground = ground
        self._ended = asyncio.Event()
        self._changed = asyncio.Event()
        self.alarms = Alarms("probe", ground.journal)
        self._purse = Purse()
        self._take(root.probe, Path(root.state_dir))

    def _take(self, wanted: Probe, state_dir: Path) -> None:
        targets = [parse(url) for url in dict.fromkeys(wanted.targets)]
        keys = [(target.url, conn) for target in targets for conn in (("fresh", "warm") if wanted.warm else ("fresh",))]
        self._wanted, self._folder = wanted, state_dir / "probe"
        self.kept = Kept(keys, Pace(wanted.every, wanted.timeout).hole_s)
        self._targets = targets
        self._recording: Recording | None = None
        self._meter: Meter | None = None
        self._held_up = (0, 0, 0.0)

    # what the runtime calls ---------------------------------------------------------------

    def end(self, *, leave: bool) -> None:  # noqa: ARG002 - there is no engine to stop or to leave
        """End it; questions under way are waited for."""
        self._ended.set()

    def status(self) -> RoleStatus:
        """What the role says of itself."""
        return report.status(self.kept, self.alarms.raised, time.monotonic())

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        """Take another config; a section that is the same goes on as it is, another begins to count anew."""
        root = accepted("probe", self._started, fresh, self.alarms, self._ground.journal, self._refusal)
        if root is None or root.probe is None or root.probe == self._wanted:
            return
        self._fresh = root.probe
        self._changed.set()

    def _refusal(self, fresh: Root) -> str | None:
        try:
            for url in fresh.probe.targets if fresh.probe is not None else ():
                parse(url)
        except EdgekeeperError as err:
            return str(err)
        return None

    async def run(self) -> None:
        """Ask until ``end``."""
        background = watched(self.alarms, {"metrics": self._measure})
        try:
            while not self._ended.is_set():
                self._changed.clear()
                await self._ask()
                if self._changed.is_set():
                    self._take(self._fresh, Path(self._started.state_dir))
        finally:
            await cancelled(background)

    async def _ask(self) -> None:
        """Ask until the end, or until there is another section."""
        with contextlib.ExitStack() as stack:
            if self._wanted.record is not None:
                keep = self._wanted.record
                self._recording = stack.enter_context(Recording(self._folder / RECORDS, most_bytes=keep.size, keep=keep.files, patient=True))
            pace = Pace(every_s=self._wanted.every, timeout_s=self._wanted.timeout, warm=self._wanted.warm, mark=self._wanted.mark)
            self.alarms.set("descriptors", make_room(len(self.kept.running), pace))
            self._meter = Meter(self._permitted(), pace, self._sink)
            asking = asyncio.create_task(self._meter.run())
            waits = [asyncio.create_task(event.wait()) for event in (self._ended, self._changed)]
            await asyncio.wait([asking, *waits], return_when=asyncio.FIRST_COMPLETED)
            await cancelled([asking])
            for wait in waits:
                wait.cancel()
        self._tell(self.kept.finish())
        for key, running in self.kept.running.items():
            current = running.current()
            if current is not None:
                self._outage(Told(key, current, ended=True), f"{name(key)} did not answer again before the meter ended, or was told to ask otherwise")
                if self._changed.is_set():
                    self.alarms.set(report.alarm_of(key), None)

    def _permitted(self) -> list[Target]:
        """The targets that this process may ask: what it may not is no outage of theirs."""
        why = None
        if any(target.transport == "icmp" for target in self._targets):
            try:
                need_icmp()
            except MissingError as err:
                why = f"{err}; its icmp:// targets are not asked"
        self.alarms.set("icmp", why)
        return [target for target in self._targets if why is None or target.transport != "icmp"]

    # what it finds ------------------------------------------------------------------------

    def _sink(self, sample: Sample, until: float) -> None:
        self._tell(self.kept.take(sample, until))
        if self._recording is not None:
            before = self._recording.why
            self._recording.write(sample)
            if self._recording.why != before:
                self.alarms.set("recording", self._recording.why or None)

    def _tell(self, news: list[Told]) -> None:
        for told in news:
            if told.ended:
                self._outage(told, sentence(told))
                self.alarms.set(report.alarm_of(told.key), None)
                continue
            emit(Event.PROBE_DOWN, sentence(told), level=WARNING, target=told.key[0], conn=told.key[1])
            if self._purse.may(told.key, time.monotonic()):
                self._ground.journal.write(Entry("probe", Event.PROBE_DOWN, name(told.key), "alarm", sentence(told)))

    def _outage(self, told: Told, why: str) -> None:
        emit(Event.PROBE_OUTAGE, why, level=INFO, target=told.key[0], conn=told.key[1], **report.bounds(told.outage))
        left_out = self._purse.left_out(told.key)
        if self._purse.may(told.key, time.monotonic()):
            self._ground.journal.write(Entry("probe", Event.PROBE_OUTAGE, name(told.key), "alarm", why, self._data(told.outage, left_out)))

    def _data(self, outage: Outage, left_out: int) -> dict[str, float | None]:
        wall = time.time() - time.monotonic()
        data: dict[str, float | None] = {**report.bounds(outage), "bad": outage.bad, "first_bad": round(outage.first_bad + wall, 3)}
        return {**data, "left_out": left_out} if left_out else data

    async def _measure(self) -> None:
        gauges = report.Gauges(self._ground.metrics)
        while True:
            now = time.monotonic()
            kept = self.kept
            for key, running in kept.running.items():
                if kept is not self.kept:
                    break  # another section came meanwhile
                current = running.current()
                if current is not None and now - current.first_bad >= self._wanted.alarm:
                    error = (running.last_bad.error or "") if running.last_bad is not None else ""
                    self.alarms.set(report.alarm_of(key), f"no good answer since {self._wanted.alarm:g} s and more ({error})")
                    await asyncio.sleep(0)  # an entry of the journal is synced; a thousand at once would hold up the questions
            self._look_at_itself(now)
            lost = report.Lost(self._recording.lost if self._recording is not None else 0, self._meter.void + self._meter.missed if self._meter else 0)
            gauges.measure(self.kept, self.alarms.raised, lost, now)
            await asyncio.sleep(MEASURE_S)

    def _look_at_itself(self, now: float) -> None:
        """An alarm while many questions do not count because of this process, and for a while after; every machine is late now and then."""
        if self._meter is None:
            return
        (lost_before, asked_before, _), lost, asked = self._held_up, self._meter.void + self._meter.missed, self._meter.late.total
        newly, share = lost - lost_before, HELD_UP_SHARE * (lost - lost_before + asked - asked_before)
        if newly > share:
            self.alarms.set("held up", f"{self._meter.why or 'this process was held up'}: questions do not count, or are not asked, while it lasts")
        elif now - self._held_up[2] > HELD_UP_S:
            self.alarms.set("held up", None)
        self._held_up = (lost, asked, now if newly > share else self._held_up[2])
