"""What the parts of a watch exchange: where its lines come from, what it asks, and what it cures with.

A source hands over whole lines as they arrive and says what it can see; a cure is one act on the service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

LATE_S: Final = 0.5
"""A round that failed so much later than its timeout was read late: this process was frozen meanwhile, and the failure says nothing."""


Inside = Callable[[], Awaitable[str]]
"""Gives the path of a network namespace as it is now (a restarted container has another one); MissingError when there is none."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a source can see now: ``seeing`` with the reason why not, and when the service was last started (Unix seconds, None: unknown)."""

    seeing: bool
    why: str
    started: float | None = None


class Source(Protocol):
    """Where the lines of a service come from."""

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """Follow the log from now on, for ever: no line of before, none twice, none missed.

        ``arrived`` gets whole lines, each with its end, and the monotonic time of their arrival. ``state`` is told whenever the
        sight changes. Whatever the world does (a service that is gone, a rotation, a daemon's restart) is told and tried again.
        """


@dataclass(frozen=True, slots=True)
class Answer:
    """One round of probing: whether the service is well, the sentence that says why, and when it was asked (monotonic).

    ``known`` is False where it could not be asked at all (its name does not resolve, the program that asks is missing): that says
    nothing of the service.
    """

    well: bool
    why: str
    asked: float
    known: bool = True

    def stale(self, now: float, timeout_s: float) -> bool:
        """Whether it is a failure that was read too late to say anything; ``now`` is monotonic."""
        return not self.well and now - self.asked > timeout_s + LATE_S


class Asker(Protocol):
    """Asks the service one round, over a fresh connection, within its own timeout; never raises."""

    async def ask(self) -> Answer:
        """Ask now."""


class Cure(Protocol):
    """One step of a cure."""

    name: str

    async def ready(self, *, ours: bool, since: float) -> str | None:
        """Why it could not, or must not, be applied now, or None.

        What somebody stopped is not wedged, unless ``ours`` (a cure of ours may have left it so). What was started after ``since``
        (Unix seconds, when the rounds were asked that speak against it) has to fail anew.
        """

    async def apply(self) -> str | None:
        """Do it, within its own deadline; None when it was done, else the sentence that says why not."""


@runtime_checkable
class Rehearsed(Protocol):
    """A cure that can be gone through without being applied."""

    name: str

    async def rehearse(self) -> str | None:
        """Why it could not be applied now, or None; nothing is changed."""


class Guard(Protocol):
    """What may forbid a cure. ``note`` is what it found last, in full: what it could not find out forbids nothing, and is told there."""

    note: str

    async def forbids(self) -> str | None:
        """Why a cure must not happen now, or None; within its own deadline, never raises."""
