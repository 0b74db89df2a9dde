"""Our full workload, in a process of its own; ``report.py`` starts it: ``python report_child.py LOG JOBS``. Its imports are measured, too."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from typing import Any

from edgekeeper.measure.islands import Seen, added, troubles
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.rules import Group, Rules

CLASSES = {"lan": ("192.0.2.0/25",), "vpn": ("192.0.2.128/25",), "guests": ("198.51.100.0/24",), "public": ("203.0.113.0/24",)}
WINDOW = 1_788_764_050, 1_788_765_500
"""The roll: from a minute before the first node to some after the last."""


def child(log: str, jobs: int) -> dict[str, Any]:
    """Requests by route, minute, class and status, how long answers took, the outages in the window."""
    book = read([Input(log)], Rules(groups=tuple(Group(name, nets) for name, nets in CLASSES.items())), jobs=jobs)
    source = book.sources["access.log"]
    cells: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    took: dict[str, list[int]] = {}
    routes: dict[str, list[Any]] = {}
    for lane in book.cells.lanes():
        for status, count in book.cells.statuses(lane).items():
            classes[f"{lane.group} {status}"] += count
        for minute, count in book.cells.minutes_of(lane, 500):
            cells[f"{lane.router} {minute}"] += count
        took[lane.router] = [a + b for a, b in zip(took.get(lane.router, [0] * 99), book.cells.took(lane), strict=False)]
        routes.setdefault(lane.router, []).append(Seen(book.cells.cells(lane, *WINDOW)))
    outages = []
    for router, seen in routes.items():
        for trouble in troubles(added(seen))[0]:
            o = trouble.whole
            outages.append({"router": router, "first_bad": o.first_bad, "min_s": o.min_s, "max_s": o.max_s if math.isfinite(o.max_s) else None})
    return {"lines": source.lines, "skipped": source.skipped, "cells": cells, "classes": classes, "took": took, "outages": outages}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
