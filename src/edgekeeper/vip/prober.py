"""edgekeeper's own look at the service of each VIP: acts in tenths of a second, beside the track script that acts in seconds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from edgekeeper.config.vip import Prober as Pace
from edgekeeper.config.vip import Vip, VipProbe
from edgekeeper.errors import EdgekeeperError
from edgekeeper.log import WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Clock, Journal
from edgekeeper.vip import health
from edgekeeper.vip.evidence import Sample, Says, verdict
from edgekeeper.vip.look import Target, look
from edgekeeper.vip.weight import TrackFile, Weight

UNKNOWN = Sample("blind", "it has not been asked yet", None)
MOST_THREADS = 16
REMEMBERED = 16
"""Falls of a service that are remembered."""
IDLE_S = 1.0
"""How often it is looked whether there is something to ask by now."""
DEAD = ("dead", "silent")


@dataclass(slots=True)
class Patient:
    """What is known of the service of one VIP."""

    target: Target | None
    require: int
    sample: Sample = UNKNOWN
    counts: health.Counts = health.Counts()  # noqa: RUF009 - frozen
    row_dead: int = 0
    trouble_since: float | None = None
    falls: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    why: str = "it has not been asked yet"

    @property
    def dead(self) -> bool:
        """Whether the service is dead or silent beyond doubt: not by a single look."""
        return self.row_dead >= 2 or (self.counts.bad and self.sample.kind in DEAD)


def target_of(probe: VipProbe) -> Target:
    """What is asked, and how."""
    kind = "dns" if probe.dns is not None else "tcp" if probe.tcp is not None else "http"
    address = probe.server if kind == "dns" else probe.tcp or probe.asked
    return Target(
        kind, address, probe.dns or "", probe.type, probe.dnsdist_api or "", probe.dnsdist_api_key_file or "", probe.require_backends, probe.http or ""
    )


class Prober:
    """Asks each distinct service once for all VIPs that it stands behind, in threads of its own: a hung one holds nobody up."""

    def __init__(self, file: TrackFile, clock: Clock, journal: Journal, peers: Callable[[str], list[Says]], changed: Callable[[str], None]) -> None:
        self.patients: dict[str, Patient] = {}
        self._file = file
        self._clock = clock
        self._journal = journal
        self._peers = peers
        self._changed = changed
        self._pace = Pace()  # type: ignore[call-arg]
        self._pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="look")
        self._busy: dict[Target, int] = {}

    def rewrite(self, vips: Iterable[Vip], pace: Pace) -> None:
        """These are the VIPs now. The files are written anew: what stood in them was of another time."""
        self._pace = pace
        before, self.patients = self.patients, {}
        for vip in vips:
            target = target_of(vip.probe) if vip.probe is not None else None
            patient = before.get(vip.name)
            if patient is None or patient.target != target:
                patient = Patient(target, vip.probe.require_backends if vip.probe is not None else 0)
            self.patients[vip.name] = patient
            self._say(vip.name, patient)

    def keep_only(self, names: set[str]) -> None:
        """These VIPs are left; the others' services are asked no more."""
        self.patients = {name: patient for name, patient in self.patients.items() if name in names}

    def close(self) -> None:
        """Let the threads go; one that still asks ends by its own deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def run(self) -> None:
        """Look at every service each period, whether or not the look before has ended."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        tasks: set[asyncio.Task[None]] = set()
        while True:
            began = loop.time()
            blind = health.blind(due=due, began=began, period_s=self._pace.every)
            for target in {p.target for p in self.patients.values() if p.target is not None}:
                if self._busy.get(target, 0) < 1 + int(self._pace.timeout / self._pace.every):
                    task = asyncio.create_task(self._look(target, late=blind))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            due = began + self._pace.every if blind else due + self._pace.every
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not any(p.target for p in self.patients.values()):
                await asyncio.sleep(IDLE_S)
                due = loop.time()

    async def _look(self, target: Target, *, late: bool) -> None:
        loop = asyncio.get_running_loop()
        self._busy[target] = self._busy.get(target, 0) + 1
        began = loop.time()
        try:
            sample = await loop.run_in_executor(self._pool, look, target, self._pace.timeout)
        finally:
            self._busy[target] -= 1
        # A look that took far longer than it may was not the service's silence but this machine's.
        if late or loop.time() - began > self._pace.timeout + 0.5 * self._pace.every + 0.05:
            sample = Sample("blind", "this machine was too busy to ask in time", None)
        for name, patient in self.patients.items():
            if patient.target == target:
                self._judge(name, patient, sample)

    def _judge(self, name: str, patient: Patient, sample: Sample) -> None:
        before, now = (patient.counts.bad, patient.sample.kind, patient.dead), self._clock.monotonic()
        if sample.kind != "blind":
            patient.row_dead = patient.row_dead + 1 if sample.kind in DEAD else 0
            patient.sample = sample
            patient.trouble_since = None if sample.kind == "good" else now if patient.trouble_since is None else patient.trouble_since
        since = now - patient.trouble_since if patient.trouble_since is not None else None
        fails, why = verdict(sample, self._peers(name), patient.require, since_s=since)
        patient.why = why
        rise = health.needed(self._pace.rise, sum(now - at < health.WINDOW_S for at in patient.falls))
        counts = health.counted(patient.counts, fails=None if sample.kind == "blind" else fails, fall=self._pace.fall, rise=rise)
        flipped = counts.bad != patient.counts.bad
        patient.counts = counts
        if flipped:
            told = f"{name}: {'this node yields' if counts.bad else 'this node may hold it again'}: {why}"
            emit(Event.VIP_HEALTH_CHANGED, told, level=WARNING)
            self._journal.write(Entry("vip", Event.VIP_HEALTH_CHANGED, name, "act", told))
            if counts.bad:
                patient.falls.append(now)
            self._say(name, patient)
        if before != (patient.counts.bad, patient.sample.kind, patient.dead):
            self._changed(name)

    def _say(self, name: str, patient: Patient) -> None:
        try:
            self._file.write(name, Weight.FAULT if patient.counts.bad else Weight.SERVING)
        except EdgekeeperError as err:
            emit(Event.INTERNAL_ERROR, f"keepalived is not told about {name}: {err}; its own track script still looks", level=WARNING)
