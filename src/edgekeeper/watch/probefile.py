"""A file of recorded answers, as ``edgekeeper probe --record`` writes it: read once, kept small."""

from __future__ import annotations

import json
from typing import Any

from edgekeeper.errors import UsageError
from edgekeeper.host.archive import Archive
from edgekeeper.model.sample import SCHEMA, Sample
from edgekeeper.watch.sources.lines import Cutter
from edgekeeper.watch.world import Record


def read_record(path: str) -> tuple[Record, int, str]:
    """What the file says, how many of its lines were not understood, and why it could not be read to its end ("": it could).

    UsageError when it has no answer at all, MissingError when it cannot be opened.
    """
    record, strange = Record(), 0
    archive, cutter = Archive(path), Cutter()
    for block in archive.blocks():
        strange += _take(record, cutter.feed(block))
    strange += _take(record, cutter.end())
    if not record.count:
        msg = f"{path} has no recorded answer; `edgekeeper probe TARGET --record FILE` writes them"
        raise UsageError(msg)
    return record, strange, archive.damage


def _take(record: Record, lines: bytes) -> int:
    strange = 0
    for line in lines.splitlines():
        if not line.strip():
            continue
        sample = _sample(line)
        if sample is None:
            strange += 1
        else:
            record.add(sample)
    return strange


def _sample(line: bytes) -> Sample | None:
    try:
        fields: dict[str, Any] = json.loads(line)
        if fields["schema"] != SCHEMA:
            return None
        ts, sent, done = float(fields["ts"]), float(fields["sent"]), float(fields["done"])
        if not (0 <= ts < 1e11 and 0 <= done - sent < 1e6):
            return None
        error = fields.get("error")
        return Sample(
            ts, str(fields["target"]), str(fields.get("conn", "fresh")), sent, done, fields["ok"] is True, error=None if error is None else str(error)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
