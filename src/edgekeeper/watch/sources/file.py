"""The lines of a log file, across every way in which it is rotated.

Whatever the kernel tells only makes the next look sooner; each look compares what has the name now with what is
held open. A file that lost its name is read to its end, and on for half a minute, before it is let go of; the files
that had the name in between (we were stopped, or another one restarted us) are read from their beginning. Measured
2026-11-30: a line is handed on 0.4 ms (median) after it was written, 20,000 lines/s in 500 pieces/s.

What is lost: lines in a former file that was deleted or compressed while nobody looked, and what a copying rotation
(``copytruncate``) itself loses between its copy and its truncation.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from edgekeeper.host.tail import PIECE, Bell, Held, Place, Seen, around, roads, seen
from edgekeeper.ports import Clock
from edgekeeper.watch.seams import Sight
from edgekeeper.watch.sources.lines import Cutter
from edgekeeper.watch.sources.mark import Mark
from edgekeeper.watch.sources.pace import Pace
from edgekeeper.watch.sources.rotation import next_after, rotated

_LOOK_S: Final = 1.0
"""At least so often it is looked whether there is more, also where the kernel tells of nothing (NFS)."""

_LINGER_S: Final = 30.0
"""A file that lost its name is let go of when nothing was written to it for so long: its writer has been told to reopen."""

_PATIENCE_S: Final = 2.0
"""A rotation may leave the name to nobody for a moment; that is no blindness yet."""

_MOST_FORMER: Final = 8
_MOST_REMEMBERED: Final = 32
_MOST_STEPS: Final = 1000


@dataclass(eq=False, slots=True)
class _Reading:
    """A file that is read, and the beginning of its next line."""

    held: Held
    cutter: Cutter = field(default_factory=Cutter)
    grown: float = 0.0

    def place(self) -> Place:
        """The end of the last line that was handed on."""
        return self.held.place(self.cutter.pending)


class FileSource:
    """Follows the file that has this name, from now on; with a ``mark`` file, from where an earlier follower has ended (see ``Mark``)."""

    def __init__(self, path: str | Path, clock: Clock, mark: Path | None = None) -> None:
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the links of now
        self._clock = clock
        self._mark = mark

    async def follow(self, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        """See ``seams.Source``."""
        following = _Following(self._path, self._clock, Mark(self._mark, self._clock), arrived, state)
        bell = Bell()
        try:
            following.begin()
            while True:
                await following.look()
                new = bell.listen(roads(self._path), following.held())
                following.tell(deaf=bell.deaf)
                if not new:
                    await bell.ring(_LOOK_S)
        finally:
            following.end()
            bell.close()


class _Following:
    """What is read now, what was read before, and where the first reading begins."""

    def __init__(self, path: Path, clock: Clock, mark: Mark, arrived: Callable[[bytes, float], None], state: Callable[[Sight], None]) -> None:
        self._path = path
        self._clock = clock
        self._mark = mark
        self._arrived = arrived
        self._state = state
        self._pace = Pace(clock)
        self._current: _Reading | None = None
        self._former: list[_Reading] = []
        self._left: OrderedDict[tuple[int, int], Place] = OrderedDict()  # files that were let go of, and how far they were read
        self._origin_ns: int | None = None  # when the file that was followed last was written last; None: none was yet
        self._first: Seen | None = None  # what had the name when we began: its lines of before are none of ours
        self._from_end = False
        self._wrong = ""  # why the name leads to nothing that can be read
        self._missed_at = float("-inf")
        self._told: Sight | None = None

    def begin(self) -> None:
        """Remember how long the file is now, or go back to where an earlier follower has ended."""
        if self._resume():
            return
        try:
            self._first = seen(self._path)
        except PermissionError:
            self._from_end = True  # what is behind the closed door may be old
        except OSError:
            return

    def held(self) -> list[Held]:
        """All files that are held open."""
        return [reading.held for reading in self._readings()]

    async def look(self) -> None:
        """Find out what has the name now, and read whatever there is to read."""
        self._wrong = ""
        try:
            found = seen(self._path)
            if self._current is None or self._current.held.identity != found.identity:
                await self._advance()
            self._missed_at = float("-inf")
        except OSError as err:
            self._miss(err)
        for reading, size in self._sizes():
            if not await self._drain(reading, size):
                await self._emptied(reading)
        self._let_go()
        self._mark.keep(self._places)

    def tell(self, *, deaf: bool) -> None:
        """Say what can be seen, if that is another than before."""
        if not self._wrong:
            note = "; the kernel has no watch left for it (fs.inotify), so it is looked at once a second" if deaf else ""
            sight = Sight(seeing=True, why=f"{self._path} is followed{note}")
        elif self._current is not None and self._clock.monotonic() - self._missed_at < _PATIENCE_S:
            return
        else:
            sight = Sight(seeing=False, why=self._wrong)
        if sight != self._told:
            self._told = sight
            self._state(sight)

    def end(self) -> None:
        """Keep the mark, let go of everything."""
        self._mark.flush()
        for reading in self._readings():
            reading.held.close()

    def _readings(self) -> Iterator[_Reading]:
        yield from self._former
        if self._current is not None:
            yield self._current

    def _miss(self, err: OSError) -> None:
        reason = err.strerror or str(err)
        self._wrong = f"{self._path} cannot be read: {reason}; it is tried again each second"
        if self._missed_at == float("-inf"):
            self._missed_at = self._clock.monotonic()

    def _sizes(self) -> list[tuple[_Reading, int | None]]:
        """Each file with its size of now, the newest looked at first: read so far in their order, the lines keep the order in which they were written."""
        out: list[tuple[_Reading, int | None]] = []
        for reading in reversed(list(self._readings())):
            try:
                out.insert(0, (reading, reading.held.now().size))
            except OSError:  # reading it will say what is wrong
                out.insert(0, (reading, None))
        return out

    async def _drain(self, reading: _Reading, size: int | None = None) -> bool:
        """Hand on the lines that are there now (up to ``size``, where that is said); False when the file is not what it was."""
        held = reading.held
        if held.handle < 0:  # let go of meanwhile
            return True
        try:
            size = held.now().size if size is None else size
            while True:
                piece = held.read(min(PIECE, max(0, size - held.offset)))
                if piece is None:
                    return False
                if not piece:
                    return True
                now = reading.grown = self._clock.monotonic()
                self._hand_on(reading.cutter.feed(piece), now)
                self._mark.keep(self._places)
                await self._pace.rest(more=len(piece) == PIECE)
        except OSError as err:  # a dead disk, a file server that forgot it
            self._miss(err)
            self._leave(reading)
            return True

    def _hand_on(self, lines: bytes, now: float) -> None:
        if lines:
            self._arrived(lines, now)

    async def _advance(self) -> None:
        """Go on from the file that was followed last to the one that has the name now, through those that had it in between."""
        reading = self._current
        if reading is not None:
            if not await self._drain(reading):
                await self._emptied(reading)
            if self._current is not None:
                self._origin_ns = reading.held.now().written_ns
                reading.grown = self._clock.monotonic()
                self._former.append(reading)
                self._current = None
        found = await self._catch_up()
        back = next((one for one in self._former if one.held.identity == found.identity), None)
        if back is not None:  # it got its name back
            self._former.remove(back)
            self._current = back
            return
        held = Held(self._path)
        if held.identity == found.identity:
            self._current = self._opened(held)
        else:  # rotated just now: the next look finds the one that we missed
            held.close()

    async def _catch_up(self) -> Seen:
        """Read the files that had the name after the one followed last and before the one that has it now, which is returned."""
        done = {held.identity for held in self.held()}
        for _ in range(_MOST_STEPS):
            now = seen(self._path)
            found = None if self._origin_ns is None else next_after(self._origin_ns, self._siblings(), done | {now.identity})
            if found is None:
                return now
            try:
                held = Held(found.path)
            except OSError:  # deleted meanwhile
                done.add(found.identity)
                continue
            if held.identity != found.identity:  # rotation goes on: everything has other names again
                held.close()
                continue
            done.add(found.identity)
            reading = self._opened(held)
            self._former.append(reading)
            if not await self._drain(reading):
                self._leave(reading)
            self._origin_ns = max(self._origin_ns or 0, found.written_ns)
            self._let_go()
        msg = "it is rotated faster than it can be read"
        raise OSError(msg)

    def _opened(self, held: Held) -> _Reading:
        """Where the reading of a file begins: where it was left, at its end of when we began, else at its beginning."""
        place = self._left.pop(held.identity, None)
        if place is not None and held.holds(place):
            held.resume(place)
        elif self._first is not None and held.identity == self._first.identity:
            held.go(self._first.size)
        elif self._from_end:
            held.go(held.now().size)
        else:
            held.go(0)
        self._first, self._from_end = None, False
        return _Reading(held, Cutter(skip=held.inside_a_line()), self._clock.monotonic())

    def _siblings(self) -> list[Seen]:
        bases = {self._path.name, self._path.resolve().name}
        return [one for one in around(self._path) if any(rotated(base, one.path.name) for base in bases)]

    async def _emptied(self, reading: _Reading) -> None:
        """A file was truncated: what we had not read of it is in its copy; then it begins anew."""
        if reading is not self._current:
            self._leave(reading)
            return
        copy = self._copy(reading)
        if copy is not None:
            await self._drain(copy)
            self._origin_ns = copy.held.now().written_ns
            copy.held.close()
        self._hand_on(reading.cutter.end(), self._clock.monotonic())
        reading.cutter = Cutter()
        if copy is not None:
            with contextlib.suppress(OSError):  # no name now: the next look finds the copies that follow
                await self._catch_up()
        reading.held.go(0)
        await self._drain(reading)

    def _copy(self, reading: _Reading) -> _Reading | None:
        place = reading.held.place()
        if place.offset == 0:
            return None
        for one in sorted(self._siblings(), key=lambda file: file.written_ns, reverse=True):
            if one.size < place.offset or one.identity == place.identity:
                continue
            with contextlib.suppress(OSError):
                held = Held(one.path)
                if held.holds(place):
                    held.resume(place)
                    return _Reading(held, reading.cutter)
                held.close()
        return None

    def _let_go(self) -> None:
        """Of files without their name that nobody writes to any more."""
        now = self._clock.monotonic()
        for reading in self._former[:]:
            if now - reading.grown >= _LINGER_S or len(self._former) > _MOST_FORMER:
                self._leave(reading)
        if self._wrong and self._current is not None and now - max(self._current.grown, self._missed_at) >= _LINGER_S:
            self._leave(self._current)

    def _leave(self, reading: _Reading) -> None:
        self._hand_on(reading.cutter.end(), self._clock.monotonic())
        with contextlib.suppress(OSError):
            self._left[reading.held.identity] = reading.held.place()
            self._origin_ns = max(self._origin_ns or 0, reading.held.now().written_ns)
        if len(self._left) > _MOST_REMEMBERED:
            self._left.popitem(last=False)
        reading.held.close()
        if reading is self._current:
            self._current = None
        elif reading in self._former:
            self._former.remove(reading)

    def _places(self) -> dict[str, Any] | None:
        """What a follower after us needs to go on here; None while that is not to be said (no file, and an old one may be behind the door)."""
        if self._first is not None or self._from_end:
            return None
        places = [reading.place() for reading in self._readings()]
        return {"path": str(self._path), "places": [[one.device, one.inode, one.offset, one.digest] for one in places]}

    def _resume(self) -> bool:
        """Hold again what an earlier follower held; False when there was none, or too long ago."""
        kept = self._mark.load()
        if kept is None or kept.get("path") != str(self._path):
            return False
        try:
            places = [Place(int(device), int(inode), int(offset), str(digest)) for device, inode, offset, digest in kept["places"]]
        except (KeyError, TypeError, ValueError):
            return False
        self._former = [reading for place in places if (reading := self._again(place)) is not None]
        if places and self._former and self._is(self._former[-1], places[-1]):
            self._current = self._former.pop()
        elif places:  # the file is gone: what was written since is in those that were written since
            self._origin_ns = int(float(kept["at"]) * 1e9)
        return True

    @staticmethod
    def _is(reading: _Reading, place: Place) -> bool:
        return reading.held.offset == place.offset and reading.held.place().digest == place.digest

    def _again(self, place: Place) -> _Reading | None:
        """The file of a place, or the copy that was made of it, read on from there."""
        files = self._siblings()
        with contextlib.suppress(OSError):
            files.append(seen(self._path))
        for one in sorted(files, key=lambda file: file.identity != place.identity):
            with contextlib.suppress(OSError):
                held = Held(one.path)
                same = held.identity == place.identity
                if held.holds(place) and (same or place.offset > 0):
                    held.resume(place)
                    return _Reading(held, Cutter(skip=held.inside_a_line()), self._clock.monotonic())
                if same and one.path == self._path:  # truncated meanwhile: the first look finds that out
                    held.resume(place)
                    return _Reading(held, Cutter(), self._clock.monotonic())
                held.close()
        return None
