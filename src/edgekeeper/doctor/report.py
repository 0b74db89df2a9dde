"""What was found, as lines for people and as one JSON document. Pure."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from edgekeeper.doctor.examine import Examined
from edgekeeper.doctor.vips import Fault
from edgekeeper.engines.haproxy.cfg_health import Detection, spoken
from edgekeeper.engines.keepalived.detection import Move
from edgekeeper.model.finding import Finding, Severity
from edgekeeper.model.time import format_duration

WIDTH = 118
_LABEL = 8

HEAD = ("BACKEND", "SERVERS", "CHECK", "A HUNG SERVER IS DOWN AFTER", "HOW THAT IS ADDED UP")
VIP_HEAD = ("VIP", "HOST", "CHECK", "MOVES WHEN IT FAILS AFTER", "AND WHEN IT HANGS", "HOW THAT IS ADDED UP")


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Each finding as a block: where, how bad, what; then what was seen, why it hurts, and the line to write."""
    for finding in findings:
        place = f"{finding.place.text()}: " if finding.place else ""
        yield f"{place}{finding.severity} {finding.id} {finding.object}: {finding.what}"
        yield from _block("seen", finding.evidence)
        yield from _block("why", finding.why)
        yield from _block("fix", finding.fix)
        yield ""


def _block(label: str, text: str) -> Iterator[str]:
    """A labelled paragraph; lines of a configuration in it stay as they are."""
    lead = f"    {label:<5} "
    for paragraph in text.split("\n"):
        if paragraph.startswith("    "):
            yield " " * len(lead) + paragraph
        else:
            for row in textwrap.wrap(paragraph, WIDTH - len(lead), break_long_words=False, break_on_hyphens=False) or [""]:
                yield lead + row
                lead = " " * len(lead)
        lead = " " * len(lead)


def row(found: Detection) -> tuple[str, str, str, str, str]:
    """One backend's line in the table of sums."""
    backend = found.backend
    servers = str(sum(server.count for server in backend.servers))
    if math.isinf(found.most_s):
        after = "never: nothing is checked" if found.sees is False else "not told by this file"
        return backend.name, servers, spoken(backend, found.server), after, found.sentence
    span = f"{format_duration(found.least_s)} to {format_duration(found.most_s)}"
    if found.sees is False:
        return (
            backend.name,
            servers,
            spoken(backend, found.server),
            "never, while it accepts",
            f"{span} when its machine is gone; {found.sentence.partition(': ')[2]}",
        )
    doubt = "" if found.sees else " (if the program sees it)"
    return backend.name, servers, spoken(backend, found.server), span + doubt, found.sentence.partition(": ")[2]


def vip_row(fault: Fault) -> tuple[str, str, str, str, str, str]:
    """One check of one VIP in the table of sums."""
    node = fault.watched.node
    vips = ", ".join(vip.text for vip in node.instance.vips[:2]) or node.instance.name
    worst = fault.fails if fault.fails.is_never or fault.hangs is None else fault.hangs
    return vips, node.host.name, fault.script.name, _after(fault.fails), "does not" if fault.hangs is None else _after(fault.hangs), worst.text


def _after(move: Move) -> str:
    return "never" if move.is_never else f"{move.least_s:.1f} to {move.most_s:.1f} s"


def _bounds(move: Move | None) -> dict[str, Any] | None:
    if move is None:
        return None
    return {"moves": not move.is_never, "min_s": None if move.is_never else move.least_s, "max_s": None if move.is_never else move.most_s, "sum": move.text}


def summary(findings: Iterable[Finding]) -> str:
    """``1 CRIT, 2 HIGH`` or ``nothing found``."""
    counted = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity]) or "nothing found"


def document(files: Sequence[str], examined: Examined) -> dict[str, Any]:
    """The JSON document (schema 1 is said by who prints it)."""
    return {
        "files": list(files),
        "findings": [as_json(finding) for finding in examined.findings],
        "detection": [
            {
                "backend": d.backend.name,
                "kind": d.backend.kind,
                "place": asdict(d.server.place),
                "check": spoken(d.backend, d.server),
                "sees_a_hung_server": d.sees,
                "min_s": None if math.isinf(d.least_s) else d.least_s,
                "max_s": None if math.isinf(d.most_s) else d.most_s,
                "sum": d.sentence,
            }
            for d in examined.detections
        ],
        "vips": [
            {
                "instance": fault.watched.node.instance.name,
                "host": fault.watched.node.host.name,
                "vips": [vip.text for vip in fault.watched.node.instance.vips],
                "script": fault.script.name,
                "place": asdict(fault.script.place),
                "when_it_fails": _bounds(fault.fails),
                "when_it_hangs": _bounds(fault.hangs),
            }
            for fault in examined.faults
        ],
        "not_judged": [{"ids": list(ids), "why": why} for ids, why in examined.not_judged],
    }


def as_json(finding: Finding) -> dict[str, Any]:
    """The shape of a finding wherever one is printed."""
    return {
        "id": finding.id,
        "severity": str(finding.severity),
        "object": finding.object,
        "what": finding.what,
        "evidence": finding.evidence,
        "why": finding.why,
        "fix": finding.fix,
        "refs": list(finding.refs),
        "place": {"file": finding.place.file, "line": finding.place.line} if finding.place else None,
    }
