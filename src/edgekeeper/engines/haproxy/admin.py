"""The command line of a running HAProxy over its stats socket or its master socket: one command a connection.

Measured on 2.6.12, 3.0.11 and 3.2.26 (2026-11-30): a master socket keeps the connection open after its answer until the
asker closes its side, so our side is closed right after the command; a prefix ``@!PID`` holds for one command
only, also among several that are separated by ``;``; on a stats socket 3.0 and later read one line and no more; a master
of 2.6 starts itself anew at a reload and refuses connections for that instant.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import errno
import re
import socket
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from edgekeeper.engines.haproxy.stats import Worker, parse_proc
from edgekeeper.errors import MissingError, RefusedError, StepFailedError, UsageError
from edgekeeper.model.text import printable

_WORD = re.compile(r"[A-Za-z0-9_.:-]{1,256}")
_TCP = re.compile(r"(?:tcp@|tcp4@|tcp6@|ipv4@|ipv6@)?(?:\[([^\[\]/]+)\]|([^:/\[\]]+)):(\d{1,5})")
_PIECE: Final = 1 << 18
_AGAIN_S: Final = 0.05
_REFUSES_S: Final = 0.5
"""How long a refused connection is tried again: a master of 2.6 that reloads is away for some 20 ms."""
_WHOLE: Final = 15
"""An answer that keeps coming may take this many times the deadline in all: 20,000 sessions are 38 MB in the long form."""
_ABSTRACT: Final = 107
_BATCH: Final = 4000
"""Characters of one line of several commands; HAProxy's line is ``tune.bufsize`` (16,384, rarely less) long."""


def word(text: str) -> str:
    """The text, when it can be an argument of a command: a name as HAProxy's configuration allows them. UsageError otherwise."""
    if _WORD.fullmatch(text) is None:
        msg = f"{printable(text, 60)!r} is no name that HAProxy may have; letters, digits and _ . : - make one"
        raise UsageError(msg)
    return text


def _checked(command: str) -> str:
    if not command or command.startswith("@") or not command.isprintable() or ";" in command or "<<" in command or "\\" in command:
        msg = f"{printable(command, 60)!r} is not one command for HAProxy; it was not sent"
        raise UsageError(msg)
    return command


