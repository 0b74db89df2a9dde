"""One question to one target, and the Sample that comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time

from edgekeeper.errors import MissingError
from edgekeeper.model.sample import Sample
from edgekeeper.probe import dns, http, tcp
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import AnswerError, Wire, open_wire, plain_words, tls_context

SLOW_S = 0.9
"""A good answer after this long is slow: a lost SYN is sent again after 1 s, and a black hole shorter than that hides in it."""
_ASK = {"dns": dns.ask, "tcp": tcp.ask, "http": http.ask}


def _cancelled() -> bool:
    """Whether somebody wants this task itself to end (a question on a kept connection is cancelled when too many wait)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Asker:
    """Asks one target, over a fresh connection each time or over one that is kept."""

    def __init__(self, target: Target, *, keep: bool = False) -> None:
        self._target = target
        self._keep = keep
        self._context: ssl.SSLContext | None = tls_context(target)
        self._kept: asyncio.Task[Wire] | None = None

    async def ask(self, timeout_s: float) -> Sample:
        """One question, one Sample; never raises."""
        ts, sent = time.time(), time.monotonic()
        error: str | None = None
        said: str | None = None
        wire: Wire | None = None
        try:
            async with asyncio.timeout(timeout_s):
                if self._target.transport == "udp":
                    said = await self._datagram()
                else:
                    wire = await self._wire()
                    said = await _ASK[self._target.kind](self._target, wire)
        except (AnswerError, MissingError) as err:
            error = str(err)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError, UnicodeError, asyncio.CancelledError) as err:
            if isinstance(err, asyncio.CancelledError) and _cancelled():
                raise
            error = plain_words(err)
        finally:
            done = time.monotonic()
            if wire is not None and not self._keep:
                await wire.close()
        ok = error is None
        fresh = wire is not None and not self._keep
        return Sample(
            ts=ts,
            target=self._target.url,
            conn="warm" if self._keep else "fresh",
            sent=sent,
            done=done,
            ok=ok,
            slow=ok and done - sent > SLOW_S,
            error=error,
            connect_ms=round(wire.connect_ms, 3) if wire is not None and fresh else None,
            tls_ms=round(wire.tls_ms, 3) if wire is not None and fresh and wire.tls_ms is not None else None,
            first_byte_ms=round((done - sent) * 1000, 3) if ok and self._target.kind != "tcp" else None,
            answered_by=said,
        )

    async def _datagram(self) -> str | None:
        sock: socket.socket = await dns.open_datagram(self._target)
        try:
            return await dns.ask_datagram(self._target, sock)
        finally:
            sock.close()

    async def _wire(self) -> Wire:
        if not self._keep:
            return await open_wire(self._target, self._context)
        if self._kept is None or (self._kept.done() and self._broken(self._kept)):
            self._kept = asyncio.create_task(open_wire(self._target, self._context))
        # Several questions may wait for the same connection; a deadline of one must not end it for the others.
        return await asyncio.shield(self._kept)

    @staticmethod
    def _broken(task: asyncio.Task[Wire]) -> bool:
        return task.cancelled() or task.exception() is not None or task.result().closed

    async def close(self) -> None:
        """Close the kept connection."""
        if self._kept is not None:
            self._kept.cancel()
            with contextlib.suppress(OSError, ssl.SSLError, asyncio.CancelledError):
                await (await self._kept).close()
