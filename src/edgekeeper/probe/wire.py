"""A connection to a target: opened with its times taken, answers matched to questions, kept or thrown away.

A kept one is not closed when an answer is late: clients of long-lived connections do not do so
either, and a probe that did would never see a session that is pinned to something dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from edgekeeper.probe.lookup import Place, places
from edgekeeper.probe.target import Target

NO_NAME = "no such name"
_PENDING = 1000


class AnswerError(Exception):
    """An answer came and says no; its text is what it says."""


@dataclass(slots=True)
class Wire:
    """One open connection; ``pending`` are the questions under way by their key, oldest first."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connect_ms: float
    tls_ms: float | None
    pending: OrderedDict[int, asyncio.Future[bytes]] = field(default_factory=OrderedDict)
    reading: asyncio.Task[None] | None = None

    @property
    def closed(self) -> bool:
        """Whether the other side has ended it."""
        return self.reader.at_eof() or self.writer.is_closing() or (self.reading is not None and self.reading.done())

    def expect(self, key: int) -> asyncio.Future[bytes]:
        """A place for the answer with this key."""
        while len(self.pending) >= _PENDING:
            self.pending.popitem(last=False)[1].cancel()
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.pending[key] = future
        return future

    def arrived(self, key: int | None, data: bytes) -> None:
        """An answer came: for the question with this key, or (None) for the oldest."""
        if key is None and self.pending:
            key = next(iter(self.pending))
        future = self.pending.pop(key, None) if key is not None else None
        if future is not None and not future.done():
            future.set_result(data)

    def lost(self, error: BaseException) -> None:
        """The connection ended: so did every question under way."""
        while self.pending:
            _, future = self.pending.popitem(last=False)
            if not future.done():
                future.set_exception(error)
                future.exception()  # one that nobody waits for any more is no error of ours

    async def close(self) -> None:
        """Close it for good, without waiting for the other side."""
        if self.reading is not None:
            self.reading.cancel()
            self.reading = None  # else the two hold each other, and with TLS a quarter of a megabyte, until the garbage is collected
        self.writer.transport.abort()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


@dataclass(slots=True)
class Steps:
    """How far opening came, in milliseconds; None: not as far. ``found``: whether an address was known."""

    found: bool = False
    connect_ms: float | None = None
    tls_ms: float | None = None


async def open_wire(target: Target, context: ssl.SSLContext | None, steps: Steps | None = None) -> Wire:
    """Connect, and shake hands where the target wants TLS; ``steps`` tells how far it came if it does not come to the end."""
    steps = steps if steps is not None else Steps()
    began = time.monotonic()
    at = await places(target.host, target.port)
    steps.found = True
    sock = await _connected(at)
    connected = time.monotonic()
    steps.connect_ms = (connected - began) * 1000
    try:
        if context is None:
            reader, writer = await asyncio.open_connection(sock=sock)
        else:
            # Not StreamWriter.start_tls: what that leaves behind stays until the garbage is collected, too.
            reader, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname=target.sni)
            steps.tls_ms = (time.monotonic() - connected) * 1000
    except BaseException:
        sock.close()
        raise
    return Wire(reader, writer, steps.connect_ms, steps.tls_ms)


async def _connected(found: list[Place]) -> socket.socket:
    """A socket to the first of these places that takes a connection, one attempt each."""
    *others, last = found
    for place in others:
        with contextlib.suppress(OSError):
            return await _connected_to(place)
    return await _connected_to(last)


async def _connected_to(place: Place) -> socket.socket:
    family, address = place
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


def tls_context(target: Target) -> ssl.SSLContext | None:
    """The context for a target that wants TLS; ``verify=no`` accepts any certificate."""
    if target.transport != "tls":
        return None
    context = ssl.create_default_context()
    if not target.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def unasked(error: str) -> bool:
    """Whether a question with this error never left: its name could not be resolved, or this process has no descriptor left."""
    return error == NO_NAME or from_here(error)


def from_here(error: str) -> bool:
    """Whether a question with this error never left because this process, or this machine, has no descriptor left."""
    return error in {os.strerror(number).lower() for number in (errno.EMFILE, errno.ENFILE)}


def plain_words(err: BaseException) -> str:
    """An error as people say it: refused, timed out, TLS, reset, no such name, no route."""
    match err:
        case TimeoutError():
            return "timed out (no answer: a black hole, or too slow)"
        case ssl.SSLCertVerificationError():
            return f"TLS: {err.verify_message}"
        case ssl.SSLError():
            return f"TLS: {getattr(err, 'reason', None) or 'handshake failed'}"
        case ConnectionRefusedError():
            return "refused"
        case ConnectionResetError() | BrokenPipeError() | asyncio.IncompleteReadError() | ConnectionAbortedError():
            return "connection ended"
        case socket.gaierror():
            return NO_NAME
        case OSError():
            return (err.strerror or str(err) or type(err).__name__).lower()
        case _:
            return str(err) or type(err).__name__
