"""The console of a running dnsdist over one kept connection.

The protocol, as 1.7.3, 1.9.16 and 2.1.3 speak it: both sides send 24 random bytes; each direction's
nonce is one half of either; a message is a big-endian length and a NaCl secretbox, and the first
four bytes of the nonce count it. A first empty message proves that the keys agree. The library on
PyPI blocks, and after a broken connection sends a command again that may have been carried out.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import struct
from types import TracebackType
from typing import Self

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from edgekeeper.engines.dnsdist.logline import tidy
from edgekeeper.engines.dnsdist.seat import console_key_bytes
from edgekeeper.errors import MissingError, StepFailedError

_NONCE = 24
_HALF = _NONCE // 2
_LIMIT = 64 * 2**20
_FAILED = re.compile(r"^(Error: |Command returned an object we can't print|.* cannot be used at runtime!?$|.*not a valid )", re.MULTILINE)


class Console:
    """An authenticated connection; use as ``async with Console(port, key) as console``. One command at a time.

    ``timeout_s`` bounds each wait. MissingError when the console cannot be reached or the key is
    another's; StepFailedError when a command failed or was not answered in time (it may have been carried out).
    """

    def __init__(self, port: int, key: str, *, timeout_s: float = 5.0, host: str = "127.0.0.1") -> None:
        self._host, self._port, self._key, self._timeout = host, port, key, timeout_s
        self._lock = asyncio.Lock()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        key = console_key_bytes(self._key)
        if key is None:
            msg = "the console key is not base64 of 32 bytes; dnsdist runs without a console then"
            raise MissingError(msg)
        self._box = SecretBox(key)
        try:
            async with asyncio.timeout(self._timeout):
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
                ours = secrets.token_bytes(_NONCE)
                self._writer.write(ours)
                theirs = await self._reader.readexactly(_NONCE)
                self._reading = bytearray(ours[:_HALF] + theirs[_HALF:])
                self._writing = bytearray(theirs[:_HALF] + ours[_HALF:])
                await self._exchange("")
        except (OSError, EOFError, TimeoutError, CryptoError) as err:
            await self.close()
            why = "it closed the connection or the key is another's" if isinstance(err, EOFError | CryptoError) else _why(err)
            msg = f"dnsdist's console on port {self._port} cannot be used: {why}"
            raise MissingError(msg) from err
        except asyncio.CancelledError:  # the deadline of who asks
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the engine does not mind."""
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            writer.close()

    async def run(self, command: str) -> str:
        """Carry out ``command`` and return its text; StepFailedError when the text says that it failed."""
        async with self._lock:
            try:
                async with asyncio.timeout(self._timeout):
                    answer = await self._exchange(command)
            except (OSError, EOFError, TimeoutError, CryptoError) as err:
                await self.close()
                msg = f"dnsdist's console did not answer a command: {_why(err)}; it may have been carried out"
                raise StepFailedError(msg) from err
        failed = _FAILED.search(answer)
        if failed:
            msg = f"dnsdist's console refused a command: {tidy(answer[failed.start() :].splitlines()[0])}"
            raise StepFailedError(msg)
        return answer

    async def _exchange(self, text: str) -> str:
        if self._reader is None or self._writer is None:
            msg = "the connection is closed"
            raise EOFError(msg)
        sealed = self._box.encrypt(text.encode(), bytes(self._writing)).ciphertext
        _count(self._writing)
        self._writer.write(struct.pack("!I", len(sealed)) + sealed)
        await self._writer.drain()
        (size,) = struct.unpack("!I", await self._reader.readexactly(4))
        if size > _LIMIT:
            msg = f"an answer of {size} bytes"
            raise OSError(msg)
        answer = self._box.decrypt(await self._reader.readexactly(size), bytes(self._reading))
        _count(self._reading)
        return answer.decode("utf-8", "replace")


def _count(nonce: bytearray) -> None:
    (number,) = struct.unpack_from("!I", nonce)
    struct.pack_into("!I", nonce, 0, (number + 1) & 0xFFFFFFFF)


def _why(err: BaseException) -> str:
    if isinstance(err, TimeoutError):
        return "it did not answer in time"
    if isinstance(err, EOFError):
        return "it closed the connection"
    return str(err) or type(err).__name__
