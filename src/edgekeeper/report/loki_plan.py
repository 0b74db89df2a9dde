"""What a Loki is asked, and what its answers say. Pure.

A store that holds more lines than one wants to fetch can count them itself. Of an access log it is asked for three matrices at steps of
one second (those that went well, those that did not, the slowest of both) and one at steps of a minute (statuses); from them come cells
as from lines, only with coarser edges. What is no access log is little, and is fetched line by line.

Facts of the interface (its documentation, and its limits by default): a sample at t counts (t - range, t], so that it tells of what ended
before it; a step without lines is absent, not 0; an entry has the time at which the line was written, which for a request is its end; at
most 11,000 points a series, 500 series a question, 5,000 entries a page; times are in nanoseconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlencode

from edgekeeper.errors import UsageError
from edgekeeper.report.formats.base import name
from edgekeeper.report.rules import Rules

SLICE_S = 3600
"""Seconds of one question. 11,000 points is the most; and 500 series of an hour of seconds are 36 MB of JSON at the worst."""
PAGE = 5000
"""Entries of one page."""
NANO = 1_000_000_000

_SELECTOR = re.compile(r'\s*\{(?:[^"`{}]|"(?:[^"\\]|\\.)*"|`[^`]*`)*\}')
_ADDRESS = r'`{{ regexReplaceAll "^\\[?([^]]*?)\\]?(:[0-9]+)?$" .ek_client "${1}" }}`'
"""Of ``ClientAddr``, which has a port: the address alone. One of IPv6 stands in brackets."""


def selector(text: str) -> str:
    """The streams that were asked for, as Loki takes them; UsageError when it is no selector.

    Line filters and label filters may follow the braces; what counts or aggregates may not, as that is done here.
    """
    match = _SELECTOR.match(text)
    if match is None:
        msg = f'--query {text[:80]!a} does not begin with a selector; write one like {{namespace="ingress", container="traefik"}}'
        raise UsageError(msg)
    rest = text[match.end() :].strip()
    if rest and not rest.startswith(("|", "!")):
        msg = f"--query {text[:80]!a}: after the braces come filters (|= `text`) or nothing; counting is done by the report itself"
        raise UsageError(msg)
    return text.strip()


@dataclass(frozen=True, slots=True)
class Slice:
    """A time that one question is asked about, in whole seconds: entries in ``(begin, end]``."""

    begin: int
    end: int

    def halves(self) -> tuple[Slice, ...]:
        """The same in two questions, for a store that finds one too much; itself where it is a minute or less."""
        middle = (self.begin + self.end) // 2 // 60 * 60
        return (Slice(self.begin, middle), Slice(middle, self.end)) if self.begin < middle < self.end else (self,)


def slices(begin: float, end: float, edges: Sequence[float] = ()) -> list[Slice]:
    """The whole minutes from before ``begin`` to after ``end``, cut where it gets too long and at ``edges`` (where classes change)."""
    first, last = int(begin // 60) * 60, -int(-end // 60) * 60
    cuts = sorted({first, last, *(int(e) for e in edges if first < e < last)})
    found: list[Slice] = []
    for left, right in pairwise(cuts):
        found.extend(Slice(at, min(at + SLICE_S, right)) for at in range(left, right, SLICE_S))
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """One question: what it is for, about which class of clients and which time; ``query`` is LogQL."""

    what: str
    group: str
    slice: Slice
    query: str
    step: int

    @property
    def path(self) -> str:
        """Path and parameters. The first point tells of the first step, so that is when the question begins."""
        asked = {
            "query": self.query,
            "start": str((self.slice.begin + self.step) * NANO),
            "end": str(self.slice.end * NANO),
            "step": f"{self.step}s",
        }
        return f"/loki/api/v1/query_range?{urlencode(asked)}"

    def again(self, part: Slice) -> Question:
        """The same about a part of its time."""
        return Question(self.what, self.group, part, self.query, self.step)


GOOD, BAD, SLOWEST, STATUSES, ALL = "good", "bad", "slowest", "statuses", "all"


def access_questions(streams: str, begin: float, end: float, rules: Rules) -> list[Question]:
    """All that is asked of an access log of Traefik in JSON, for all classes."""
    edges = [e for one in rules.groups for e in (one.begin, one.until) if e is not None]
    found = []
    for part in slices(begin, end, edges):
        found.append(Question(ALL, "", part, f"sum(count_over_time({streams} [1m]))", 60))
        for group, where in class_filters(rules, part):
            # a stream may have labels like these, then Loki would call what it finds in the line by another name: hence the ek_
            line = f'{streams} |= `"DownstreamStatus"` | json ek_router="RouterName", ek_status="DownstreamStatus", ek_client="ClientAddr", ek_took="Duration"'
            line += f' | __error__="" | label_format ek_client={_ADDRESS}{where}'
            good, bad = (f'{line} | ek_status != "" | ek_status {which} 499 | __error__=""' for which in ("<", ">="))  # a status that is no number
            slowest = f'{line} | ek_status != "" | unwrap ek_took | __error__=""'
            found += [
                Question(GOOD, group, part, f"sum by (ek_router) (count_over_time({good} [1s]))", 1),
                Question(BAD, group, part, f"sum by (ek_router, ek_status) (count_over_time({bad} [1s]))", 1),
                Question(SLOWEST, group, part, f"max_over_time({slowest} [1s]) by (ek_router)", 1),
                Question(STATUSES, group, part, f"sum by (ek_router, ek_status) (count_over_time({good} [1m]))", 60),
            ]
    return found


def class_filters(rules: Rules, part: Slice) -> list[tuple[str, str]]:
    """Of each class that is valid in the slice: its name and the filter that leaves its clients; the first that fits counts.

    The last one is what belongs to none. A filter is ``""`` where there are no classes.
    """
    found: list[tuple[str, str]] = []
    before = ""
    for one in rules.groups:
        if (one.begin is not None and part.begin < int(one.begin)) or (one.until is not None and part.begin >= int(one.until)):
            continue
        nets = [json.dumps(str(net)) for net in one.networks]
        found.append((one.name, f"{before} | " + " or ".join(f"ek_client = ip({net})" for net in nets)))
        before += "".join(f" | ek_client != ip({net})" for net in nets)
    return [*found, ("", before)]


def page_path(streams: str, begin_ns: int, end_ns: int, limit: int = PAGE) -> str:
    """The question for entries from ``begin_ns`` on (that one included), the earliest first."""
    asked = {"query": streams, "start": str(begin_ns), "end": str(end_ns), "limit": str(limit), "direction": "forward"}
    return f"/loki/api/v1/query_range?{urlencode(asked)}"


def count_path(streams: str, begin: float, end: float) -> str:
    """The question how many lines there are."""
    asked = {"query": f"sum(count_over_time({streams} [{max(1, round(end - begin))}s]))", "time": str(round(end * NANO))}
    return f"/loki/api/v1/query?{urlencode(asked)}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line with its time in nanoseconds and the labels of its stream."""

    at_ns: int
    line: str
    labels: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Pages:
    """Page after page, each beginning at the last time of the one before: entries of one time may lie on both sides of the cut."""

    at_ns: int
    end_ns: int
    limit: int = PAGE
    done: bool = False
    torn: int = 0
    """Times that had more entries than a page: of those, some were not read."""
    _seen: Counter[Entry] = field(default_factory=Counter)

    def take(self, page: Sequence[Entry]) -> Iterator[Entry]:
        """The new ones of a page. Afterwards ``at_ns`` is where the next begins, or ``done`` is True."""
        seen, fresh = Counter(self._seen), []
        for entry in page:
            if seen[entry] > 0:
                seen[entry] -= 1
            else:
                fresh.append(entry)
        if len(page) < self.limit:
            self.done = True
        elif page[-1].at_ns == self.at_ns:  # a whole page of one time: no question reaches what lies behind
            self.torn += 1
            self.at_ns, self._seen = self.at_ns + 1, Counter()
        else:
            self.at_ns = page[-1].at_ns
            self._seen = Counter(e for e in page if e.at_ns == self.at_ns)
        self.done = self.done or self.at_ns >= self.end_ns
        return iter(fresh)


def node_of(labels: Mapping[str, str]) -> str:
    """The machine that wrote a stream, by the labels that collectors commonly give it; "" when none says."""
    for key in ("node_name", "nodename", "node", "hostname", "host", "instance"):
        if labels.get(key):
            return name(labels[key].partition(":")[0])
    return ""