class Admin:
    """A stats or master socket: a path, ``host:port``, or HAProxy's ``unix@``, ``abns@``, ``ipv4@`` and ``ipv6@`` forms.

    ``deadline_s`` is the longest time without a byte of the answer. MissingError when nobody listens there or we have no
    right to ask, RefusedError when the socket's level is too low, StepFailedError when no answer comes. What HAProxy
    refuses in words ("No such server.", "Proxy is disabled.", "Unknown command") is an answer like any other.
    """

    def __init__(self, path: str, *, deadline_s: float = 2.0) -> None:
        self.path = path
        self.deadline_s = deadline_s
        self.peer_pid: int | None = None
        """The process that listens on the unix socket as the kernel knows it; None before the first command, and over TCP."""

    async def ask(self, command: str, *, worker: int | None = None) -> str:
        """The whole answer to one command, of a worker behind a master socket when ``worker`` is its pid."""
        return "".join([piece async for piece in self.pieces(command, worker=worker)])

    async def ask_each(self, commands: Iterable[str], *, worker: int | None = None) -> tuple[str, ...]:
        """Many commands, some at a time on one connection; the lines that were answered, without the empty ones."""
        prefix = "" if worker is None else f"@!{worker:d} "
        said: list[str] = []
        for batch in _batches([prefix + _checked(command) for command in commands]):
            text = "".join([piece async for piece in self._exchange("; ".join(batch), batch[0])])
            said += [line for line in text.split("\n") if line.strip()]
        return tuple(said)

    async def lines(self, command: str, *, worker: int | None = None) -> AsyncIterator[str]:
        """The answer's lines as they come, without the empty ones; for long answers."""
        rest = ""
        async for piece in self.pieces(command, worker=worker):
            *whole, rest = (rest + piece).split("\n")
            for line in whole:
                if line:
                    yield line
        if rest:
            yield rest

    async def pieces(self, command: str, *, worker: int | None = None) -> AsyncIterator[str]:
        """The answer in pieces of any length as they come: memory stays flat however long it is."""
        line = _checked(command) if worker is None else f"@!{worker:d} {_checked(command)}"
        async for piece in self._exchange(line, line):
            yield piece

    async def workers(self) -> tuple[Worker, ...]:
        """The workers, the current one first; none when this is not a master socket."""
        text = await self.ask("show proc")
        return parse_proc(text) if text.lstrip().startswith("#<PID>") else ()

    async def is_master(self) -> bool:
        """Whether this is a master socket."""
        return (await self.ask("show proc")).lstrip().startswith("#<PID>")

    async def _exchange(self, line: str, command: str) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + _WHOLE * self.deadline_s
        reader, writer = await self._connect()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        start, tail = "", ""
        try:
            async with asyncio.timeout(self.deadline_s):
                writer.write(line.encode() + b"\n")
                await writer.drain()
                if writer.can_write_eof():
                    writer.write_eof()
            while True:
                async with asyncio.timeout(min(self.deadline_s, max(0.0, ends - loop.time()))):
                    raw = await reader.read(_PIECE)
                piece = decoder.decode(raw, final=not raw)
                if not start and piece:
                    self._refuse(piece, command)
                    start = piece[:20]
                tail = (tail + piece)[-2:]
                if piece:
                    yield piece
                if not raw:
                    break
            if not _is_whole(_verb(command), start, tail):
                msg = f"what answers at {self.path} broke off in the middle of `{_verb(command)}`; what came is not used, ask again (or name HAProxy's own socket)"
                raise StepFailedError(msg)
        except TimeoutError:
            msg = f"HAProxy at {self.path} did not answer `{_verb(command)}` within {self.deadline_s:g} s; its process may be frozen or overloaded"
            raise StepFailedError(msg) from None
        except OSError as err:
            msg = f"HAProxy at {self.path} broke off while it answered `{_verb(command)}`: {err.strerror or err}; ask again"
            raise StepFailedError(msg) from err
        finally:
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        refused_until = loop.time() + min(_REFUSES_S, self.deadline_s)
        while True:
            try:
                async with asyncio.timeout(self.deadline_s):
                    reader, writer = await self._open()
            except TimeoutError:
                msg = f"HAProxy at {self.path} accepted no connection within {self.deadline_s:g} s; its process may be frozen"
                raise StepFailedError(msg) from None
            except ConnectionRefusedError as err:
                if loop.time() >= refused_until:
                    msg = f"nobody listens at {self.path}; HAProxy is not running there, or it is another path"
                    raise MissingError(msg) from err
                await asyncio.sleep(_AGAIN_S)
                continue
            except OSError as err:
                raise MissingError(_unreachable(self.path, err)) from err
            self.peer_pid = _peer(writer)
            return reader, writer

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if "/" not in self.path and not self.path.startswith(("unix@", "abns@")) and (tcp := _TCP.fullmatch(self.path)):
            return await asyncio.open_connection(tcp[1] or tcp[2], int(tcp[3]), limit=_PIECE)
        path = self.path.removeprefix("unix@")
        if path.startswith("abns@"):  # HAProxy's abstract names are filled up with zeros
            path = "\0" + path.removeprefix("abns@").ljust(_ABSTRACT, "\0")
        return await asyncio.open_unix_connection(path, limit=_PIECE)

    def _refuse(self, text: str, command: str) -> None:
        """RefusedError when the socket's level is too low for the command: which one it needs, and the line to change."""
        if text.strip() != "Permission denied" and not text.startswith("Permission denied\n"):
            return
        level = "operator" if _verb(command).startswith("show") else "admin"
        if command.startswith("@"):
            way = f"start HAProxy with `-S {self.path},level,{level}`"
        else:
            way = f"say `stats socket {self.path} mode 600 level {level}` in the global section of haproxy.cfg and reload HAProxy"
        msg = f"the socket {self.path} may not `{_verb(command)}`: that needs level {level}; {way}"
        raise RefusedError(msg)


def _is_whole(verb: str, start: str, tail: str) -> bool:
    """Whether an answer that begins and ends so is a whole one: a worker that dies in the middle must not pass for a short list.

    Measured: lists end with an empty line on 2.6, 3.0 and 3.2; done without words is one empty line; 2.6 answers a reload with nothing.
    """
    if verb.startswith("show"):
        return tail == "\n\n" or start == "\n" or start.startswith("Can't find")
    return bool(start) or "reload" in verb


def _verb(command: str) -> str:
    """The command's words without its arguments, for a sentence."""
    words = [part for part in command.split() if not part.startswith("@")]
    return printable(" ".join(words[:2]), 60)


def _batches(lines: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    length = 0
    for line in lines:
        if batch and length + len(line) > _BATCH:
            yield batch
            batch, length = [], 0
        batch.append(line)
        length += len(line) + 2
    if batch:
        yield batch


def _unreachable(path: str, err: OSError) -> str:
    if isinstance(err, FileNotFoundError):
        return f"there is no socket {path}; is HAProxy running, and does its global section say `stats socket {path} mode 600 level admin`?"
    if isinstance(err, PermissionError):
        return f"no right to use the socket {path}; run this as root or as a member of the socket's group"
    if err.errno in (errno.ENOTSOCK, errno.EPROTOTYPE):
        return f"{path} is not a stats socket of HAProxy; name another one"
    return f"the socket {path} cannot be used: {err.strerror or err}"


def _peer(writer: asyncio.StreamWriter) -> int | None:
    sock = writer.get_extra_info("socket")
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    with contextlib.suppress(OSError):
        pid: int = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return pid or None
    return None
