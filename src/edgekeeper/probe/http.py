"""One GET. Small, because a probe needs the times of its parts, which an HTTP library does not tell."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import AnswerError, Wire

_BODY = 8 * 2**20
_keys = itertools.count()


def marked(target: Target, ident: str) -> Target:
    """The same target, with an id in its query (``kp=``) that the server's log will show."""
    return replace(target, path=f"{target.path}{'&' if '?' in target.path else '?'}kp={ident}")


async def ask(target: Target, wire: Wire) -> str | None:
    """GET over a connection; AnswerError for a status that does not count as good."""
    if wire.reading is None:
        wire.reading = asyncio.create_task(_read(wire))
    future = wire.expect(next(_keys))
    wire.writer.write(f"GET {target.path} HTTP/1.1\r\nHost: {target.authority}\r\nUser-Agent: edgekeeper-probe\r\nAccept: */*\r\n\r\n".encode("ascii"))
    await wire.writer.drain()
    status = int(await future)
    if not (200 <= status < 400 or status in target.ok):
        msg = f"HTTP {status}"
        raise AnswerError(msg)
    return None


async def _read(wire: Wire) -> None:
    """Answers in the order of the questions, bodies thrown away, until the connection ends."""
    try:
        while True:
            head = await wire.reader.readuntil(b"\r\n\r\n")
            status, headers = parse_head(head)
            if status < 200:
                continue
            wire.arrived(None, str(status).encode())
            if not await _skip_body(wire.reader, status, headers):
                break
        wire.lost(ConnectionResetError("the server closed the connection"))
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as err:
        wire.lost(ConnectionResetError(str(err)))


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers (names in lower case) of an answer; ValueError when it is not HTTP."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        msg = "the answer is not HTTP"
        raise ValueError(msg)
    pairs = (line.partition(":") for line in rest if ":" in line)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _skip_body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> bool:
    """Read past a body; whether the connection can be used again."""
    keep = headers.get("connection", "").lower() != "close"
    if status in {204, 304}:
        return keep
    if "chunked" in headers.get("transfer-encoding", "").lower():
        while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
            await reader.readexactly(min(size, _BODY) + 2)
        while (await reader.readline()).strip():
            pass
        return keep
    if "content-length" in headers:
        await reader.readexactly(min(int(headers["content-length"]), _BODY))
        return keep
    return False
