"""The other nodes, asked all the time what they say of one role: each on its own, so that one that hangs delays nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, Protocol, Self, TypeVar

from edgekeeper.config.ops import Ops, Peer
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import secrets
from edgekeeper.host.poll import Poll
from edgekeeper.host.tls import Trust
from edgekeeper.ports import Clock
from edgekeeper.runtime import cancelled, kept_alive

DEADLINE_S = 1.0
"""From a question to the last byte of its answer."""

SLACK_S = 0.25
"""An answer that took longer than the deadline by so much was read late: this process was frozen meanwhile, and the answer is of before."""

BEAT_S = 1.0
"""``changed`` is called at least so often, so that what is written about the peers shows that somebody still writes it."""

UNASKED = "not asked yet"
_LIMIT = 256 * 1024
_SILENCE = " did not answer"
_UNSAID = "no ops address in nodes:, so what it does is not known here"


class View(Protocol):
    """What is known of another node: what it said last, and ``why`` the last question was not answered so ("" when it was)."""

    @property
    def why(self) -> str:
        """Why the last question gave nothing."""

    def failing(self, why: str, asked: float | None) -> Self:
        """The same after a question that gave nothing, asked at this monotonic time (None: it could not even be asked)."""


V = TypeVar("V", bound=View)


class Manner(Protocol[V]):
    """How one role speaks of itself: which role is asked about, how often, and how an answer is read."""

    role: str

    def every_s(self, nodes: int) -> float:
        """Seconds between two questions to each of so many nodes."""

    def unasked(self, name: str, why: str) -> V:
        """A node that has said nothing yet, and why."""

    def read(self, view: V, status: int, text: str, asked: float, now: float) -> tuple[V, bool] | str:
        """The node after this answer and whether that is news, or the sentence that says why the answer says nothing. Never raises."""


class Polling(Generic[V]):
    """The other nodes of ``nodes``, as ``views``: one each, also for one that cannot be asked.

    ``changed`` is called when one of them says something new, or cannot be asked any more, and each ``BEAT_S``.
    A question over a kept TLS connection costs about 0.5 ms of processor here and there (measured 2026-11-30).
    """

    def __init__(self, node: str, nodes: Mapping[str, Peer], ops: Ops, clock: Clock, manner: Manner[V], changed: Callable[[], None]) -> None:
        self._node = node
        self._clock = clock
        self._manner = manner
        self._changed = changed
        self._told_at = clock.monotonic()
        self._rewritten = asyncio.Event()
        self._urls: dict[str, str] = {}
        self._ops = ops
        self._haste_s: float | None = None
        self._hurry: dict[str, asyncio.Event] = {}
        self.asked = asyncio.Event()
        """Set after each question, whatever became of it; who waits for it clears it."""
        self.views: dict[str, V] = {}
        self.rewrite(nodes, ops)

    def rewrite(self, nodes: Mapping[str, Peer], ops: Ops) -> None:
        """These are the nodes now; what those that stay have said is kept."""
        others = {name: peer for name, peer in nodes.items() if name != self._node}
        urls = {name: f"{peer.ops.rstrip('/')}/status?role={self._manner.role}" for name, peer in others.items() if peer.ops}
        kept = {name for name, url in urls.items() if self._urls.get(name) == url}
        self.views = {
            name: self.views[name] if name in kept and name in self.views else self._manner.unasked(name, UNASKED if name in urls else _UNSAID)
            for name in others
        }
        self._ops = ops
        self._urls = urls
        self._rewritten.set()

    def hasten(self, period_s: float | None) -> None:
        """Ask each of them at least so often from now on, beginning now; None is as often as usual."""
        self._haste_s = period_s
        if period_s is not None:
            for event in self._hurry.values():
                event.set()

    async def follow(self) -> None:
        """Ask them for ever."""
        while True:
            self._rewritten.clear()
            period_s = self._manner.every_s(len(self._urls))
            self._hurry = {name: asyncio.Event() for name in self._urls}
            works = {name: partial(self._ask, name, url, period_s * i / len(self._urls), period_s) for i, (name, url) in enumerate(self._urls.items())}
            tasks = [asyncio.create_task(kept_alive(f"asking {name}", work, partial(self._failed, name))) for name, work in works.items()]
            try:
                while not self._rewritten.is_set():
                    self._tell(news=False)
                    await within(self._rewritten, max(0.01, self._told_at + BEAT_S - self._clock.monotonic()))
            finally:
                await cancelled(tasks)

    async def _ask(self, name: str, url: str, delay_s: float, period_s: float) -> None:
        """Ask one of them for ever, over a connection that is kept while all goes well."""
        loop = asyncio.get_running_loop()
        hurry = self._hurry[name]
        await within(hurry, delay_s)  # not all at once
        ops = self._ops
        poll = Poll(url, Trust(ops.believed_ca, ops.certificate, ops.key), limit=_LIMIT)
        headers: dict[str, str] | None = None
        try:
            while True:
                hurry.clear()
                begun, asked = loop.time(), self._clock.monotonic()
                try:
                    if headers is None:
                        headers = {"Authorization": f"Bearer {secrets.read(ops.token_file)}"} if ops.token_file else {}
                    why = await self._once(name, poll, headers, asked)
                except EdgekeeperError as err:
                    why = str(err)
                if why:
                    headers = None  # the token may be another one by now
                    self._failed(name, why, asked)
                self.asked.set()
                await within(hurry, begun + min(period_s, self._haste_s or period_s) - loop.time())
        finally:
            poll.close()

    async def _once(self, name: str, poll: Poll, headers: Mapping[str, str], asked: float) -> str:
        """Ask once; why that gave nothing, or an empty text."""
        answer = await poll.get(deadline_s=DEADLINE_S, headers=headers)
        now = self._clock.monotonic()
        view = self.views.get(name)
        if view is None:
            return ""
        read = self._manner.read(view, answer.status, answer.text, asked, now)
        if isinstance(read, str):
            return read
        if now - asked > DEADLINE_S + SLACK_S:
            return f"this node stood still for {now - asked:.1f} s while it asked {name}; the answer may be as old"
        self.views[name], news = read
        self._tell(news=news)
        return ""

    def _failed(self, name: str, why: str | None, asked: float | None = None) -> None:
        """It could not be asked, or has not said anything; what it said before stays, and becomes old."""
        view = self.views.get(name)
        if why is None or view is None:
            return
        self.views[name] = view.failing(why, asked)
        # refused, unreachable, silent: a cut shows in turns as each, and is news once
        self._tell(news=view.why != why and not (_SILENCE in view.why and _SILENCE in why))

    def _tell(self, *, news: bool) -> None:
        now = self._clock.monotonic()
        if news or now - self._told_at >= BEAT_S:
            self._told_at = now
            self._changed()


async def within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so long (but let others work in between); whether it is set."""
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        return False
    return True
