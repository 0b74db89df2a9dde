"""A recorded log, read from its beginning to its end in blocks: a file, one that gzip, xz or zstd has packed, or standard input."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from typing import IO, Any, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from edgekeeper.errors import MissingError, UsageError

_BLOCK = 2**20
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError)


class Archive:
    """One recorded log; packed or not is told by its first bytes, whatever its name is. MissingError or UsageError when it cannot be opened.

    ``changed`` is the Unix time of its last change (standard input: now), ``zone_s`` how far this machine's local time was ahead of
    UTC then. ``damage`` is the sentence that says why it could not be read to its end, empty until then.
    """

    def __init__(self, path: str) -> None:
        self.damage = ""
        self._name = "standard input" if path == "-" else path
        try:
            raw: IO[bytes] = sys.stdin.buffer if path == "-" else open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - blocks() closes it
            mode = os.fstat(raw.fileno())
        except OSError as err:
            msg = f"{path} cannot be read: {err.strerror or err}"
            raise MissingError(msg) from err
        except (AttributeError, io.UnsupportedOperation) as err:
            msg = "standard input is closed; name a file"
            raise UsageError(msg) from err
        if path != "-" and not stat.S_ISREG(mode.st_mode):
            raw.close()
            msg = f"{path} is not a file; it is not read (a stream: name it - and pipe it in)"
            raise UsageError(msg)
        self.changed = mode.st_mtime if stat.S_ISREG(mode.st_mode) else time.time()
        self.zone_s = time.localtime(self.changed).tm_gmtoff
        self.size = mode.st_size if stat.S_ISREG(mode.st_mode) else None
        self._raw = cast("io.BufferedReader", raw)
        self._unpacked: Any = None

    @property
    def packed(self) -> bool:
        """Whether it is compressed, by its first bytes; to be asked before anything was read."""
        return self._raw.peek(8).startswith((_GZIP, _XZ, _ZSTD))

    def seek(self, at: int) -> None:
        """Go on from that byte; only of a file that is not packed."""
        self._raw.seek(at)

    def fill(self, view: memoryview) -> int:
        """Put unpacked bytes into a buffer; how many (0: no more). What is damaged ends early, and ``damage`` says so."""
        try:
            if self._unpacked is None:
                self._unpacked = _unpacking(self._raw)
            return int(self._unpacked.readinto1(view))
        except _DAMAGE as err:
            self._damaged(err)
            return 0

    def close(self) -> None:
        """Let go of the file (not of standard input)."""
        if self._raw is not getattr(sys.stdin, "buffer", None):
            self._raw.close()

    def blocks(self) -> Iterator[bytes]:
        """Its unpacked bytes, up to 1 MiB at a time; closes the file at the end. What is damaged ends early, and ``damage`` says so."""
        with self._raw:
            try:
                unpacked = _unpacking(self._raw)
                while block := unpacked.read1(_BLOCK):  # read() would keep back what it has when the end is missing
                    yield block
            except _DAMAGE as err:
                self._damaged(err)

    def _damaged(self, err: BaseException) -> None:
        why = getattr(err, "strerror", None) or str(err)
        self.damage = f"{self._name} cannot be read to its end ({why}); what was before that is used"


def _unpacking(raw: io.BufferedReader) -> Any:
    head = raw.peek(8)
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)
    if head.startswith(_ZSTD):
        return zstd.ZstdFile(raw)
    return lzma.LZMAFile(raw) if head.startswith(_XZ) else raw


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
