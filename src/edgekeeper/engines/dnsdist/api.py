"""The read-only API of a running dnsdist: one GET on loopback, under a deadline.

Not through ``host.http``: status asks every second, and that client alone costs more than the
whole exchange here. A connection for each question: dnsdist has few threads for kept ones.
"""

from __future__ import annotations

import asyncio

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host.poll import read_response

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
                status, body, _ = await read_response(reader, _LIMIT)
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
