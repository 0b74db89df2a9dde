"""Tell the owners of objects: Events on them, and a status annotation that says of each host how it is.

Telling never stops a pass and is never in a hurry: one Event a second at most, and what cannot be written is tried again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from edgekeeper.errors import EdgekeeperError
from edgekeeper.expose.annotations import STATUS
from edgekeeper.expose.kinds import Origin, Remark
from edgekeeper.expose.news import News, Note, changed_statuses, heard, message, next_due, status_text
from edgekeeper.kube.answer import api_version
from edgekeeper.kube.client import Api
from edgekeeper.kube.errors import Absent, Conflict, Forbidden, Invalid
from edgekeeper.kube.objects import Event as ClusterEvent
from edgekeeper.kube.objects import EventSource, ObjectMeta, ObjectReference
from edgekeeper.log import INFO, WARNING, Event, emit
from edgekeeper.ports import Clock

EVENT_EACH_S: Final = 1.0
STATUS_EACH_S: Final = 0.05
LOOK_S: Final = 30.0
"""How often it is looked whether an Event is to be counted up."""
FORBIDDEN_S: Final = 300.0
"""So long a namespace that takes nothing (it is being deleted, its quota is used up, a right is missing) is left alone."""
FORBIDDEN_MOST: Final = 3
"""After so many refusals in a row it is the right that is missing, everywhere."""
AGAIN_S: Final = 10.0
COMPONENT: Final = "edgekeeper"
_STATUSES: Final = "status annotations"


class Teller:
    """What is to be told, and its telling. ``kind_of`` gives the class of a kind; without one there is nothing to write onto."""

    def __init__(self, api: Api, clock: Clock, *, prefix: str, kind_of: Callable[[str], type[Any] | None]) -> None:
        self.untold = ""
        """Why nothing can be written onto objects just now; "" while it can (or has not been tried)."""
        self.events = 0
        """How many Events were written, or counted up."""
        self.statuses = 0
        """How many status annotations were written."""
        self._api = api
        self._clock = clock
        self._key = f"{prefix}/{STATUS}"
        self._kind_of = kind_of
        self._book: dict[str, News] = {}
        self._queue: dict[Origin, str] = {}
        self._written: dict[Origin, Note] = {}
        self._shut: dict[tuple[str, str], float] = {}
        self._refusals = 0
        self._forbidden: set[tuple[str, str]] = set()
        self._event_news = asyncio.Event()
        self._status_news = asyncio.Event()

    def remark(self, remarks: Iterable[Remark]) -> None:
        """Everything that is to be remarked after a pass, whether it was before or not; returns at once."""
        self._book = heard(self._book, remarks, self._clock.monotonic())
        self._event_news.set()

    def status(self, hosts: Mapping[Origin, Mapping[str, str]], seen: Callable[[Origin], str]) -> None:
        """How every host of every object is, in one word each (none: the object loses its annotation); returns at once.

        ``seen`` says which annotation an object was last seen with. An object that is not named any more loses what was written onto it.
        """
        wanted = {origin: status_text(words) for origin, words in hosts.items()}
        there = {origin: seen(origin) for origin in wanted}
        self._queue = changed_statuses(wanted, there, self._written, self._clock.monotonic())
        if self._queue:
            self._status_news.set()

    async def run(self) -> None:
        """Tell, for ever. Who is not the one writer any more cancels it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tell_events())
            group.create_task(self._tell_statuses())

    async def _tell_events(self) -> None:
        while True:
            name = next_due(self._book, self._clock.monotonic(), self._closed("Events"))
            if name is None:
                await _either(self._event_news, LOOK_S)
                continue
            where = self._book[name].remark.origin.namespace
            await asyncio.sleep(await self._attempt("Events", self._event(name), EVENT_EACH_S, where))

    async def _tell_statuses(self) -> None:
        while True:
            closed = self._closed(_STATUSES)
            origin = next((one for one in self._queue if _place(one) not in closed), None)
            if origin is None:
                await _either(self._status_news, LOOK_S)
                continue
            self._queue[origin] = text = self._queue.pop(origin)  # to the end: one that cannot be written holds up no other
            await asyncio.sleep(await self._attempt(_STATUSES, self._annotate(origin, text), STATUS_EACH_S, _place(origin)))

    def _closed(self, what: str) -> set[str]:
        """The places that take none of these just now."""
        now = self._clock.monotonic()
        self._shut = {key: until for key, until in self._shut.items() if until > now}
        return {where for kind, where in self._shut if kind == what}

    async def _attempt(self, what: str, act: Any, each_s: float, where: str) -> float:
        """Do one thing in one place; the seconds to wait before the next one."""
        try:
            await act
        except Forbidden as err:
            self._tell_of(what, where, str(err))
            self._shut[what, where] = self._clock.monotonic() + FORBIDDEN_S
            self._refusals += 1
            return FORBIDDEN_S if self._refusals > FORBIDDEN_MOST else each_s
        except EdgekeeperError as err:
            self.untold = str(err)
            return AGAIN_S
        self._refusals = 0
        if (what, where) in self._forbidden:
            self._forbidden.discard((what, where))
            emit(Event.EXPOSE_TOLD, f"{what} can be written again in {where}", level=INFO)
        self.untold = ""
        return each_s

    def _tell_of(self, what: str, where: str, why: str) -> None:
        self.untold = why
        if (what, where) not in self._forbidden:
            self._forbidden.add((what, where))
            emit(Event.EXPOSE_UNTOLD, f"{what} cannot be written: {why}; publishing goes on without", level=WARNING)

    async def _event(self, name: str) -> None:
        """Write one Event, or count up the one that is there."""
        news = self._book[name]
        origin, more = news.remark.origin, news.count - news.written
        now = datetime.fromtimestamp(int(self._clock.wall()), UTC)
        try:
            if news.wrote is None:
                await self._first(name, news, now)
            else:
                await self._count_up(name, origin.namespace, more, now)
        except Absent:  # expired, or its namespace is gone: it is new again when it is heard again
            self._book.pop(name, None)
            return
        except Invalid as err:
            self.untold = str(err)
        else:
            self.events += 1
        if name in self._book:
            self._book[name] = replace(self._book[name], written=news.count, wrote=self._clock.monotonic())

    async def _first(self, name: str, news: News, now: datetime) -> None:
        origin, remark = news.remark.origin, news.remark
        kind = self._kind_of(origin.kind)
        if kind is None:
            return
        event = ClusterEvent(
            metadata=ObjectMeta(name=name, namespace=origin.namespace),
            involvedObject=ObjectReference(
                apiVersion=api_version(kind), kind=origin.kind, namespace=origin.namespace, name=origin.name, uid=origin.uid or None
            ),
            reason=remark.reason,
            message=message(remark),
            type="Warning" if remark.warning else "Normal",
            count=news.count,
            firstTimestamp=now,
            lastTimestamp=now,
            source=EventSource(component=COMPONENT),
            reportingComponent=COMPONENT,
            reportingInstance=COMPONENT,
        )
        try:
            await self._api.create(event)
        except Conflict:  # an earlier process has said the same
            await self._count_up(name, origin.namespace, news.count, now)

    async def _count_up(self, name: str, namespace: str, more: int, now: datetime) -> None:
        there = await self._api.get(ClusterEvent, name, namespace=namespace)
        if there is None:
            msg = f"Event {name} is not there any more"
            raise Absent(msg)
        change = {"count": (there.count or 1) + more, "lastTimestamp": now.isoformat().replace("+00:00", "Z")}
        await self._api.patch(ClusterEvent, name, change, namespace=namespace)

    async def _annotate(self, origin: Origin, text: str) -> None:
        """Write one status annotation, or take it away."""
        kind, asked = self._kind_of(origin.kind), text
        try:
            if kind is not None:
                await self._api.patch(kind, origin.name, {"metadata": {"annotations": {self._key: text or None}}}, namespace=origin.namespace)
                self.statuses += 1
        except Absent:
            text = ""
        except Invalid as err:
            self.untold = str(err)
        if text:
            self._written[origin] = Note(text, self._clock.monotonic())
        else:
            self._written.pop(origin, None)
        if self._queue.get(origin) == asked:
            self._queue.pop(origin, None)


def _place(origin: Origin) -> str:
    """Where a right to write onto an object ends: its kind in its namespace."""
    return f"{origin.kind} objects of {origin.namespace}"


async def _either(news: asyncio.Event, seconds: float) -> None:
    """Until there is news, or so long."""
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return
    news.clear()
