"""Netlink, as much of it as is needed here: ask the kernel for a list, have it do one thing, read what it tells.

A socket belongs to the network namespace of the thread that makes it. A list that changed while it was told
(the kernel marks it) is asked for again: a full snapshot or an error, never a part.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_REQUEST, _ACK, _DUMP = 0x001, 0x004, 0x300
_DUMP_INTERRUPTED = 0x010
CREATE, EXCLUSIVE = 0x400, 0x200
"""Flags of ``act``: make it, and only if it is not there."""
_ERROR, _DONE = 2, 3
_DEADLINE_S = 2.0
_TRIES = 5
_BUFFER = 1 << 16
"""More than the 32 KiB that the kernel puts into one part of a list."""


def dump(protocol: int, kind: int, body: bytes) -> list[tuple[int, bytes]]:
    """All that the kernel lists: (kind, body) each. OSError where it has no such thing or refuses it."""
    for _ in range(_TRIES):
        found = _dump(protocol, kind, body)
        if found is not None:
            return found
    raise OSError(errno.EINTR, "the list changed each time while the kernel told it")


def _dump(protocol: int, kind: int, body: bytes) -> list[tuple[int, bytes]] | None:
    found: list[tuple[int, bytes]] = []
    whole = True
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol) as kernel:
        kernel.settimeout(_DEADLINE_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _DUMP, 1, 0) + body)
        while True:
            for said, flags, told in _messages(kernel.recv(_BUFFER)):
                whole = whole and not flags & _DUMP_INTERRUPTED
                if said == _DONE:
                    return found if whole else None
                if said == _ERROR:
                    _raise(told)
                found.append((said, told))


def act(protocol: int, kind: int, flags: int, body: bytes) -> None:
    """Have the kernel do one thing; OSError with its number when it does not."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol) as kernel:
        kernel.settimeout(_DEADLINE_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | _ACK | flags, 1, 0) + body)
        while True:
            for said, _, told in _messages(kernel.recv(_BUFFER)):
                if said == _ERROR:  # number 0 is the acknowledgement
                    _raise(told)
                    return


def _raise(told: bytes) -> None:
    (number,) = struct.unpack_from("=i", told)
    if number:
        raise OSError(-number, os.strerror(-number))


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The (kind, body) of each message in what was received; a torn rest is left out."""
    for kind, _, body in _messages(data):
        yield kind, body


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(data) >= _HEADER.size:
        length, kind, flags, _, _ = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            return
        yield kind, flags, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute as the kernel reads it, padded to four bytes."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes of a message's body, after its fixed part; a torn rest is left out."""
    found: dict[int, bytes] = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            break
        found[kind & 0x3FFF] = data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return found
