"""Parts of logs, spread over processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from edgekeeper.errors import StepFailedError
from edgekeeper.report.ingest.part import Part, read_part
from edgekeeper.report.ingest.take import Read
from edgekeeper.report.rules import Rules

_JOBS_MOST = 8


def usual_jobs() -> int:
    """As many processes as this one may use processors, at most 8."""
    return min(_JOBS_MOST, len(os.sched_getaffinity(0)))


def spread(parts: Sequence[Part], rules: Rules, jobs: int) -> Iterator[tuple[Part, Read]]:
    """Every part and what came out of it, in the order of the parts, read by that many processes; by this one when one is enough.

    StepFailedError when one of them was killed. When this one is interrupted, the others end with it.
    """
    several = [part for part in parts if part.path != "-"]
    jobs = min(jobs, len(several))
    if jobs < 2:
        for part in parts:
            yield part, read_part(part, rules)
        return
    # a copy of this process is the cheapest one (no import is done twice), and safe while it has one thread
    context = multiprocessing.get_context("fork" if threading.active_count() == 1 else "spawn")
    others = {child.pid for child in multiprocessing.active_children()}
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(rules,)) as pool:
        try:
            waiting = {i: pool.submit(_read, part) for i, part in enumerate(parts) if part.path != "-"}
            for i, part in enumerate(parts):
                yield part, waiting.pop(i).result() if i in waiting else read_part(part, rules)
        except BrokenProcessPool:
            msg = "a process that read logs was killed, perhaps for want of memory; nothing is reported: try again with --jobs 1"
            raise StepFailedError(msg) from None
        except BaseException:
            for child in multiprocessing.active_children():
                if child.pid not in others:
                    child.kill()
            raise


class _Mine:
    """What a reading process keeps from part to part: the rules know the classes of the addresses that were met."""

    rules = Rules()


def _read(part: Part) -> Read:
    return read_part(part, _Mine.rules)


def _begin(rules: Rules) -> None:
    """Ctrl-C is for the process that people see; and when that one is ended in another way, nobody waits for what is read here."""
    _Mine.rules = rules
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
