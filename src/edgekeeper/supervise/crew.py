"""The engine's processes: which one serves, which one stands beside it, and how to find both again.

The record (``RUN/engine.json``) is written before anything depends on it, so that a supervisor that
is killed at any instant leaves enough for the next one. An engine that was started in the very
instant before is found by its environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekeeper.errors import EdgekeeperError
from edgekeeper.host.files import make_folder, read_text, write_text
from edgekeeper.host.process import Process, marked, parent, spawn
from edgekeeper.log import WARNING, Event, emit

SCHEMA = 1
MARK = "EDGEKEEPER_ENGINE"
GENERATION = "EDGEKEEPER_GENERATION"


@dataclass(frozen=True, slots=True)
class Hand:
    """A process and the generation that it runs (live changes move it on to a later one)."""

    process: Process
    generation: str
    since: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a starting supervisor found: who serves, who else runs, and what was under way.

    ``recorded`` is whether a record says what the serving one runs; its environment only tells what it was started with.
    """

    serving: Hand | None
    others: tuple[Hand, ...] = ()
    applying: str | None = None
    steering: tuple[str, ...] = ()
    recorded: bool = True


@dataclass(frozen=True, slots=True)
class Adopted:
    """What a starting supervisor took over."""

    running: bool
    digest: str | None
    good: str | None
    why: str
    pid: int | None = None


class Crew:
    """The processes of one role's engine."""

    def __init__(self, run_dir: Path, mark: str, *, mode: int = 0o700) -> None:
        self._mode = mode
        self.folder = make_folder(run_dir, mode)
        self.log = run_dir / "engine.log"
        self.serving: Hand | None = None
        self.beside: Hand | None = None
        self.applying: str | None = None
        self.steering: tuple[str, ...] = ()
        self._record = run_dir / "engine.json"
        self._mark = mark

    @property
    def in_use(self) -> set[str]:
        """Generations that a process or an unfinished change still needs."""
        names = {hand.generation for hand in (self.serving, self.beside) if hand is not None}
        return names | ({self.applying} if self.applying else set())

    def save(self) -> None:
        """Write the record, before what depends on it is done. It lies in memory (``/run``), so it is not synced."""
        make_folder(self.folder, self._mode)  # somebody may have wiped the run_dir
        record = {
            "schema": SCHEMA,
            "serving": _dump(self.serving),
            "beside": _dump(self.beside),
            "applying": self.applying,
            "steering": list(self.steering),
        }
        write_text(self._record, json.dumps(record), sync=False)

    def find(self) -> Found:
        """Look for processes of an earlier supervisor, by its record and by their environment."""
        record = self._read()
        serving, beside = _load(record.get("serving")), _load(record.get("beside"))
        strays = self._unknown({hand.process.pid for hand in (serving, beside) if hand is not None})
        everyone = [hand for hand in (serving, beside, *strays) if hand is not None]
        if not everyone:
            return Found(None)
        applying, steering = record.get("applying"), record.get("steering")
        return Found(
            everyone[0],
            tuple(everyone[1:]),
            applying if everyone[0] is serving and isinstance(applying, str) else None,
            tuple(listen for listen in steering if isinstance(listen, str)) if isinstance(steering, list) else (),
            everyone[0] in (serving, beside),
        )

    def strays(self) -> list[Hand]:
        """Processes of this engine that are neither the one that serves nor the one beside it."""
        return self._unknown({hand.process.pid for hand in (self.serving, self.beside) if hand is not None})

    def _unknown(self, known: set[int]) -> list[Hand]:
        strays = []
        found = marked(MARK, self._mark)
        ours = {pid for pid, _ in found}
        for pid, started in found:
            # A child of a marked process (a worker of HAProxy's master) has its environment and is its parent's affair.
            process = None if pid in known or parent(pid) in ours else Process.find(pid, started)
            if process is not None:
                strays.append(Hand(process, _generation_of(pid), 0.0))
        return strays

    def start(self, argv: Sequence[str], generation: str, now: float, *, beside: bool) -> Hand:
        """Start a process, to serve or to stand beside the one that serves, and record it."""
        make_folder(self.folder, self._mode)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("EDGEKEEPER_")}
        process = spawn(argv, self.log, {**environment, MARK: self._mark, GENERATION: generation})
        hand = Hand(process, generation, now)
        if beside:
            self.beside = hand
        else:
            self.serving = hand
        self.note()
        return hand

    def moved_on(self, generation: str) -> None:
        """The serving process now has this generation."""
        if self.serving is not None:
            self.serving = replace(self.serving, generation=generation)
        self.applying = None
        self.note()

    def promote(self) -> Hand:
        """The one beside serves from now on; the one that served is the one beside, to be stopped."""
        assert self.beside is not None  # noqa: S101 - the caller has just started it
        self.serving, self.beside = self.beside, self.serving
        self.note()
        return self.serving

    async def stop(self, hand: Hand, deadline_s: float) -> str:
        """Stop a process for sure and forget it; says how it ended."""
        how = await hand.process.stop(deadline_s)
        if self.serving is hand:
            self.serving = None
        if self.beside is hand:
            self.beside = None
        self.note()
        return how

    def note(self) -> None:
        """Write down what has happened already; a record that cannot be written (a full ``/run``) undoes nothing.

        The next supervisor then finds the processes by their environment, and does an unfinished live
        change once more.
        """
        try:
            self.save()
        except EdgekeeperError as err:
            emit(Event.INTERNAL_ERROR, f"the record of the engines is not up to date: {err}", level=WARNING)

    def keep(self) -> None:
        """Write the record again where somebody took it away: commands beside the supervisor look there for the engine."""
        if (self.serving or self.beside) and not self._record.exists():
            self.note()

    def _read(self) -> dict[str, Any]:
        try:
            record = json.loads(read_text(self._record))
        except (EdgekeeperError, ValueError):
            return {}
        return record if isinstance(record, dict) and record.get("schema") == SCHEMA else {}


def _dump(hand: Hand | None) -> dict[str, Any] | None:
    if hand is None:
        return None
    return {"pid": hand.process.pid, "started": hand.process.started, "generation": hand.generation, "since": hand.since}


def _load(value: object) -> Hand | None:
    if not isinstance(value, dict):
        return None
    try:
        process = Process.find(int(value["pid"]), int(value["started"]))
        return Hand(process, str(value["generation"]), float(value.get("since", 0))) if process else None
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _generation_of(pid: int) -> str:
    """The generation that a stray was started with, from its environment; empty when it does not say."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return ""
    for pair in environment.split(b"\0"):
        name, _, value = pair.partition(b"=")
        if name.decode("ascii", "replace") == GENERATION:
            return value.decode("ascii", "replace")
    return ""
