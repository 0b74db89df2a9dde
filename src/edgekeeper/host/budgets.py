"""The store of budgets: how often each automatic act happened lately, over restarts and processes.

One JSON file, changed under a lock and written whole before an act is allowed. Where it cannot be
read or written the answer is no: an act that cannot be counted must not happen.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edgekeeper.errors import LockHeldError, MissingError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.log import ERROR, Event, emit
from edgekeeper.model.budget import Budget, Spending
from edgekeeper.model.budget import spend as spend_one

SCHEMA = 1
_LOCK_WAIT_S = 2.0


def spend(store_path: str | Path, key: str, limit: int, window_s: float, now: float) -> Spending:
    """Take one act of ``key`` out of its budget of ``limit`` acts in ``window_s`` seconds; ``now`` is Unix time.

    The spending is on the disk before the answer says yes. LockHeldError when another process sits on
    the store for 2 s, StepFailedError or MissingError when it cannot be written: then do not act. A
    store that is no longer JSON counts every budget as spent once, for one window from now.
    """
    path = Path(store_path)
    with _locked(path):
        store = _read(path, now)
        damaged_at = min(store["damaged"], now)
        damaged = (damaged_at,) * limit if damaged_at else ()
        spent = tuple(t for t in store["spent"].get(key, []) if isinstance(t, int | float))
        answer = spend_one(Budget(limit, window_s, (*damaged, *spent)), now)
        jumped = damaged_at != store["damaged"] or any(t > now for t in spent)  # kept, or it would hold until the clock has caught up
        if answer.allowed or store["changed"] or jumped:
            kept = [t for t in answer.budget.spent if t != damaged_at]
            write_text(path, json.dumps({"schema": SCHEMA, "damaged": damaged_at, "spent": {**store["spent"], key: kept}}, indent=1) + "\n")
        return answer


def look(store_path: str | Path, key: str, limit: int, window_s: float, now: float) -> Budget:
    """The budget of ``key`` as the store has it, with nothing spent or written; what counts is ``spend``."""
    path = Path(store_path)
    store = _read(path, now)
    damaged = (min(store["damaged"], now),) * limit if store["damaged"] else ()
    return Budget(limit, window_s, (*damaged, *(t for t in store["spent"].get(key, []) if isinstance(t, int | float))))


def _read(path: Path, now: float) -> dict[str, Any]:
    if not path.exists():
        return {"damaged": 0.0, "spent": {}, "changed": False}
    try:
        store = json.loads(read_text(path))
        if store["schema"] != SCHEMA or not all(isinstance(times, list) for times in store["spent"].values()):
            raise ValueError(store["schema"])  # noqa: TRY301 - one way for all that is not our store
        return {"damaged": float(store["damaged"]), "spent": dict(store["spent"]), "changed": False}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        emit(Event.BUDGET_DAMAGED, f"{path} is not a store of budgets; every budget counts as spent for one window from now", level=ERROR, error=str(err))
        return {"damaged": now, "spent": {}, "changed": True}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock beside the store, waited for 2 s: a spending takes a millisecond, unless its process is frozen."""
    try:
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        msg = f"{path} cannot be locked: {err.strerror or err}; without it no automatic act is allowed"
        raise MissingError(msg) from err
    try:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    msg = f"another process holds {path} for more than {_LOCK_WAIT_S:g} s; no automatic act is allowed meanwhile"
                    raise LockHeldError(msg) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)
