"""What a recorded drill leaves for ``edgekeeper report``: its timeline as a journal, and every question of its clients as probe records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from edgekeeper.lab import held, records
from edgekeeper.lab.report import outage_json
from edgekeeper.measure.outages import Outage
from edgekeeper.model.entry import SCHEMA
from edgekeeper.model.sample import SCHEMA as PROBE_SCHEMA
from edgekeeper.model.sample import Sample

WITHIN_S = 3.0
"""A question without an answer for so long is a lost one, as in the figures of the drills."""


def write(folder: Path, title: str, *, zero: float, wall: float, timeline: Iterable[tuple[float, str]], outage: Outage | None) -> None:
    """Write ``drill.jsonl`` and ``clients.jsonl`` into the folder of a run.

    ``zero`` is the timeline's zero on the monotonic clock, ``wall`` what to add to that clock for seconds since 1970.
    """
    lines = [_entry(zero + at_s + wall, zero + at_s, title, "drill.note", what, {"at_s": round(at_s, 3)}) for at_s, what in timeline]
    if outage is not None:
        data = {**outage_json(outage), "bad": outage.bad, "asked": outage.bad + outage.good}
        lines.append(_entry(outage.first_bad + wall, outage.first_bad, title, "drill.outage", f"clients were without an answer for {outage.text()}", data))
    (folder / "drill.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with (folder / "clients.jsonl").open("w", encoding="utf-8") as out:
        for sample in _samples(folder):
            out.write(json.dumps({"schema": PROBE_SCHEMA, **asdict(replace(sample, ts=sample.sent + wall))}) + "\n")


def _samples(folder: Path) -> Iterator[Sample]:
    for file in sorted(folder.glob("load-*.jsonl")):
        for sample in records.samples(records.read(file.read_text(encoding="ascii").splitlines()), WITHIN_S):
            yield replace(sample, target=f"dns://{file.stem}")
    for file in sorted(folder.glob("hold-*.jsonl")):
        for request in held.read(file.read_text(encoding="ascii").splitlines()).requests:
            target = f"https://{file.stem}" + (f"/{request.client}" if request.kind == "warm" else "")
            yield Sample(request.sent, target, request.kind, request.sent, request.done, request.ok, error=request.error)


def _entry(ts: float, mono: float, title: str, event: str, why: str, data: dict[str, float | None]) -> str:
    stamp = datetime.fromtimestamp(ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {
        "schema": SCHEMA,
        "ts": stamp,
        "mono": round(mono, 3),
        "node": "lab",
        "role": "drill",
        "event": event,
        "object": title,
        "decision": "act",
        "why": why,
        "data": data,
    }
    return json.dumps(entry, ensure_ascii=True)
