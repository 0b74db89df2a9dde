"""``edgekeeper vip fifo``: keepalived's child that reads its FIFO and keeps ``vip-state.json`` beside it.

Measured with 2.2.7 and 2.3.4: a reload removes the FIFO and makes another one of the same name, sends TERM
to the reader, KILL about 1 s later, and starts another reader 10 to 30 ms after the TERM; no state is told
again, also with ``fifo_write_vrrp_states_on_reload``. At a shutdown the STOP lines and TERM come at once.
Standard input, output and error are /dev/null, so what a reader has to say about lines goes into the
state file, too (``skipped``).

Two locks keep the readers apart. On the FIFO itself: a second reader of the same FIFO waits until the first
is gone, because two that read by turns tear lines apart. On ``vip-state.lock`` beside it: the reader of the
next FIFO waits for what the one before still writes, for a second at most, and then takes the states
from the file. A reader whose FIFO was replaced, and that finds that another one has written since, is
silent (it was stopped for a while).
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Mapping, Sequence

from edgekeeper.host import lean
from edgekeeper.model.text import printable
from edgekeeper.vip import said

STATE_FILE, LOCK_FILE = "vip-state.json", "vip-state.lock"
READING, SKIPPED, LOST, RECOVERED = "vip.fifo_reading", "vip.fifo_line_skipped", "vip.state_lost", "vip.state_recovered"
"""Events of ``log.Event``, whose module would cost a start more than everything else here."""

EVERY_S = 0.05
"""The file is written at once after a quiet time, else so often; after a write that failed it is tried again so often."""
LAST_S = 2.0
"""After TERM: so long for the last lines."""
HANDOVER_S = 1.0
"""A reader waits so long for one of an earlier FIFO to be done with the state file."""
LOG_EVERY_S = 10.0
_LOOK_S = 0.02
_PIECE = 65536
_LONGEST_LINE = 4096


def main(argv: Sequence[str]) -> int:
    """Read the FIFO until keepalived is done. 0 done, 2 for a wrong command line, 6 without a FIFO."""
    words, node = list(argv), ""
    if len(words) >= 2 and words[0] == "--node":
        node, words = words[1], words[2:]
    if len(words) != 1 or words[0].startswith("-"):
        lean.tell(2, "edgekeeper: vip fifo takes --node NODE and the FIFO's path, which keepalived appends; nothing is read")
        return 2
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        fifo = os.open(words[0], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        refusal = None if os.fstat(fifo).st_mode & 0o170000 == 0o010000 else "it is no FIFO"
    except OSError as err:
        fifo, refusal = -1, err.strerror
    if refusal is not None:
        lean.tell(2, f"edgekeeper: {printable(words[0])} cannot be read: {refusal}; nothing is read")
        return 6
    Reader(words[0], node, fifo, woken).run()
    return 0


class Reader:
    """Reads one FIFO, given as its path and its descriptor; ``woken`` is readable when a signal came."""

    def __init__(self, path: str, node: str, fifo: int, woken: int) -> None:
        folder = path.rpartition("/")[0] or "."
        self._path, self._node, self._fifo, self._woken = path, node, fifo, woken
        self._file, self._lock = f"{folder}/{STATE_FILE}", f"{folder}/{LOCK_FILE}"
        self._mine: tuple[int, int] | None = None  # the state file as this reader left it
        self._vips: Mapping[str, said.Told] = {}
        self._rest, self._last = b"", b""
        self._dirty, self._lost = False, False
        self._due = 0.0
        self._skipped, self._told_skipped, self._next_log = 0, 0, 0.0
        self._end: float | None = None  # when it is over, once it is told to end
        self._parent: int | None = None
        parent = os.getppid()
        if parent == 1:
            self._end = time.monotonic()  # it died before we looked: it is never init, and nobody would ever end us
        elif parent > 1:
            self._parent = _watch(parent)
        self._poller = select.poll()
        self._poller.register(woken, select.POLLIN)
        if self._parent is not None:
            self._poller.register(self._parent, select.POLLIN)

    def run(self) -> None:
        """Everything, until keepalived is done."""
        if not self._alone():
            return
        self._wait_for_writer()
        self._vips = self._read_state()
        self._mine = self._stamp()
        self._log("info", READING, f"{self._path} is read; {len(self._vips)} VIPs are known from before")
        self._poller.register(self._fifo, select.POLLIN)
        while not self._over():
            self._wait(self._patience())
            self._drain(once=self._end is None)
            self._publish()
        self._drain(once=False)
        self._due = 0.0
        self._publish()
        self._log_skipped(now=True)

    # waiting ------------------------------------------------------------------------------

    def _wait(self, seconds: float | None) -> None:
        """Until a line, a signal, keepalived's death, or the time is over."""
        for descriptor, _ in self._poller.poll(None if seconds is None else max(0.0, seconds) * 1000):
            if descriptor == self._woken:
                os.read(self._woken, 512)
                self._end = self._end if self._end is not None else time.monotonic() + LAST_S
            elif descriptor == self._parent:
                self._end = time.monotonic()
                self._poller.unregister(descriptor)
                self._parent = None

    def _patience(self) -> float | None:
        waits = [] if self._end is None else [_LOOK_S]
        if self._dirty:
            waits.append(self._due - time.monotonic())
        return min(waits) if waits else None

    def _over(self) -> bool:
        if self._end is None:
            return False
        return time.monotonic() >= self._end or self._replaced() or (said.stopped(self._vips) and not self._dirty)

    def _replaced(self) -> bool:
        """Whether the path is another FIFO by now; a missing one is a keepalived that ends."""
        try:
            return not os.path.samestat(os.stat(self._path), os.fstat(self._fifo))  # noqa: PTH116 - no pathlib, it costs a start
        except OSError:
            return False

    def _alone(self) -> bool:
        """Wait until no other reader has this FIFO; False when it is over before."""
        while True:
            try:
                fcntl.flock(self._fifo, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._wait(_LOOK_S)
                if self._end is not None:
                    return False
            else:
                return True

    def _wait_for_writer(self) -> None:
        try:
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return  # a full disk: then nobody waits for anybody
        end = time.monotonic() + HANDOVER_S
        while time.monotonic() < end:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._wait(_LOOK_S / 2)
            else:
                return

    # reading ------------------------------------------------------------------------------

    def _drain(self, *, once: bool) -> None:
        """Take what the FIFO holds: one piece, or all of it."""
        while True:
            try:
                piece = os.read(self._fifo, _PIECE)
            except OSError:
                return
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                self._take(line)
            if len(self._rest) > _LONGEST_LINE:
                self._skip(self._rest)
                self._rest = b""
            if once or not piece:
                return

    def _take(self, raw: bytes) -> None:
        line = said.parse(raw.decode("ascii", "replace"))
        if line is None or not line.whole:
            self._skip(raw)
        if line is not None:
            vips = said.step(self._vips, line, time.time())
            if vips is not self._vips:
                self._vips, self._dirty = vips, True

    def _skip(self, raw: bytes) -> None:
        self._skipped += 1
        self._dirty = True
        self._last = raw
        self._log_skipped()

    def _log_skipped(self, *, now: bool = False) -> None:
        count = self._skipped - self._told_skipped
        if not count or (not now and time.monotonic() < self._next_log):
            return
        self._next_log, self._told_skipped = time.monotonic() + LOG_EVERY_S, self._skipped
        shown = printable(self._last.decode("ascii", "replace"), 80)
        self._log("warning", SKIPPED, f"{count} lines of keepalived's FIFO were not understood and are skipped, the last one: {shown}")

    # writing ------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Write the state file when something changed and it is time."""
        now = time.monotonic()
        if not self._dirty or now < self._due:
            return
        self._due = now + EVERY_S
        if self._replaced() and self._stamp() != self._mine:
            self._dirty = False  # this reader was stopped, and the next one has gone on without it
            return
        text = json.dumps(said.tree(self._node, time.time(), self._vips, self._skipped), separators=(",", ":"))
        try:
            lean.replace(self._file, text.encode() + b"\n")
        except OSError as err:
            if not self._lost:
                self._lost = True
                self._log("error", LOST, f"{self._file} cannot be written: {err.strerror}; what keepalived tells is kept in memory and written later")
            return
        self._dirty = False
        self._mine = self._stamp()
        if self._lost:
            self._lost = False
            self._log("info", RECOVERED, f"{self._file} can be written again and is up to date")

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._file)  # noqa: PTH116 - no pathlib, it costs a start
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def _read_state(self) -> Mapping[str, said.Told]:
        try:
            return said.load(json.loads(lean.read(self._file)))
        except (OSError, ValueError, RecursionError):
            return {}

    def _log(self, level: str, event: str, why: str) -> None:
        """A line as ``log`` writes it."""
        now = time.time()
        stamp = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
        node = {"node": self._node} if self._node else {}
        lean.tell(2, json.dumps({"ts": stamp, "level": level, "event": event, "why": printable(why, 2000), **node}, separators=(",", ":")))


def _watch(pid: int) -> int | None:
    """A descriptor that becomes readable when keepalived's VRRP process, which started us, is dead."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
