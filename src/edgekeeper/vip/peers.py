"""The other nodes, asked all the time what they say of the VIPs: each on its own, so that one that hangs delays nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from edgekeeper.config.ops import Ops, Peer
from edgekeeper.errors import EdgekeeperError
from edgekeeper.host import secrets
from edgekeeper.host.files import write_text
from edgekeeper.host.poll import Poll
from edgekeeper.host.tls import Trust
from edgekeeper.ports import Clock
from edgekeeper.runtime import cancelled, kept_alive
from edgekeeper.vip.peersay import PeerView, PeerVip, every_s, heard, report, said, unheard

__all__ = ["DEADLINE_S", "PEERS_FILE", "PeerView", "PeerVip", "Peers", "heard", "unheard", "write_peers"]

DEADLINE_S = 1.0
"""From a question to the last byte of its answer."""

SLACK_S = 0.25
"""An answer that took longer than the deadline by so much was read late: this process was frozen meanwhile, and the answer is of before."""

BEAT_S = 1.0
"""``changed`` is called at least so often, so that what is written about the peers shows that somebody still writes it."""

PEERS_FILE = "peers.json"
_LIMIT = 256 * 1024
_SILENCE = " did not answer"
_UNSAID = "no ops address in nodes:, so what it does is not known here"


class Peers:
    """The other nodes of ``nodes:``, as ``views``: one each, also for one that cannot be asked.

    ``changed`` is called when one of them says something new, or cannot be asked any more, and each ``BEAT_S``.
    A question over a kept TLS connection costs about 0.5 ms of processor here and there (measured 2026-11-30).
    """

    def __init__(self, node: str, nodes: Mapping[str, Peer], ops: Ops, clock: Clock, changed: Callable[[], None]) -> None:
        self._node = node
        self._clock = clock
        self._changed = changed
        self._told_at = clock.monotonic()
        self._rewritten = asyncio.Event()
        self._urls: dict[str, str] = {}
        self._ops = ops
        self.views: dict[str, PeerView] = {}
        self.rewrite(nodes, ops)

    def rewrite(self, nodes: Mapping[str, Peer], ops: Ops) -> None:
        """These are the nodes now; what those that stay have said is kept."""
        others = {name: peer for name, peer in nodes.items() if name != self._node}
        urls = {name: f"{peer.ops.rstrip('/')}/status?role=vip" for name, peer in others.items() if peer.ops}
        kept = {name for name, url in urls.items() if self._urls.get(name) == url}
        self.views = {
            name: self.views[name] if name in kept and name in self.views else PeerView(name, None, "not asked yet" if name in urls else _UNSAID)
            for name in others
        }
        self._ops = ops
        self._urls = urls
        self._rewritten.set()

    async def follow(self) -> None:
        """Ask them for ever."""
        while True:
            self._rewritten.clear()
            period_s = every_s(len(self._urls))
            works = {name: partial(self._ask, name, url, period_s * i / len(self._urls), period_s) for i, (name, url) in enumerate(self._urls.items())}
            tasks = [asyncio.create_task(kept_alive(f"asking {name}", work, partial(self._failed, name))) for name, work in works.items()]
            try:
                while not self._rewritten.is_set():
                    self._tell(news=False)
                    await _within(self._rewritten, max(0.01, self._told_at + BEAT_S - self._clock.monotonic()))
            finally:
                await cancelled(tasks)

    async def _ask(self, name: str, url: str, delay_s: float, period_s: float) -> None:
        """Ask one of them for ever, over a connection that is kept while all goes well."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(delay_s)  # not all at once
        ops = self._ops
        poll = Poll(url, Trust(ops.believed_ca, ops.certificate, ops.key), limit=_LIMIT)
        headers: dict[str, str] | None = None
        try:
            while True:
                due = loop.time() + period_s
                try:
                    if headers is None:
                        headers = {"Authorization": f"Bearer {secrets.read(ops.token_file)}"} if ops.token_file else {}
                    why = await self._once(name, poll, headers)
                except EdgekeeperError as err:
                    why = str(err)
                if why:
                    headers = None  # the token may be another one by now
                    self._failed(name, why)
                await asyncio.sleep(due - loop.time())
        finally:
            poll.close()

    async def _once(self, name: str, poll: Poll, headers: Mapping[str, str]) -> str:
        """Ask once; why that gave nothing, or an empty text."""
        asked = self._clock.monotonic()
        answer = await poll.get(deadline_s=DEADLINE_S, headers=headers)
        vips, why = said(name, answer.status, answer.text)
        now = self._clock.monotonic()
        if not why and now - asked > DEADLINE_S + SLACK_S:
            why = f"this node stood still for {now - asked:.1f} s while it asked {name}; the answer may be as old"
        view = self.views.get(name)
        if not why and view is not None:
            self.views[name] = PeerView(name, now, "", vips)
            self._tell(news=view.vips != vips or bool(view.why))
        return why

    def _failed(self, name: str, why: str | None) -> None:
        """It could not be asked, or has not said anything; what it said before stays, and becomes old."""
        view = self.views.get(name)
        if why is None or view is None or view.why == why:
            return
        self.views[name] = replace(view, why=why)
        self._tell(news=not (_SILENCE in view.why and _SILENCE in why))  # refused, unreachable, silent: a cut shows in turns as each, and is news once

    def _tell(self, *, news: bool) -> None:
        now = self._clock.monotonic()
        if news or now - self._told_at >= BEAT_S:
            self._told_at = now
            self._changed()


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


def write_peers(folder: Path, views: Mapping[str, PeerView], now: float) -> None:
    """Write what the peers say for the track script, which may run as another user and trusts nothing that is old.

    Each time as a whole, and not synced: after a crash of the machine nothing of it counts.
    """
    write_text(folder / PEERS_FILE, report(views, now), mode=0o644, sync=False)
