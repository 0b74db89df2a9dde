"""What the clients of a watched service saw: the records of ``edgekeeper probe --record``, read as figures. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from edgekeeper.measure.outages import Outage, longest, outages
from edgekeeper.model.sample import Sample

Visits = dict[str, tuple[Sample, ...]]
"""By the URL that was asked, in the order in which they were sent (monotonic clock)."""


def read(lines: Iterable[str]) -> Visits:
    """Records of schema 1 by target; ValueError for anything else."""
    found: dict[str, list[Sample]] = {}
    for line in lines:
        record: dict[str, Any] = json.loads(line)
        if record.pop("schema", None) != 1:
            msg = f"{line[:60]!r} is not a record of schema 1"
            raise ValueError(msg)
        try:
            sample = Sample(**record)
        except TypeError as err:
            msg = f"{line[:60]!r} is not a record of a probe: {err}"
            raise ValueError(msg) from None
        found.setdefault(sample.target, []).append(sample)
    return {target: tuple(sorted(some, key=lambda s: s.sent)) for target, some in found.items()}


def answered(samples: Sequence[Sample], moment: float, wedged: float | None = None) -> float | None:
    """When a question that was sent after a moment was answered first; None: none was.

    One that was sent after the service wedged (at that moment, when not said) has to have failed before, else the answer tells of the
    time before the fault took hold.
    """
    since = moment if wedged is None else wedged
    failed = False
    for one in samples:
        failed = failed or (one.sent >= since and not one.ok)
        if failed and one.ok and one.sent >= moment:
            return one.done
    return None


def dark_s(samples: Sequence[Sample], moment: float, wedged: float | None = None) -> float:
    """Seconds from a moment to the first answer after it; to the last record where none came."""
    until = answered(samples, moment, wedged)
    return (until if until is not None else max((s.done for s in samples), default=moment)) - moment


def both_dark_s(one: Sequence[Sample], other: Sequence[Sample], since: float) -> float:
    """How long neither of two servers answered, as their clients saw it: from the later first question in vain to the earlier first answer."""
    pairs = [(next((s.sent for s in some if s.sent >= since and not s.ok), None), answered(some, since)) for some in (one, other)]
    begins = [begin for begin, _ in pairs]
    if None in begins:
        return 0.0
    ends = [end for _, end in pairs if end is not None]
    end = min(ends, default=max(s.done for s in (*one, *other)))
    return max(0.0, end - max(b for b in begins if b is not None))


def worst(samples: Sequence[Sample]) -> Outage | None:
    """The longest outage that one server's clients saw."""
    return longest(outages(samples))


def lost(samples: Sequence[Sample]) -> int:
    """Questions without an answer."""
    return sum(not s.ok for s in samples)
