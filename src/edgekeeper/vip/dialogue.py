"""Sockets under one deadline, and one HTTP answer over them: for the look at a service, in the track script and in threads alike."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from edgekeeper.host import lean

BLIND = (
    errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EADDRNOTAVAIL, errno.EAGAIN, errno.ENETUNREACH,
    errno.EHOSTUNREACH,
)  # fmt: skip
"""Errors of this machine, and ways that do not exist: they say nothing about the service."""

T = TypeVar("T")

_MOST_HEAD = 65536
_WAITS = {"BlockingIOError": 0, "SSLWantReadError": select.POLLIN, "SSLWantWriteError": select.POLLOUT}
"""By name: ssl is imported for https only."""


class Url(NamedTuple):
    """What is asked of whom: ``address`` as host:port, ``host`` as its Host header."""

    tls: bool
    address: str
    host: str
    path: str


class Answer(NamedTuple):
    """An HTTP answer. ``status`` is None when it was no HTTP; ``head`` are its lines in lower case, ``body`` as much as was read."""

    status: int | None
    head: bytes
    body: bytes


class ClosedError(OSError):
    """The other side ended the connection before it said anything."""


def url(text: str) -> Url:
    """The parts of an http or https URL; ValueError says what is wrong with it."""
    scheme, _, rest = text.partition("://")
    place, slash, path = rest.partition("/")
    if scheme not in ("http", "https") or not place or "@" in place or not text.isascii() or not text.isprintable() or " " in text:
        msg = f"{text!r} is not a URL like http://127.0.0.1:8404/"
        raise ValueError(msg)
    host, port = split(place, "443" if scheme == "https" else "80")
    return Url(scheme == "https", f"[{host}]:{port}" if ":" in host else f"{host}:{port}", place, slash + path or "/")


def split(address: str, port: str = "") -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[v6]:port``; ValueError when it is neither."""
    host, colon, said = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, said = address, port
    host = host.removeprefix("[").removesuffix("]")
    if not host or not said.isascii() or not said.isdigit() or not 0 < int(said) < 65536 or ("[" not in address and ":" in host):
        msg = f"{address!r} is not an address like 127.0.0.1:53 or [::1]:53"
        raise ValueError(msg)
    return host, int(said)


def left(end: float) -> float:
    """Seconds until the monotonic time ``end``, at least 0."""
    return max(0.0, end - time.monotonic())


def ready(sock: socket.socket, events: int, end: float) -> bool:
    """Whether the socket became ready in time."""
    poller = select.poll()
    poller.register(sock, events)
    return bool(poller.poll(left(end) * 1000))


def connect(address: str, kind: int, end: float) -> socket.socket:
    """A connected socket that never blocks; OSError or TimeoutError when there is none in time."""
    family, where = _place(address, kind, end)
    sock = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    failed = sock.connect_ex(where)
    if failed == errno.EINPROGRESS:
        if not ready(sock, select.POLLOUT, end):
            sock.close()
            msg = "no connection in time"
            raise TimeoutError(msg)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failed:
        sock.close()
        raise OSError(failed, os.strerror(failed))
    return sock


def _place(address: str, kind: int, end: float) -> tuple[int, tuple[str, int] | tuple[str, int, int, int]]:
    """An address is taken as it is; a name is resolved in a thread, because the resolver knows no deadline."""
    host, port = split(address)
    raw = b"127.0.0.1" if host == "localhost" else host.encode("ascii")  # as text it would load IDNA, a millisecond of a start
    try:
        found = socket.getaddrinfo(raw, port, 0, kind, 0, socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = lean.within(f"resolve {host} {kind}", lambda: socket.getaddrinfo(raw, port, 0, kind), left(end))
    family, _, _, _, where = found[0]
    return family, where  # type: ignore[return-value]


def send(sock: socket.socket, datagram: bytes) -> None:
    """Send a datagram, unless our own buffer is full: the next try may get through."""
    try:
        sock.send(datagram)
    except BlockingIOError:
        return


def ask(place: Url, end: float, headers: bytes = b"", *, version: bytes = b"1.1", limit: int = _MOST_HEAD, whole: bool = False) -> Answer:
    """One GET. OSError when it is refused, ClosedError when it ends without a byte, TimeoutError when no whole head came in time.

    ``whole`` reads the body to its end, else only that of a 503, which may say why. Certificates are not verified: the
    service is on this machine.
    """
    sock = connect(place.address, socket.SOCK_STREAM, end)
    try:
        if place.tls:
            sock = _wrapped(sock, end)
        request = b"GET " + place.path.encode() + b" HTTP/" + version + b"\r\nHost: " + place.host.encode() + b"\r\nUser-Agent: edgekeeper\r\n"
        _send(sock, request + b"Accept: */*\r\nConnection: close\r\n" + headers + b"\r\n", end)
        raw, closed = b"", False
        while not closed and b"\r\n\r\n" not in raw and len(raw) < _MOST_HEAD and not (len(raw) >= 5 and raw[:5] != b"HTTP/"):
            piece = _receive(sock, end)
            raw, closed = raw + piece, not piece
        if not raw:
            raise ClosedError(errno.ECONNRESET, "it ended the connection without an answer")
        head, _, body = raw.partition(b"\r\n\r\n")
        status = _status(head)
        if whole or status == 503:
            try:
                while not closed and len(body) < limit:
                    piece = _receive(sock, end if whole else min(end, time.monotonic() + 0.1))
                    body, closed = body + piece, not piece
            except (OSError, TimeoutError):
                if whole:
                    raise
        return Answer(status, head.lower(), body)
    finally:
        sock.close()


def _status(head: bytes) -> int | None:
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or len(words[1]) != 3 or not words[1].isdigit():
        return None
    return int(words[1])


def _wrapped(sock: socket.socket, end: float) -> socket.socket:
    import ssl  # noqa: PLC0415 - 8 ms of a start, for https only

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    wrapped = context.wrap_socket(sock, do_handshake_on_connect=False)
    try:
        _patiently(wrapped, wrapped.do_handshake, select.POLLIN, end)
    except OSError:
        wrapped.close()
        raise
    return wrapped


def _send(sock: socket.socket, raw: bytes, end: float) -> None:
    rest = memoryview(raw)
    while rest:
        piece = rest
        rest = rest[_patiently(sock, lambda: sock.send(piece), select.POLLOUT, end) :]  # noqa: B023 - called at once


def _receive(sock: socket.socket, end: float) -> bytes:
    """What came; empty at the end."""
    return _patiently(sock, lambda: sock.recv(65536), select.POLLIN, end)


def _patiently(sock: socket.socket, do: Callable[[], T], events: int, end: float) -> T:
    """Do it as soon as it need not wait for the other side; TimeoutError at the deadline."""
    while True:
        try:
            return do()
        except OSError as err:
            wanted = _WAITS.get(type(err).__name__)
            if wanted is None:
                raise
        if left(end) <= 0 or not ready(sock, wanted or events, end):
            msg = "no answer in time"
            raise TimeoutError(msg)
