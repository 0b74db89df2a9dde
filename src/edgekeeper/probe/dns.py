"""One DNS question over UDP, TCP or TLS."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket

from edgekeeper.probe import packet
from edgekeeper.probe.lookup import places
from edgekeeper.probe.target import Target
from edgekeeper.probe.wire import AnswerError, Wire


async def ask(target: Target, wire: Wire) -> str | None:
    """Ask over a connection; who answered (first TXT string), if it says so. AnswerError for an error code."""
    if wire.reading is None:
        wire.reading = asyncio.create_task(_read(wire))
    ident = random.getrandbits(16)
    question = packet.question(ident, target.path, target.qtype)
    future = wire.expect(ident)
    wire.writer.write(len(question).to_bytes(2, "big") + question)
    await wire.writer.drain()
    return verdict(await future, question)


async def ask_datagram(target: Target, sock: socket.socket) -> str | None:
    """Ask over a connected UDP socket; answers to other questions are thrown away."""
    loop = asyncio.get_running_loop()
    ident = random.SystemRandom().getrandbits(16)
    question = packet.question(ident, target.path, target.qtype)
    await loop.sock_sendall(sock, question)
    while True:
        data = await loop.sock_recv(sock, 65535)
        if data[:2] == question[:2]:
            return verdict(data, question)


async def open_datagram(target: Target) -> socket.socket:
    """A UDP socket of its own source port, connected, so that a refusal is heard."""
    family, address = (await places(target.host, target.port))[0]
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    try:
        sock.connect(address)  # of a datagram: nothing is sent, so nothing is waited for
    except BaseException:
        sock.close()
        raise
    return sock


def verdict(data: bytes, question: bytes) -> str | None:
    """Who answered; AnswerError when the answer is an error code, for another question, or no DNS at all."""
    try:
        reply = packet.parse(data)
    except ValueError as err:
        raise AnswerError(str(err)) from None
    asked = packet.question_of(question)
    if reply.question.lower() != asked.lower():
        msg = "the answer is for another question"
        raise AnswerError(msg)
    if reply.truncated:
        return None
    if reply.rcode:
        raise AnswerError(reply.rcode_name)
    return reply.texts[0] if reply.texts else None


async def _read(wire: Wire) -> None:
    try:
        while True:
            size = int.from_bytes(await wire.reader.readexactly(2), "big")
            data = await wire.reader.readexactly(size)
            wire.arrived(int.from_bytes(data[:2], "big"), data)
    except (OSError, asyncio.IncompleteReadError) as err:
        with contextlib.suppress(RuntimeError):
            wire.lost(ConnectionResetError(str(err)))
