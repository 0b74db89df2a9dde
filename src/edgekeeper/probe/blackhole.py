"""The exact black-hole probe: connect, shake hands, and insist on a byte.

One question over a new connection with HTTP/1.1: TCP within 2 s, TLS within 2 s, the first byte of the answer within 3 s. A
kube-apiserver whose etcd is dead still accepts TCP and TLS, and still answers the PINGs of HTTP/2 (measured with HAProxy and an
HTTP/2 client, 2026-11-29: 18 of 18 PINGs answered, 9 of 9 requests not): only the missing first byte tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ssl
import time
from dataclasses import dataclass, replace

from edgekeeper.model.reach import Reach, Reached
from edgekeeper.model.text import printable
from edgekeeper.probe.http import parse_head
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import plain_words

CONNECT_S = 2.0
TLS_S = 2.0
FIRST_BYTE_S = 3.0
REST_S = 1.0
"""From the first byte to the end of what is shown of the answer."""

LATE_S = 0.5
"""A deadline that was noticed so much too late says that this process was held up, and nothing about the server."""

_BODY = 300
_HEAD = 16_384
_FROM_HERE = {
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EACCES, errno.EPERM, errno.ENETUNREACH, errno.ENETDOWN,
    errno.EAFNOSUPPORT, errno.EINVAL,
}  # fmt: skip
"""Errors of connect that are about this machine."""


@dataclass(frozen=True, slots=True)
class Question:
    """Whom to ask and what: ``host`` is an address or a name, ``path`` begins with a slash and is ASCII without spaces.

    ``sni`` is sent as the TLS server name (nothing is when it is an address or empty). With ``ca_file`` it is recorded whether the
    certificate is one of that authority for ``sni`` or ``host``. Deadlines are seconds.
    """

    host: str
    port: int
    path: str = "/readyz"
    tls: bool = True
    sni: str = ""
    ca_file: str | None = None
    connect_s: float = CONNECT_S
    tls_s: float = TLS_S
    first_byte_s: float = FIRST_BYTE_S


class _EndError(Exception):
    """The question came to its end; carries what is known."""

    def __init__(self, found: Reached) -> None:
        super().__init__(found.why)
        self.found = found


async def ask(question: Question) -> Reached:
    """One question; never raises for what a server or the network does."""
    target = Target("", "http", question.host, question.port, "tls" if question.tls else "tcp", question.path, sni=question.sni)
    known = Reached(Reach.UNKNOWN, "was not asked yet")
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer, known = await _connect(question, known)
        if question.tls:
            known = await _shake_hands(question, writer, known)
        return await _question(question, target, reader, writer, known)
    except _EndError as end:
        return end.found
    finally:
        if writer is not None:
            writer.transport.abort()
            await asyncio.sleep(0)  # no longer: after a handshake that was broken off asyncio never says that it is closed


async def _connect(question: Question, known: Reached) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Reached]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(question.connect_s):
            reader, writer = await asyncio.open_connection(question.host, question.port)
    except TimeoutError:
        raise _late(known, Reach.FILTERED, f"no connection within {question.connect_s:g} s", began, question.connect_s) from None
    except (OSError, UnicodeError) as err:
        code = getattr(err, "errno", None)
        reach = Reach.UNKNOWN if code in _FROM_HERE or isinstance(err, UnicodeError) else Reach.REFUSED
        reach = Reach.FILTERED if code in {errno.EHOSTUNREACH, errno.ETIMEDOUT} else reach
        raise _EndError(replace(known, reach=reach, why=plain_words(err))) from err
    return reader, writer, replace(known, connect_ms=_since(began))


async def _shake_hands(question: Question, writer: asyncio.StreamWriter, known: Reached) -> Reached:
    began = time.monotonic()
    try:
        async with asyncio.timeout(question.tls_s):
            await writer.start_tls(_unchecked(), server_hostname=question.sni or question.host)
    except TimeoutError:
        raise _late(known, Reach.TLS_FAIL, f"the TLS handshake did not end within {question.tls_s:g} s", began, question.tls_s) from None
    except (OSError, ssl.SSLError) as err:
        raise _EndError(replace(known, reach=Reach.TLS_FAIL, why=plain_words(err))) from err
    known = replace(known, tls_ms=_since(began))
    if question.ca_file is None:
        return known
    unverified = await _verify(question)
    return replace(known, verified=unverified is None, unverified=unverified or "")


async def _verify(question: Question) -> str | None:
    """Why the certificate cannot be verified, on a connection of its own: the one that asks must not depend on it."""
    try:
        context = ssl.create_default_context(cafile=question.ca_file)
        async with asyncio.timeout(question.tls_s):
            _, writer = await asyncio.open_connection(question.host, question.port, ssl=context, server_hostname=question.sni or question.host)
        writer.transport.abort()
        await asyncio.sleep(0)
    except (OSError, ssl.SSLError) as err:
        return plain_words(err)
    return None


async def _question(question: Question, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, known: Reached) -> Reached:
    began = time.monotonic()
    told = "TCP and TLS stand" if question.tls else "TCP stands"
    try:
        async with asyncio.timeout(question.first_byte_s):
            lines = (f"GET {question.path} HTTP/1.1", f"Host: {target.authority}", "User-Agent: edgekeeper-probe", "Accept: */*", "Connection: close")
            writer.write("\r\n".join((*lines, "", "")).encode("ascii"))
            first = await reader.read(_HEAD)
    except TimeoutError:
        hole = f"{told}, but {question.path} got no byte within {question.first_byte_s:g} s"
        raise _late(known, Reach.BLACK_HOLE, hole, began, question.first_byte_s) from None
    except (OSError, ssl.SSLError) as err:
        raise _EndError(replace(known, reach=Reach.REFUSED, why=f"{told}, then: {plain_words(err)}")) from err
    if not first:
        raise _EndError(replace(known, reach=Reach.REFUSED, why=f"{told}, then it ended the connection without an answer"))
    known = replace(known, first_byte_ms=_since(began))
    return _judge(await _rest(first, reader), known)


async def _rest(first: bytes, reader: asyncio.StreamReader) -> bytes:
    """What follows the first bytes, until the head and a little of the body are there, the end, or the time is over."""
    text = first
    with contextlib.suppress(TimeoutError, OSError, ssl.SSLError):
        async with asyncio.timeout(REST_S):
            while len(text) < _HEAD and len(text.partition(b"\r\n\r\n")[2]) < _BODY:
                more = await reader.read(_HEAD)
                if not more:
                    break
                text += more
    return text


def _judge(text: bytes, known: Reached) -> Reached:
    head, _, rest = text.partition(b"\r\n\r\n")
    try:
        status, _ = parse_head(head)
    except ValueError:
        return replace(known, reach=Reach.UNREADY, why="it answers, but not HTTP", body=_shown(text))
    if status >= 500:
        return replace(known, reach=Reach.UNREADY, why=f"HTTP {status}", status=status, body=_shown(rest))
    return replace(known, reach=Reach.OK, why=f"HTTP {status}", status=status, body=_shown(rest) if status >= 400 else "")


def _shown(raw: bytes) -> str:
    return printable(raw[:_BODY].decode("utf-8", "replace").strip(), _BODY)


def _late(known: Reached, reach: Reach, why: str, began: float, deadline_s: float) -> _EndError:
    """A deadline that passed; one that was noticed far too late is this process's own trouble."""
    behind = time.monotonic() - began - deadline_s
    if behind > LATE_S:
        return _EndError(replace(known, reach=Reach.UNKNOWN, why=f"this process was held up for {behind:.1f} s; the answer was not waited for"))
    return _EndError(replace(known, reach=reach, why=why))


def _unchecked() -> ssl.SSLContext:
    """Any certificate is taken: a probe that refused one would call an awake server dead."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)
