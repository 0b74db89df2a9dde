"""The store of budgets: how often each automatic act happened lately, over restarts, reboots, processes and jumps of the clock.

One JSON file, changed under a lock and written whole before an act is allowed. Where it cannot be read or written the answer is no:
an act that cannot be counted must not happen. A process that is killed between the answer and its act has lost an act.

``{"schema": 2, "at": {"wall", "boot", "boot_id"}, "damaged": null, "keys": {KEY: {"spent": [], "told": [], "poor": 0}}}``: ``at`` is
when it was written, by all clocks; every other number is a moment in seconds since that boot (of acts before the boot: below 0). So
within a boot no wall clock is asked for an age, and each writing brings what an earlier boot has left onto the clock of this one. What
remains to be believed is how long the machine was down, and by how much the wall clock was set between the last look and a reboot.
``told`` are acts of siblings on other nodes. Schema 1 (Unix times) is read; an edgekeeper that only knows that one takes this for
damaged, which counts as spent.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekeeper.errors import EdgekeeperError, LockHeldError, MissingError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.log import ERROR, Event, emit
from edgekeeper.model.budget import Budget, Spending, Window
from edgekeeper.model.budget import spend as spend_one
from edgekeeper.model.moment import Moment, elapsed, strayed

SCHEMA = 2
SAME_S = 2.0
"""Two tellings of an act of a sibling that are no further apart are the same act: its age is as good as the network's delay."""

OVERTAKEN_S = 10.0
"""A moment that is so much earlier than the last writing was overtaken by another process; an earlier one is of another clock (a snapshot)."""

_LOCK_WAIT_S = 2.0
_DAMAGED = "the store was damaged, and all that it may have held counts as spent; remove it to forget that"
_STRAYED_S = 1.0
_UNIX = Moment(0.0, 0.0, "", 0.0)
"""The moment to which the numbers of schema 1 count."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is known of one key: times of own acts, of acts that siblings told of, and how many in a row did not help."""

    spent: tuple[float, ...] = ()
    told: tuple[float, ...] = ()
    poor: int = 0


