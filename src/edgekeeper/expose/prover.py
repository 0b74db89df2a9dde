"""Proofs in the background: each host that was written is asked for until it answers, or its time is over; then now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from edgekeeper.config.expose import Expose
from edgekeeper.expose.proof import Proof, prove
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.model.entry import Entry
from edgekeeper.ports import Clock, Journal

AGAIN_S: Final = 1.0
"""Between two questions for a host that was just written: the proxy gets its routes within about that time. Later the pause grows with the time
since the write, to a minute: where the proxy is down, thousands of hosts wait for it.
"""

AT_ONCE: Final = 8
"""Questions at the same time."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is known of a host from outside."""

    ok: bool
    why: str
    ms: float | None
    at: float


class Prover:
    """Asks for the hosts that were written; ``results`` by host."""

    def __init__(self, expose: Expose, clock: Clock, journal: Journal, ask: Callable[[str], Awaitable[Proof]] | None = None) -> None:
        settings = expose.prove
        self.results: dict[str, Result] = {}
        self._within_s = settings.within
        self._ask = ask or partial(prove, at=settings.addresses, port=443, timeout_s=settings.timeout)
        self._clock = clock
        self._journal = journal
        self._wanted: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._woken = asyncio.Event()

    def wrote(self, host: str) -> None:
        """This host was written; it is asked for from now on until it answers."""
        now = self._clock.monotonic()
        self._wanted[host] = self._due[host] = now
        self._woken.set()

    def forget(self, host: str) -> None:
        """This host is not published any more."""
        for known in (self._wanted, self._due, self.results):
            known.pop(host, None)

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            now = self._clock.monotonic()
            due = sorted((host for host, at in self._due.items() if at <= now), key=self._due.__getitem__)[:AT_ONCE]
            if due:
                await asyncio.gather(*(self._one(host) for host in due))
                continue
            self._woken.clear()
            wait = min(self._due.values(), default=now + 60.0) - now
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def _one(self, host: str) -> None:
        wanted = self._wanted.get(host)
        if wanted is None:  # gone since it was chosen
            return
        proof = await self._ask(host)
        if self._wanted.get(host) != wanted:
            return  # written again, or gone, meanwhile
        now = self._clock.monotonic()
        slowest = max((one.ms or 0.0 for one in proof.answers), default=None)
        over = now - wanted >= self._within_s
        if proof.ok or over:
            before = self.results.get(host)
            self.results[host] = Result(proof.ok, proof.text, slowest, self._clock.wall())
            if before is None or before.ok != proof.ok:
                self._tell(host, proof, now - wanted)
        if proof.ok:
            self._due.pop(host, None)
        else:
            self._due[host] = now + min(60.0, max(AGAIN_S, (now - wanted) / 2))

    def _tell(self, host: str, proof: Proof, after_s: float) -> None:
        event = Event.EXPOSE_PROVED if proof.ok else Event.EXPOSE_NOT_PROVED
        why = f"{proof.text}, {after_s:.1f} s after it was written" if proof.ok else f"no proof within {after_s:.0f} s of the write: {proof.text}"
        emit(event, f"{host}: {why}", level=INFO if proof.ok else WARNING, host=host)
        self._journal.write(Entry("expose", event, host, "act" if proof.ok else "alarm", why))
