"""The read-only API of a running dnsdist: one GET on loopback, under a deadline.

Not through ``host.http``: status asks every second, and that client's TLS context alone costs
more than the whole exchange here.
"""

from __future__ import annotations

import asyncio

from edgekeeper.errors import MissingError, StepFailedError

_LIMIT = 256 * 2**20
_OK = 200


async def get(port: int, path: str, api_key: str, *, timeout_s: float = 5.0) -> str:
    """The body of ``path``; MissingError when nobody answers, StepFailedError for any status but 200."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
            try:
                head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {api_key}\r\nConnection: close\r\n\r\n"
                writer.write(head.encode())
                status, headers = await _head(reader)
                body = await _body(reader, headers)
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError, ValueError) as err:
        why = "it did not answer in time" if isinstance(err, TimeoutError) else str(err) or type(err).__name__
        msg = f"dnsdist's API on port {port} cannot be used: {why}"
        raise MissingError(msg) from err
    if status != _OK:
        msg = f"dnsdist's API answered {path.partition('?')[0]} with status {status}"
        raise StepFailedError(msg)
    return body.decode("utf-8", "replace")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first = (await reader.readline()).decode("latin-1").split()
    if len(first) < 2 or not first[0].startswith("HTTP/") or not first[1].isdigit():
        msg = "it does not speak HTTP"
        raise ValueError(msg)
    headers = {}
    while line := (await reader.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(first[1]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        return b"".join(parts)
    if "content-length" in headers:
        return await reader.readexactly(min(int(headers["content-length"]), _LIMIT))
    return await reader.read(-1)
