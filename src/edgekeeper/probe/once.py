"""One question to one target, and the Sample that comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import time

from edgekeeper.errors import MissingError
from edgekeeper.model.sample import Sample
from edgekeeper.probe import dns, http, icmp, tcp
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import AnswerError, Steps, Wire, open_wire, plain_words, tls_context

SLOW_S = 0.9
"""A good answer after this long is slow: a lost SYN is sent again after 1 s, and a black hole shorter than that hides in it."""
_ASK = {"dns": dns.ask, "tcp": tcp.ask, "http": http.ask}
_TURNS = {"udp": 2, "icmp": 2, "tcp": 3, "tls": 6}
_serial = itertools.count(1)


def _how_far(target: Target, steps: Steps, wire: Wire | None) -> str | None:
    """How far a question over a connection came in time: a black hole behind a connection that stands is another fault than none at all."""
    if wire is not None:
        return f"timed out ({'TCP and TLS stand' if target.transport == 'tls' else 'TCP stands'}, no byte of an answer came)"
    if steps.connect_ms is not None:
        return "timed out (TCP stands, the TLS handshake did not end)"
    return None if steps.found else "timed out (its name was not resolved in time)"


def _cancelled() -> bool:
    """Whether somebody wants this task itself to end (a question on a kept connection is cancelled when too many wait)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Asker:
    """Asks one target, over a fresh connection each time or over one that is kept.

    ``context`` is for many targets that share one: each that is made reads all certificates of the system, 10 ms and 1.5 MiB.
    With ``mark`` each request by HTTP carries an id of its own, which begins with it.
    """

    def __init__(self, target: Target, *, keep: bool = False, context: ssl.SSLContext | None = None, mark: str = "") -> None:
        self._target = target
        self._keep = keep
        self._mark = mark if target.kind == "http" else ""
        self._context = context if context is not None else tls_context(target)
        self._kept: asyncio.Task[Wire] | None = None

    @property
    def turns(self) -> int:
        """How often a question waits for the loop before its answer is read."""
        return _TURNS[self._target.transport] if not self._keep else 2

    async def ask(self, timeout_s: float) -> Sample:
        """One question, one Sample; never raises."""
        ident = f"{self._mark}{next(_serial)}" if self._mark else None
        target = http.marked(self._target, ident) if ident is not None else self._target
        ts, sent = time.time(), time.monotonic()
        error: str | None = None
        said: str | None = None
        wire: Wire | None = None
        steps = Steps()
        try:
            async with asyncio.timeout(timeout_s):
                if self._target.transport == "udp":
                    said = await self._datagram(steps)
                elif self._target.transport == "icmp":
                    await self._echo(steps)
                else:
                    wire = await self._wire(steps)
                    said = await _ASK[target.kind](target, wire)
        except (AnswerError, MissingError) as err:
            error = str(err)
        except TimeoutError as err:
            error = _how_far(self._target, steps, wire) or plain_words(err)
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError, UnicodeError, asyncio.CancelledError) as err:
            if isinstance(err, asyncio.CancelledError) and _cancelled():
                raise
            error = plain_words(err)
        finally:
            done = time.monotonic()
            if wire is not None and not self._keep:
                await wire.close()
        ok = error is None
        return Sample(
            ts=ts,
            target=self._target.url,
            conn="warm" if self._keep else "fresh",
            sent=sent,
            done=done,
            ok=ok,
            slow=ok and done - sent > SLOW_S,
            error=error,
            connect_ms=round(steps.connect_ms, 3) if steps.connect_ms is not None else None,
            tls_ms=round(steps.tls_ms, 3) if steps.tls_ms is not None else None,
            first_byte_ms=round((done - sent) * 1000, 3) if ok and self._target.kind != "tcp" else None,
            answered_by=said,
            id=ident,
        )

    async def _datagram(self, steps: Steps) -> str | None:
        sock: socket.socket = await dns.open_datagram(self._target)
        steps.found = True
        try:
            return await dns.ask_datagram(self._target, sock)
        finally:
            sock.close()

    async def _echo(self, steps: Steps) -> None:
        sock: socket.socket = await icmp.open_echo(self._target)
        steps.found = True
        try:
            await icmp.ask_echo(sock)
        finally:
            sock.close()

    async def _wire(self, steps: Steps) -> Wire:
        if not self._keep:
            return await open_wire(self._target, self._context, steps)
        steps.found = True  # or another question looks for it: several share this connection
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
