"""A child whose output is read while it runs: in pieces, never more than the loop can stand, and it never outlives its reader."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from edgekeeper.errors import MissingError

PIECE = 65536
"""Bytes that are read at once; what a child writes beyond them waits in the pipe, and then the child waits."""

_TERM_S = 2.0
_KILL_S = 10.0
_REST_S = 0.2
"""After a child's end its pipe may be held open by a child of its own; what is in it is read for so long."""


class Stream:
    """A program in a session and process group of its own, with its output and errors in one pipe; MissingError when it cannot be run.

    Whoever of its group is still there when it has ended, or is ended, is killed. One that left the group is not
    reached; its writing then ends at the closed pipe.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._out, theirs = os.pipe2(os.O_CLOEXEC)
        self._pidfd = -1
        try:
            self._child = subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True)
        except (OSError, ValueError) as err:
            os.close(self._out)
            msg = f"{argv[0]} cannot be run: {getattr(err, 'strerror', None) or err}"
            raise MissingError(msg) from err
        finally:
            os.close(theirs)
        os.set_blocking(self._out, False)
        try:
            self._pidfd = os.pidfd_open(self._child.pid)
        except OSError as err:  # no descriptor is left: what cannot be watched must not run
            self._kill()
            self._child.wait()
            os.close(self._out)
            msg = f"{argv[0]} cannot be watched: {err.strerror or err}; it was ended again"
            raise MissingError(msg) from err

    @property
    def pid(self) -> int:
        """Its pid, which is that of its group too."""
        return self._child.pid

    @property
    def code(self) -> int | None:
        """How it ended (negative: by this signal); None while it runs."""
        return self._child.returncode

    async def read(self) -> bytes | None:
        """The next piece, waiting for it; None when the child has ended and everything was read."""
        loop = asyncio.get_running_loop()
        until = None
        while True:
            try:
                piece = os.read(self._out, PIECE)
            except BlockingIOError:
                piece = None
            if piece:
                return piece
            if until is None and (piece is not None or self._ended()):  # closed, or ended with a pipe that somebody holds
                until = loop.time() + (_TERM_S if piece is not None else _REST_S)
            if until is not None and (loop.time() >= until or (self._ended() and piece is not None)):
                return None
            await self._wait(None if until is None else until - loop.time(), closed=piece is not None)

    async def end(self) -> None:
        """TERM to its group, two seconds, KILL, wait; it may have ended already."""
        try:
            if not self._ended():
                self._signal(signal.SIGTERM)
                self._signal(signal.SIGCONT)  # a stopped one acts on TERM only once it runs again
                await self._gone(_TERM_S)
        finally:
            self._kill()
            try:
                await self._gone(_KILL_S)
            finally:
                if self._ended():
                    self._child.wait()
                for handle in (self._out, self._pidfd):
                    os.close(handle)

    def _ended(self) -> bool:
        """Whether it has ended; it is not reaped, so that its group keeps its number until it was killed."""
        return os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    async def _gone(self, within_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self._ended():
                    await self._wait(within_s, closed=True)

    async def _wait(self, within_s: float | None, *, closed: bool) -> None:
        """Until there is more to read (unless ``closed``), the child has ended, or the time is over."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        handles = [handle for handle, wanted in ((self._out, not closed), (self._pidfd, not self._ended())) if wanted]
        for handle in handles:
            loop.add_reader(handle, _wake, woken)
        timer = None if within_s is None else loop.call_later(max(0.0, within_s), _wake, woken)
        try:
            await woken
        finally:
            if timer is not None:
                timer.cancel()
            for handle in handles:
                loop.remove_reader(handle)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
