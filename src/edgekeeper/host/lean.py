"""Files, descriptors and waits for the short-lived children of keepalived: the few things they do, without what the other modules import.

``edgekeeper vip probe`` starts each second and ``edgekeeper vip fifo`` at each reload, so nothing here may
cost a start more than a millisecond: no pathlib, tempfile, threading, logging or asyncio.
"""

from __future__ import annotations

import _thread
import os
import select
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_REGULAR, _KIND = 0o100000, 0o170000
_MOST_AT_ONCE = 4096
"""A pipe that has room at all takes so much in one piece (PIPE_BUF)."""

_under_way: dict[str, tuple[Any, list[tuple[bool, Any]]]] = {}


def tell(descriptor: int, line: str) -> None:
    """Write a line if that can be done without waiting; a full pipe, a stopped terminal or a full disk loses it."""
    raw = (line + "\n").encode("utf-8", "backslashreplace")
    if len(raw) > _MOST_AT_ONCE:
        raw = raw[: _MOST_AT_ONCE - 1] + b"\n"
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT)
        if any(seen & select.POLLOUT for _, seen in poller.poll(0)):
            os.write(descriptor, raw)
    except OSError:
        pass  # nobody listens; the exit code tells


def read(path: str, limit: int = 2**20) -> bytes:
    """The bytes of a file; OSError, or ValueError when it is no file or too large. Does not wait for the writer of a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_mode & _KIND != _REGULAR:
            msg = f"{path} is not a file"
            raise ValueError(msg)
        out = b""
        while piece := os.read(descriptor, 65536):
            out += piece
            if len(out) > limit:
                msg = f"{path} is larger than {limit} bytes"
                raise ValueError(msg)
        return out
    finally:
        os.close(descriptor)


def replace(path: str, raw: bytes, mode: int = 0o644) -> None:
    """Put another file in the place of ``path`` in one rename; OSError, and then what was there stays. Not synced: for files that die with the machine."""
    temp = f"{path}.{os.getpid()}.new"
    try:
        descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            rest = memoryview(raw)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fchmod(descriptor, mode)  # whatever the umask says
        finally:
            os.close(descriptor)
        os.rename(temp, path)  # noqa: PTH104 - pathlib is what this module does without
    except OSError:
        _remove(temp)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108 - as above
    except OSError:
        return


def within(name: str, do: Callable[[], T], seconds: float) -> T:
    """What ``do`` returns or raises, or TimeoutError after ``seconds``: it runs in a thread that is left behind then.

    ``name`` says which calls are the same: while one hangs (a file on a dead disk), the next ones wait for
    it instead of leaving another thread behind each time.
    """
    done, out = _thread.allocate_lock(), list[tuple[bool, Any]]()
    done.acquire()
    mine = (done, out)
    found = _under_way.setdefault(name, mine)
    if found is mine:

        def work() -> None:
            try:
                out.append((True, do()))
            except Exception as err:  # noqa: BLE001 - handed over to who waits
                out.append((False, err))
            finally:
                _under_way.pop(name, None)
                done.release()

        _thread.start_new_thread(work, ())
    done, out = found
    if not done.acquire(timeout=max(0.0, seconds)):
        msg = f"no answer within {seconds:.2f} s"
        raise TimeoutError(msg)
    done.release()  # for the others that wait
    well, value = out[0]
    if not well:
        raise value
    return value  # type: ignore[no-any-return]


def age_s() -> float:
    """Seconds since this process was started, to a hundredth: what the interpreter's start took is a part of them. 0 when it cannot be told."""
    try:
        fields = read("/proc/self/stat", 65536).rpartition(b")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, age)
