"""GET again and again from a program that is known: one kept connection, as much of HTTP/1.1 as that takes.

Beside ``host.http``, whose library takes 1.6 ms of processor for a question each half second over mTLS; this takes 0.45
(with the cold caches of a process that sleeps in between; measured 2026-11-30). ``once`` is for a single question, which
may be asked from within another network namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgekeeper.errors import MissingError
from edgekeeper.host import netns
from edgekeeper.host.tls import NOBODY, Trust, client_context

_MOST_HEADERS = 100
_BODILESS = (204, 304)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered."""

    status: int
    text: str


class Poll:
    """One URL, asked again and again; the connection is kept while all goes well, and another one made after any failure.

    An answer of more than ``limit`` bytes is none. Belongs to one event loop; ``close`` it.
    """

    def __init__(self, url: str, trust: Trust = NOBODY, *, limit: int = 2**20) -> None:
        self.url = url
        self._trust = trust
        self._limit = limit
        self._context: ssl.SSLContext | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, *, deadline_s: float, headers: Mapping[str, str] | None = None) -> Response:
        """GET within the deadline, from the first packet to the last byte; MissingError says why there was no answer.

        A redirection is an answer and not followed. Certificates that were replaced are used from the next call on.
        """
        keep = False
        try:
            with told(self.url, deadline_s, ValueError):
                context = client_context(self._trust, self.url) if self.url.startswith("https:") else None
                request, host, port = _request(self.url, headers or {})
                async with asyncio.timeout(deadline_s):
                    if self._streams is None or self._streams[0].at_eof() or self._context is not context:
                        self.close()
                        named = {"ssl": context, "server_hostname": host} if context is not None else {}
                        self._streams = await asyncio.open_connection(host, port, **named)  # type: ignore[arg-type]
                        self._context = context
                    reader, writer = self._streams
                    writer.write(request)
                    status, body, keep = await read_response(reader, self._limit)
                return Response(status, body.decode("utf-8", "replace"))
        finally:
            if not keep:
                self.close()

    def close(self) -> None:
        """Let the connection go, at once."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()


async def once(
    url: str,
    *,
    deadline_s: float,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    inside: str | None = None,
    limit: int = 2**20,
) -> Response:
    """One request without a body, over a connection of its own that is closed again; MissingError says why there was no answer.

    ``inside`` is the path of the network namespace to ask from: what listens on a container's loopback is heard nowhere else.
    Proxies of the environment are not used; a redirection is an answer and not followed, so that a token in ``headers`` goes to nobody else.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        with told(url, deadline_s, ValueError):
            context = client_context(NOBODY, url) if url.startswith("https:") else None
            request, host, port = _request(url, {**(headers or {}), "Connection": "close", **({} if method == "GET" else {"Content-Length": "0"})}, method)
            named = {"ssl": context, "server_hostname": host} if context is not None else {}
            async with asyncio.timeout(deadline_s):
                if inside is not None:
                    sock = await netns.connected(inside, host, port)
                    reader, writer = await asyncio.open_connection(sock=sock, **named)  # type: ignore[arg-type]
                else:
                    reader, writer = await asyncio.open_connection(host, port, **named)  # type: ignore[arg-type]
                writer.write(request)
                status, body, _ = await read_response(reader, limit)
            return Response(status, body.decode("utf-8", "replace"))
    finally:
        if writer is not None:
            writer.transport.abort()


@contextlib.contextmanager
def told(url: str, deadline_s: float, *failures: type[Exception]) -> Iterator[None]:
    """Whatever goes wrong with a question, as MissingError with its reason; ``failures`` are what else than the network's own errors is raised for that."""
    caught: tuple[type[Exception], ...] = (OSError, EOFError, *failures)
    try:
        yield
    except TimeoutError as err:
        msg = f"{url} did not answer in full within {deadline_s:g} s"
        raise MissingError(msg) from err
    except caught as err:
        msg = f"{url} did not answer: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err


def _request(url: str, headers: Mapping[str, str], method: str = "GET") -> tuple[bytes, str, int]:
    """The bytes of the question, and whom to ask; ValueError when the URL names nobody, or something could be more than one line."""
    parts = urlsplit(url)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    lines = [f"{method} {path} HTTP/1.1", f"Host: {parts.netloc.rpartition('@')[2]}", *(f"{name}: {value}" for name, value in headers.items())]
    if not parts.hostname or parts.scheme not in ("http", "https") or not all(line.isprintable() for line in lines):
        msg = "it is not a URL that can be asked"
        raise ValueError(msg)
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


async def read_response(reader: asyncio.StreamReader, limit: int) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection may be used again. ValueError or EOFError for what is no answer, or one of more than ``limit`` bytes."""
    version, status, headers = await _head(reader)
    while status < 200:  # 1xx: an answer will follow
        version, status, headers = await _head(reader)
    keep = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
    if status in _BODILESS:
        return status, b"", keep
    if "transfer-encoding" in headers:
        return status, await _chunks(reader, limit), keep
    if "content-length" in headers:
        return status, await reader.readexactly(_within(headers["content-length"], limit, 10)), keep
    body = bytearray()
    while chunk := await reader.read(65536):
        body += chunk
        _within(str(len(body)), limit, 10)
    return status, bytes(body), False


async def _head(reader: asyncio.StreamReader) -> tuple[str, int, dict[str, str]]:
    line = await reader.readline()
    if not line:
        msg = "it closed the connection"
        raise EOFError(msg)
    return *_status(line.decode("latin-1")), await _headers(reader)


def _status(line: str) -> tuple[str, int]:
    words = line.split(None, 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not (words[1].isascii() and words[1].isdigit() and len(words[1]) == 3):
        msg = "it does not speak HTTP"
        raise ValueError(msg)
    return words[0], int(words[1])


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        raw = await reader.readline()
        if not raw.endswith(b"\n"):
            msg = "the answer ends in its head"
            raise EOFError(msg)
        line = raw.decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    msg = f"the answer has more than {_MOST_HEADERS} headers"
    raise ValueError(msg)


async def _chunks(reader: asyncio.StreamReader, limit: int) -> bytes:
    body = bytearray()
    while size := _within((await reader.readline()).split(b";")[0].decode("latin-1").strip(), limit - len(body), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await _headers(reader)  # what may follow the last chunk
    return bytes(body)


def _within(text: str, limit: int, base: int) -> int:
    """A length, as a number that is not more than may be read."""
    try:
        size = int(text, base) if text.isalnum() and len(text) < 16 else -1
    except ValueError:
        size = -1
    if size < 0:
        msg = "its length cannot be read"
        raise ValueError(msg)
    if size > limit:
        msg = "the answer is longer than may be read"
        raise ValueError(msg)
    return size
