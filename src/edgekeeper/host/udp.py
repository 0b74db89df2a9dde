"""One UDP question and its answer, under a deadline."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from typing_extensions import override


class _Question(asyncio.DatagramProtocol):
    def __init__(self, wanted: Callable[[bytes], bool], answer: asyncio.Future[bytes]) -> None:
        self._wanted = wanted
        self._answer = answer

    @override
    def datagram_received(self, data: bytes, addr: object) -> None:
        if not self._answer.done() and self._wanted(data):
            self._answer.set_result(data)

    @override
    def error_received(self, exc: Exception) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc)


async def exchange(host: str, port: int, payload: bytes, wanted: Callable[[bytes], bool], deadline_s: float) -> bytes:
    """Send one datagram and return the first wanted answer; OSError or TimeoutError when there is none.

    ``wanted`` tells our answer from strays (a late one of an earlier question, a forged one).
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes] = loop.create_future()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    transport, _ = await loop.create_datagram_endpoint(lambda: _Question(wanted, answer), remote_addr=(host, port), family=family)
    try:
        transport.sendto(payload)
        async with asyncio.timeout(deadline_s):
            return await answer
    finally:
        transport.close()
        if answer.done() and not answer.cancelled():
            answer.exception()
