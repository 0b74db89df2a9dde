"""One request to an API server of the lab, over a socket that may live in another network namespace: no HTTP client can be asked for that."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgekeeper.errors import MissingError


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API server said: the status, and the object (what is none is its ``message``)."""

    status: int
    body: dict[str, Any]


async def ask(
    sockets: Callable[[int], socket.socket],
    at: tuple[str, int],
    method: str,
    path: str,
    body: Any = None,
    *,
    tls: ssl.SSLContext | None = None,
    token: str = "",
    kind: str = "application/json",
    deadline_s: float = 10.0,
) -> Answer:
    """One request on a connection of its own; ``sockets`` makes the socket of a family. MissingError when no answer came in time."""
    host, port = at
    content = b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.0", f"Host: {host}", "Accept: application/json", f"Content-Length: {len(content)}"]
    head += [f"Content-Type: {kind}"] if content else []
    head += [f"Authorization: Bearer {token}"] if token else []
    writer: asyncio.StreamWriter | None = None
    sock = sockets(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        async with asyncio.timeout(deadline_s):
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
            reader, writer = await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=host if tls else None)
            writer.write("\r\n".join([*head, "", ""]).encode() + content)
            said = await reader.read()
    except OSError as err:  # a deadline is one too
        msg = f"{host}:{port} of the lab's Kubernetes did not answer {method} {path} ({str(err) or 'not in time'}); the test stops"
        raise MissingError(msg) from err
    finally:
        if writer is not None:
            writer.transport.abort()
        sock.close()
    return answer(said)


def answer(said: bytes) -> Answer:
    """An HTTP/1.0 answer up to its end; status 0 when it is none."""
    head, _, body = said.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
    try:
        found = json.loads(body)
    except ValueError:
        found = {"message": body.decode(errors="replace")}
    return Answer(status, found if isinstance(found, dict) else {"message": str(found)})
