"""What a Loki answers: matrices, entries, and refusals in plain words. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from edgekeeper.model.text import printable
from edgekeeper.report.book import Book, Source
from edgekeeper.report.cells import Cells, Lane
from edgekeeper.report.formats.base import name
from edgekeeper.report.kinds import NOT_THIS_FORMAT
from edgekeeper.report.loki_plan import NANO, Entry, Question
from edgekeeper.report.rules import Rules


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Stream(msgspec.Struct):
    stream: dict[str, str]
    values: list[list[Any]]


class _Matrix(msgspec.Struct):
    result: list[_Series]


class _Streams(msgspec.Struct):
    result: list[_Stream]


class _Counted(msgspec.Struct):
    data: _Matrix


class _Told(msgspec.Struct):
    data: _Streams


_MATRIX = msgspec.json.Decoder(_Counted)
_STREAMS = msgspec.json.Decoder(_Told)


def matrix(text: str) -> list[tuple[Mapping[str, str], list[tuple[int, float]]]]:
    """The series of an answer: labels, and the second at which each step began with its value. ValueError when it is none.

    The step is not told in an answer, so times are as it has them: the ends of steps.
    """
    series = _MATRIX.decode(text).data.result
    return [(one.metric, [(round(at), float(value)) for at, value in one.values]) for one in series]


@dataclass(slots=True)
class Counts:
    """What the answers say, put together into cells once all are there."""

    cells: dict[tuple[str, str, int], Counter[int]] = field(default_factory=dict)
    """(class, router, second) -> how many by status; 200 stands for all that went well."""
    slowest: dict[tuple[str, str, int], float] = field(default_factory=dict)
    minutes: dict[tuple[str, str, int], Counter[int]] = field(default_factory=dict)
    lines: int = 0

    def take(self, question: Question, text: str) -> None:
        """An answer; ValueError when it is not what was asked for."""
        for labels, values in matrix(text):
            router, status = name(labels.get("ek_router", "")), _status(labels.get("ek_status", ""))
            for at, value in values:
                second = at - question.step
                key = (question.group, router, second)
                match question.what:
                    case "good":
                        self.cells.setdefault(key, Counter())[200] += round(value)
                    case "bad":
                        self.cells.setdefault(key, Counter())[status] += round(value)
                    case "slowest":
                        self.slowest[key] = max(self.slowest.get(key, 0.0), value / NANO)
                    case "statuses":
                        self.minutes.setdefault((question.group, router, second // 60), Counter())[status] += round(value)
                    case _:
                        self.lines += round(value)

    @property
    def requests(self) -> int:
        """How many lines were counted as requests."""
        return sum(counter.total() for counter in self.cells.values())


def _status(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) == 3 else 0


def fill(cells: Cells, counts: Counts, source: str, rules: Rules) -> None:
    """Make cells of counts. A request ended in its second and began at most as long before as the slowest of the second took."""
    for (group, router, second), statuses in counts.cells.items():
        bad = sum(n for status, n in statuses.items() if status in rules.bad)
        gone = statuses[499]
        other = sum(n for status, n in statuses.items() if status >= 500 and status not in rules.bad)
        good = statuses.total() - bad - gone - other
        took_s = counts.slowest.get((group, router, second), 0.0)
        lane = Lane(source, router, group)
        cells.add_counts(lane, second, good=good, bad=bad, gone=gone, other=other, took_s=took_s)
        cells.add_statuses(lane, second // 60, {status: n for status, n in statuses.items() if status != 200})
    for (group, router, minute), statuses in counts.minutes.items():
        cells.add_statuses(Lane(source, router, group), minute, statuses)


def book(counts: Counts, source_name: str, path: str, rules: Rules) -> Book:
    """All of it as a book of one source."""
    source = Source(source_name, path, "traefik-json, counted by Loki", stamp_s=1.0, lines=max(counts.lines, counts.requests))
    if counts.lines > counts.requests:
        source.skipped[NOT_THIS_FORMAT] += counts.lines - counts.requests
    seconds = [second for _, _, second in counts.cells]
    source.first, source.last = (float(min(seconds)), max(seconds) + 1.0) if seconds else (None, None)
    source.warnings.append("counted by the second in which a request ended: bounds are wider by a second; clients, latencies and causes are not known")
    found = Book({source.name: source})
    fill(found.cells, counts, source.name, rules)
    return found


class _Value(msgspec.Struct):
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Value]


class _Summed(msgspec.Struct):
    data: _Vector


def count(text: str) -> int:
    """The answer to ``count_path``: nothing found is an empty vector. ValueError when it is none."""
    return sum(round(float(one.value[1])) for one in msgspec.json.decode(text, type=_Summed).data.result)


def entries(text: str) -> list[Entry]:
    """The entries of an answer by time; ValueError when it is none."""
    found = [
        Entry(int(value[0]), str(value[1]), tuple(sorted(one.stream.items())))
        for one in _STREAMS.decode(text).data.result
        for value in one.values
        if len(value) >= 2 and isinstance(value[0], str) and value[0].isdecimal()
    ]
    return sorted(found, key=lambda e: e.at_ns)


_TOO_MUCH = re.compile(
    r"maximum (?:number )?of series|too many bytes|query too large|context deadline|timeout|timed out|max number of chunks|limit reached", re.IGNORECASE
)
_TOO_MANY = re.compile(r"max entries limit per query exceeded.*?>\s*(\d{1,9})\s*\)", re.IGNORECASE | re.DOTALL)


def is_too_much(status: int, text: str) -> bool:
    """Whether a smaller question of the same kind may be answered."""
    return status == 504 or (status in {400, 422, 429, 500, 503} and _TOO_MUCH.search(text) is not None)


def is_about_series(text: str) -> bool:
    """Whether there were more series (routes times statuses) than the store counts at once."""
    return re.search(r"of series", text) is not None


def page_limit(status: int, text: str) -> int | None:
    """How many entries a page may have, where the store refused more; None when it refused for another reason."""
    match = _TOO_MANY.search(text) if status in {400, 422} else None
    return int(match[1]) if match is not None and int(match[1]) > 0 else None


def is_passing(status: int) -> bool:
    """Whether the same question may be answered a moment later."""
    return status in {429, 500, 502, 503}


def refusal(status: int, text: str) -> str:
    """What an answer that is no answer means, in plain words with what to do."""
    said = printable(_message(text), 200)
    match status:
        case 400 if is_about_series(said):
            return f"it counts no more series at once ({said}); narrow --query, or raise max_query_series there"
        case 400 if re.search(r"parse error|syntax", said, re.IGNORECASE):
            return f"it does not understand the query ({said}); check --query"
        case 401 | 403:
            return f"it refuses ({status}{': ' + said if said else ''}); give a token that may read by --loki-token-file"
        case 404:
            return "there is no such interface there (404); --loki is the address up to /loki/api/v1"
        case 429:
            return f"it has too much to do ({said or status}); ask again later, or about a shorter --window"
        case 504:
            return "it took too long (504); ask about a shorter --window or a narrower --query"
        case _ if is_too_much(status, said):
            return f"the question is too large for it ({said}); ask about a shorter --window or a narrower --query"
        case _:
            return f"it answered {status}{': ' + said if said else ''}"


def _message(text: str) -> str:
    """Loki tells errors as plain text, or as JSON with ``error`` or ``message``; a proxy before it as HTML."""
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "" if text.lstrip().startswith("<") else text.strip()
    if isinstance(found, dict):
        return str(found.get("error") or found.get("message") or "")
    return str(found)
