"""What is asked before a cure: a pause, the calendar, the service's own health document, and what the service needs to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from edgekeeper.errors import EdgekeeperError, UsageError
from edgekeeper.host import poll
from edgekeeper.host.clock import SystemClock
from edgekeeper.model.maintenance import Window, covering
from edgekeeper.ports import Clock
from edgekeeper.probe.target import Target
from edgekeeper.watch import pause as pauses
from edgekeeper.watch.asker import TargetsAsker
from edgekeeper.watch.forbid import Known, forbids, judge_health, paused
from edgekeeper.watch.seams import Inside

ASK_S = 1.5
"""How long a health document or what is needed may take to answer. A cure that is wanted waits for it."""
_MOST = 2**18
_ANSWERED = tuple(range(400, 500))
"""A server that says 401 or 404 is reachable; one that says 502 speaks for another that is not."""


@dataclass(frozen=True, slots=True)
class Health:
    """A JSON document of the service and the keys in it that must be true; ``inside`` gives the network namespace that it is asked from."""

    url: str
    need: tuple[str, ...]
    inside: Inside | None = None


class Guards:
    """What a watch asks before a cure, all of it at the same time; anything that says no forbids. A ``seams.Guard``.

    ``pause`` is the file that pauses the watch; ``maintenance`` are windows in the time zone ``zone``; ``health`` is the service's own
    document; of ``reachable`` one must answer. What is not known forbids nothing, and ``note`` says so: it is the last finding in full,
    also when it allowed the cure. UsageError for a time zone that is not known here.
    """

    def __init__(
        self,
        *,
        pause: Path | None = None,
        maintenance: Sequence[Window] = (),
        zone: str = "UTC",
        health: Health | None = None,
        reachable: Sequence[Target] = (),
        clock: Clock | None = None,
    ) -> None:
        self._pause = pause
        self._windows = tuple(maintenance)
        self._zone = time_zone(zone)
        self._zone_name = zone
        self._health = health
        targets = [replace(target, ok=(*target.ok, *_ANSWERED)) if target.kind == "http" else target for target in reachable]
        self._asker = TargetsAsker(targets, need="any", timeout_s=ASK_S) if targets else None
        self._clock: Clock = clock if clock is not None else SystemClock()
        self.note = "it has not been asked yet"

    async def forbids(self) -> str | None:
        """Why a cure must not happen now, or None; within 2 s."""
        local = self._paused() or self._maintained()
        if local is None:
            questions = [one for one in (self._read(), self._reach()) if one is not None]
            found = forbids(await asyncio.gather(*questions))
        else:
            found = Known(False, local)
        self.note = found.why
        return found.why if found.may is False else None

    def _paused(self) -> str | None:
        try:
            return paused(pauses.read(self._pause), self._clock.wall()) if self._pause is not None else None
        except OSError as err:
            return f"whether cures are paused cannot be told: {self._pause}: {err.strerror or err}"

    def _maintained(self) -> str | None:
        now = datetime.fromtimestamp(self._clock.wall(), self._zone)
        found = covering(self._windows, now.weekday(), now.hour * 3600 + now.minute * 60 + now.second)
        return f"it is a maintenance window ({found.text} {self._zone_name})" if found is not None else None

    def _read(self) -> Awaitable[Known] | None:
        return _read(self._health) if self._health is not None else None

    def _reach(self) -> Awaitable[Known] | None:
        return _reach(self._asker) if self._asker is not None else None


def time_zone(name: str) -> tzinfo:
    """The time zone of this name; UsageError when this machine does not know it. UTC is known everywhere."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        msg = f"the time zone {name!r} is not known here; write one like Europe/Berlin (the package tzdata has them), or UTC"
        raise UsageError(msg) from None


async def _read(document: Health) -> Known:
    try:
        async with asyncio.timeout(ASK_S):
            inside = await document.inside() if document.inside is not None else None
            answer = await poll.once(document.url, deadline_s=ASK_S, inside=inside, limit=_MOST)
    except TimeoutError:
        return Known(None, f"{document.url} did not answer within {ASK_S:g} s")
    except EdgekeeperError as err:
        return Known(None, str(err))
    return judge_health(document.url, answer.status, answer.text, document.need)


async def _reach(asker: TargetsAsker) -> Known:
    answer = await asker.ask()
    if answer.well:
        return Known(True, answer.why)
    return Known(False, f"what the service needs cannot be reached, restarted now it would serve nothing: {answer.why}")