@dataclass(frozen=True, slots=True)
class _Store:
    """The file; times are on the axis of ``at.boot``."""

    at: Moment = _UNIX
    damaged: float | None = None
    keys: Mapping[str, _Kept] | None = None

    def of(self, key: str) -> _Kept:
        return (self.keys or {}).get(key, _Kept())

    def age_s(self, t: float, now: Moment) -> float:
        return max(self.at.boot - t + elapsed(self.at, now), 0.0)

    def brought_to(self, now: Moment) -> _Store:
        """The same on the clock of now: what a later jump of the wall clock does to it is nothing."""

        def moved(times: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(now.boot - self.age_s(t, now) for t in times)

        keys = {key: replace(kept, spent=moved(kept.spent), told=moved(kept.told)) for key, kept in (self.keys or {}).items()}
        return _Store(now, None if self.damaged is None else now.boot - self.age_s(self.damaged, now), keys)

    def stale(self, now: Moment) -> bool:
        """Whether what is in the file depends on clocks that have been set, or were started anew, since it was written."""
        if not self.keys and self.damaged is None:
            return False
        return self.at.boot_id != now.boot_id or self.at.boot > now.boot or strayed(self.at, now) > _STRAYED_S


# what others call ---------------------------------------------------------------------------


def spend(store_path: str | Path, key: str, budget: Budget, moment: Moment, others_s: Sequence[float] = ()) -> Spending:
    """Take one act of ``key`` out of its budget; of ``budget`` the rules and the pause count, what is spent says the store.

    ``others_s`` are the ages of acts that siblings on other nodes tell of: they count as ours do and are kept, so that they count
    also when nobody tells of them any more; who told of them before may tell again. The spending is on the disk before the answer
    says yes. LockHeldError when another process sits on the store for 2 s, StepFailedError or MissingError when it cannot be written
    or read: then do not act. A store that is no longer JSON counts every budget as spent once, from now on.

    The budget in the answer is on the axis of ``moment.mono``.
    """
    path = Path(store_path)
    with _locked(path) as waited_s:
        read = _read(path)
        now = _in_turn(read, moment.later(waited_s))
        found = (read or _Store(now, now.boot)).brought_to(now)
        items = _items(found, key, budget, now, others_s)
        answer = spend_one(_budget(items, found.of(key), budget, now), now.mono)
        count = len(answer.budget.spent) - answer.allowed
        left = [(item.kind, now.boot - (now.mono - t)) for item, t in zip(items[len(items) - count :], answer.budget.spent, strict=False)]
        if answer.allowed or read is None or read.stale(now) or any(kind == "news" for kind, _ in left):
            own = (*(t for kind, t in left if kind == "own"), *((now.boot,) if answer.allowed else ()))
            told = tuple(t for kind, t in left if kind in ("told", "news"))
            _write(path, replace(found, keys={**(found.keys or {}), key: _Kept(own, told, answer.budget.poor)}))
        return answer


def look(store_path: str | Path, key: str, budget: Budget, moment: Moment, others_s: Sequence[float] = ()) -> Budget:
    """The budget of ``key`` as the store has it, on the axis of ``moment.mono``, with nothing spent; what counts is ``spend``.

    Waits for no lock and writes nothing, unless the store is damaged or of other clocks (a reboot, a wall clock that was set): then it
    is written anew, so that who only looks until an act is allowed sees that moment come. Raises as ``spend`` does.
    """
    path = Path(store_path)
    read = _read(path)
    now = _in_turn(read, moment)
    if read is None or read.stale(now):
        with _locked(path) as waited_s:
            read = _read(path)
            now = _in_turn(read, moment.later(waited_s))
            found = (read or _Store(now, now.boot)).brought_to(now)
            _write(path, found)
    else:
        found = read.brought_to(now)
    return _budget(_items(found, key, budget, now, others_s), found.of(key), budget, now)


def note(store_path: str | Path, key: str, helped: bool) -> None:  # noqa: FBT001 - the answer to "did it help?"
    """Keep whether the last act of ``key`` helped: each that did not doubles the pause, one that did ends it. Raises as ``spend`` does."""
    path = Path(store_path)
    with _locked(path):
        store = _read(path)
        if store is None or not store.of(key).spent:
            return  # there is no act to note this of
        kept = store.of(key)
        if not helped or kept.poor:
            _write(path, replace(store, keys={**(store.keys or {}), key: replace(kept, poor=0 if helped else kept.poor + 1)}))


def ages(store_path: str | Path, key: str, moment: Moment) -> tuple[float, ...]:
    """Seconds since each act of our own that still counts, the last first: what siblings are told. Never what they told us: it would come back as ours.

    MissingError when the store cannot be read.
    """
    store = _read(Path(store_path))
    return tuple(sorted(store.age_s(t, moment) for t in store.of(key).spent)) if store is not None else ()


def _in_turn(store: _Store | None, now: Moment) -> Moment:
    """Who read the clock first may come to the lock last: nothing is dated before the last writing."""
    overtaken_s = store.at.boot - now.boot if store is not None and store.at.boot_id == now.boot_id else 0.0
    return now.later(overtaken_s) if 0 < overtaken_s < OVERTAKEN_S else now


# the acts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Item:
    """One act: its time on the axis of decisions, and whose it is."""

    t: float
    kind: str


def _items(store: _Store, key: str, budget: Budget, now: Moment, others_s: Sequence[float]) -> list[_Item]:
    """Every act that counts, in order."""
    kept = store.of(key)
    told = sorted(kept.told)
    news = _news(told, sorted(now.boot - max(age, 0.0) for age in others_s if math.isfinite(age)))
    damaged = [store.damaged] * max((rule.limit if isinstance(rule, Window) else rule.capacity for rule in budget.rules), default=0)
    kinds = {"own": kept.spent, "told": told, "news": news, "damaged": damaged if store.damaged is not None else []}
    return sorted((_Item(now.mono - (now.boot - t), kind) for kind, times in kinds.items() for t in times if t is not None), key=lambda item: item.t)


def _budget(items: list[_Item], kept: _Kept, budget: Budget, now: Moment) -> Budget:
    horizon_s = max((rule.window_s if isinstance(rule, Window) else rule.capacity * rule.every_s for rule in budget.rules), default=0.0)
    note = _DAMAGED if any(item.kind == "damaged" and now.mono - item.t < horizon_s for item in items) else ""
    return replace(budget, spent=tuple(item.t for item in items), poor=kept.poor, note=note)


def _news(known: list[float], told: list[float]) -> list[float]:
    """What of ``told`` is not known yet, one by one: two acts in the same second are two. Both are in order."""
    news, at = [], 0
    for t in told:
        while at < len(known) and known[at] < t - SAME_S:
            at += 1
        if at < len(known) and known[at] <= t + SAME_S:
            at += 1
        else:
            news.append(t)
    return news


# the file -----------------------------------------------------------------------------------


def _read(path: Path) -> _Store | None:
    """The store; empty where there is none, None where it is damaged."""
    try:
        if not path.exists():
            return _Store()
        text = read_text(path, tolerant=True)
    except (OSError, EdgekeeperError) as err:
        msg = f"{err}; without it no automatic act is allowed"
        raise MissingError(msg) from err
    try:
        return _loaded(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as err:
        emit(Event.BUDGET_DAMAGED, f"{path} is not a store of budgets; every budget counts as spent for one window from now", level=ERROR, error=str(err))
        return None


def _loaded(raw: Any) -> _Store:
    if raw["schema"] == 1:
        old = {str(key): _Kept(_numbers(times)) for key, times in raw["spent"].items()}
        return _Store(_UNIX, _number(raw["damaged"]) or None, old)
    if raw["schema"] != SCHEMA:
        msg = f"schema {raw['schema']}"
        raise ValueError(msg)
    at = Moment(_number(raw["at"]["wall"]), _number(raw["at"]["boot"]), str(raw["at"]["boot_id"]), 0.0)
    keys = {key: _Kept(_numbers(kept["spent"]), _numbers(kept["told"]), max(int(kept["poor"]), 0)) for key, kept in raw["keys"].items()}
    return _Store(at, None if raw["damaged"] is None else _number(raw["damaged"]), keys)


def _numbers(raw: Any) -> tuple[float, ...]:
    if not isinstance(raw, list):
        raise TypeError(raw)
    return tuple(map(_number, raw))


def _number(raw: Any) -> float:
    if not isinstance(raw, int | float) or not math.isfinite(raw):
        raise TypeError(raw)
    return float(raw)


def _write(path: Path, store: _Store) -> None:
    def rounded(times: Sequence[float]) -> list[float]:
        return [round(t, 6) for t in times]

    keys = {key: {"spent": rounded(kept.spent), "told": rounded(kept.told), "poor": kept.poor} for key, kept in (store.keys or {}).items()}
    at = {"wall": store.at.wall, "boot": store.at.boot, "boot_id": store.at.boot_id}
    _tidy(path)
    write_text(path, json.dumps({"schema": SCHEMA, "at": at, "damaged": store.damaged, "keys": keys}, indent=1) + "\n")


def _tidy(path: Path) -> None:
    """Remove what writers have left that were killed: under the lock there is no other."""
    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(OSError):
            left.unlink()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[float]:
    """The lock beside the store, waited for 2 s (a spending takes milliseconds, unless its process is frozen); how long that was."""
    try:
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        msg = f"{path} cannot be locked: {err.strerror or err}; without it no automatic act is allowed"
        raise MissingError(msg) from err
    try:
        began, contended = time.monotonic(), False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                contended = True
                if time.monotonic() - began > _LOCK_WAIT_S:
                    holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    msg = f"another process (pid {holder}) holds {path} for more than {_LOCK_WAIT_S:g} s; no automatic act is allowed meanwhile"
                    raise LockHeldError(msg) from None
                time.sleep(0.01)
        with contextlib.suppress(OSError):  # a full disk: then nobody is told who holds it, and it is held all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield time.monotonic() - began if contended else 0.0
    finally:
        os.close(handle)
