"""A program that is read for ever: started again whenever it ends, after a pause that grows."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from typing import Final

from edgekeeper.errors import MissingError
from edgekeeper.host.stream import PIECE, Stream
from edgekeeper.model.text import printable
from edgekeeper.ports import Clock
from edgekeeper.watch.sources.pace import Pace

_SETTLED_S: Final = 1.0
"""A program that ran for so long was not refused at once: it is believed to see."""

_WELL_S: Final = 60.0
"""After so long its next end is the first one again."""

_FIRST_S: Final = 0.5
_LONGEST_S: Final = 30.0


async def run_for_ever(
    argv: Callable[[], Sequence[str]], clock: Clock, piece: Callable[[bytes], bool], tell: Callable[[str], None], ended: Callable[[], str]
) -> None:
    """Run what ``argv`` returns and hand on its output, again and again.

    ``piece`` gets what it wrote and returns whether that shows that the program can see (then ``tell`` is called with an empty sentence;
    it is called too when the program runs for a second); ``tell`` is told otherwise why nothing can be seen; ``ended`` is called after
    each end of the program, and what it returns is added to the reason.
    """
    pause = _FIRST_S
    while True:
        began = clock.monotonic()
        command = list(argv())
        try:
            stream = Stream(command)
        except MissingError as err:
            why = str(err)
        else:
            try:
                await _read(stream, Pace(clock), piece, tell)
            finally:
                await stream.end()
            why = f"{command[0]} {_ending(stream.code)}"
        said = printable(ended())[:300]
        if clock.monotonic() - began >= _WELL_S:
            pause = _FIRST_S
        tell(f"{why}{': ' + said if said else ''}; it is started again in {pause:g} s")
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_S)


async def _read(stream: Stream, pace: Pace, piece: Callable[[bytes], bool], tell: Callable[[str], None]) -> None:
    settled = asyncio.get_running_loop().call_later(_SETTLED_S, tell, "")
    try:
        while (raw := await stream.read()) is not None:
            if piece(raw):
                tell("")
            await pace.rest(more=len(raw) == PIECE)
    finally:
        settled.cancel()


def _ending(code: int | None) -> str:
    if code is None:
        return "hangs in the kernel and could not be ended"
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"
