"""A word between a command and the supervisor on the same machine: one JSON line each way over a Unix socket that only its owner can open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from edgekeeper.errors import MissingError, StepFailedError
from edgekeeper.host.files import make_folder

_LONGEST_PATH = 100
_LONGEST_LINE = 65536
EVERY_S = 2.0
"""How often it is looked whether somebody has wiped the socket away."""


async def serve(path: Path, answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """Answer requests until cancelled; a socket that was removed is made anew. MissingError when it cannot be made."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        msg = f"{path} is longer than a socket's path may be ({_LONGEST_PATH} bytes); choose a shorter run_dir"
        raise MissingError(msg)

    talks: set[asyncio.Task[Any]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is in one
        talks.add(task)
        try:
            with contextlib.suppress(OSError, ValueError, asyncio.LimitOverrunError):
                request = json.loads(await reader.readline())
                if isinstance(request, dict):
                    writer.write(json.dumps(await answer(request)).encode() + b"\n")
                    await writer.drain()
        finally:
            talks.discard(task)
            writer.close()

    while True:
        make_folder(path.parent, 0o755)
        path.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            os.fchmod(sock.fileno(), 0o600)  # before it has a name
            sock.bind(str(path))
            server = await asyncio.start_unix_server(talk, sock=sock, limit=_LONGEST_LINE)
        except OSError as err:
            sock.close()
            msg = f"{path} cannot be made: {err.strerror or err}; commands cannot be given to this supervisor"
            raise MissingError(msg) from err
        async with server:
            try:
                while path.is_socket():  # noqa: ASYNC110 - somebody else removes it, and tells nobody
                    await asyncio.sleep(EVERY_S)
            except asyncio.CancelledError:
                for task in talks:  # leaving the server waits for them (Python 3.12 on), and a hand-over may take its time
                    task.cancel()
                raise


async def ask(path: Path, request: dict[str, Any], deadline_s: float) -> dict[str, Any]:
    """Ask the supervisor. MissingError when there is none; StepFailedError when it does not answer in time, or ended meanwhile."""
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST_LINE)
    except OSError as err:
        msg = f"no supervisor answers at {path} ({err.strerror or err}); is `edgekeeper vip run` running, and are you its user?"
        raise MissingError(msg) from err
    try:
        async with asyncio.timeout(deadline_s):
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
    except (TimeoutError, OSError) as err:
        msg = f"the supervisor did not answer within {deadline_s:g} s; what it was asked may still happen, see `edgekeeper history --role vip`"
        raise StepFailedError(msg) from err
    finally:
        writer.close()
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        msg = "the supervisor ended before it answered; see `edgekeeper history --role vip`"
        raise StepFailedError(msg)
    return found
