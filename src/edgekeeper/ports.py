"""The seams, on one page: what the shared mechanisms ask of an engine, a source, a clock, a journal.

An *intent* is what a role wants of its engine (for dnsdist: a ``Topology``), a frozen value that the
supervisor passes around without looking inside. A *seat* is what one process of the engine is given
at its start and keeps: its credentials and its private ports; a process beside it has another seat.
Files are a pure function of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from edgekeeper.model.backend import Membership
from edgekeeper.model.entry import Entry
from edgekeeper.model.moment import Moment


class Cost(StrEnum):
    """What bringing a changed configuration into force costs the clients, cheapest first."""

    NOTHING = "nothing"
    LIVE = "live"
    RELOAD = "reload"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Change:
    """What it costs to get from one intent to another, what kind it is (a metric's label), and why."""

    cost: Cost
    reason: str
    why: str


class Clock(Protocol):
    """Time as an argument: seconds that never jump, the wall clock, and all clocks at once."""

    def monotonic(self) -> float:
        """Seconds since some moment; never jumps."""

    def wall(self) -> float:
        """Seconds since 1970; may jump when somebody sets the clock."""

    def moment(self) -> Moment:
        """Now by every clock, for what must be dated over restarts, reboots and jumps of the wall clock."""


class Journal(Protocol):
    """Where every decision that acted, or was held back, is written."""

    def write(self, entry: Entry) -> None:
        """Keep the entry; never raises (a full disk is counted, not felt)."""


class Source(Protocol):
    """Who may answer. ``read`` returns a full snapshot or raises an EdgekeeperError. Whoever made one closes it."""

    async def read(self) -> Membership:
        """The members now, all of them."""

    async def changed(self) -> None:
        """Return when reading again may say something new (a file changed, a period is over)."""

    async def aclose(self) -> None:
        """Let go of what it holds: connections, and what runs beside it."""


class Engine(Protocol):
    """What an engine knows about itself. Pure: no clock, file, process or socket.

    ``uncertain`` is what brings it back to what is wanted when a live change failed or was interrupted:
    RELOAD where it reads its files again without losing a client, else RESTART.
    """

    name: str
    uncertain: Cost

    def files(self, intent: Any, seat: Any) -> Mapping[str, str]:
        """File name to text, byte-stable: the same intent and seat give the same bytes."""

    def change(self, old: Any, new: Any) -> Change:
        """What getting from ``old`` to ``new`` costs."""

    def check_argv(self, folder: str) -> Sequence[str]:
        """The engine's own validator on the files in ``folder``."""

    def judge(self, code: int, output: str) -> str | None:
        """Why the validator refused, or None when it accepted (a signal or silence is a refusal)."""

    def run_argv(self, folder: str, seat: Any) -> Sequence[str]:
        """The engine on the files in ``folder``, staying in the foreground; ``seat`` is None when it cannot be read any more."""

    def dump(self, intent: Any, seat: Any) -> str:
        """Intent and seat as JSON, kept beside the files for the next supervisor."""

    def load(self, text: str) -> tuple[Any, Any]:
        """The inverse of ``dump``; ValueError when it cannot be read."""

    def steerable(self, intent: Any) -> Sequence[str]:
        """UDP addresses ``host:port`` that two processes can share, for an overlapped restart."""


class Hands(Protocol):
    """What must be done to a running engine. Thin effects; a refusal is a sentence, None is success."""

    def new_seat(self, intent: Any) -> Any:
        """Fresh credentials and free private ports."""

    async def preflight(self, intent: Any, seat: Any, beside: Any | None, serving: int | None = None) -> str | None:
        """What the validator cannot see. ``beside`` is the seat of a process that shares the listeners; ``serving`` its pid.

        A pid without a seat is one whose record is lost: it makes room before another one starts.
        """

    async def prove(self, intent: Any, seat: Any, pid: int) -> str | None:
        """That this process runs this configuration and answers."""

    async def live(self, old: Any, new: Any, seat: Any) -> str | None:
        """Bring the difference into the running engine, idempotently, and read it back."""

    async def reload(self, new: Any, seat: Any, pid: int) -> str | None:
        """Have process ``pid`` read its files again, and prove that it did; an engine that cannot says so."""
