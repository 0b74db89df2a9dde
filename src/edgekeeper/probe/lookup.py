"""Addresses of a host, asked of the system's resolver anew for each question, without a thread for each.

A resolver that hangs would take all threads of the loop, and with them the questions to targets whose names are known; and the process
could not end before the last of them is through. So questions of the same second share one look at a name, in a thread that nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterable
from typing import Final, cast

Address = tuple[str, int] | tuple[str, int, int, int]
Place = tuple[int, Address]
"""Family and socket address."""

_AT_ONCE: Final = 32
SHARED_S: Final = 1.0
"""A look that began longer ago may hang on a resolver that answers meanwhile: the next question looks for itself."""
_MOST: Final = 256
"""Looks that are under way at once; then the last one of each name is shared however long it takes."""
_Key = tuple[asyncio.AbstractEventLoop, str, int]
_latest: dict[_Key, tuple[float, asyncio.Future[list[Place]]]] = {}
_looking: set[asyncio.Future[list[Place]]] = set()


def literal(host: str, port: int) -> Place | None:
    """The place of an address that is written out; None for a name. It is not looked up: that would be most of a question's cost."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return family, (host, port) if family == socket.AF_INET else (host, port, 0, 0)
    return None


async def places(host: str, port: int) -> list[Place]:
    """Where a host is, best first and at least one; socket.gaierror when it has no address."""
    if (found := literal(host, port)) is not None:
        return [found]
    loop, now = asyncio.get_running_loop(), time.monotonic()
    key = (loop, host, port)
    began, future = _latest.get(key, (0.0, None))
    if future is None or future.done() or (now - began > SHARED_S and len(_looking) < _MOST):
        future = loop.create_future()
        _latest[key] = now, future
        _looking.add(future)
        threading.Thread(target=_look, args=(key, future), name=f"look up {host[:40]}", daemon=True).start()
    return await asyncio.shield(future)


def known(hosts: Iterable[str], within_s: float) -> dict[str, Place]:
    """Where hosts are, as far as the resolver says it in so many seconds; those that it does not know, or not yet, are left out."""
    found: dict[str, Place] = {}
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
    names, over = [], threading.Semaphore(0)
    for host in dict.fromkeys(hosts):
        if (place := literal(host, 0)) is not None:
            found[host] = place
        else:
            names.append(host)
            wanted.put(host)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                host = wanted.get_nowait()
                with contextlib.suppress(OSError, UnicodeError):
                    family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
                    found[host] = (family, cast("Address", address))
                over.release()

    for _ in names[:_AT_ONCE]:
        threading.Thread(target=work, daemon=True).start()
    end = time.monotonic() + within_s
    for _ in names:
        if not over.acquire(timeout=max(0.0, end - time.monotonic())):
            break
    return dict(found)


def _look(key: _Key, future: asyncio.Future[list[Place]]) -> None:
    loop, host, port = key
    found: list[Place] | BaseException
    try:
        told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found = [(family, cast("Address", address)) for family, _, _, _, address in told]
    except (OSError, UnicodeError) as err:
        found = err
    _looking.discard(future)
    if _latest.get(key, (0.0, None))[1] is future:
        _latest.pop(key, None)
    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(_told, future, found)


def _told(future: asyncio.Future[list[Place]], found: list[Place] | BaseException) -> None:
    if isinstance(found, BaseException):
        future.set_exception(found)
        future.exception()  # nobody may be waiting for it any more
    else:
        future.set_result(found)
