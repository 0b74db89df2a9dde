"""What ``edgekeeper report`` does behind its options: read, put together, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgekeeper.errors import UsageError
from edgekeeper.host.files import read_text, write_text
from edgekeeper.model.text import printable
from edgekeeper.model.time import parse_duration
from edgekeeper.report.document import Report, Window

if TYPE_CHECKING:
    from edgekeeper.config.report import ReportOf
    from edgekeeper.measure.failif import FailIf
    from edgekeeper.report.book import Book
    from edgekeeper.report.ingest.read import Input
    from edgekeeper.report.rules import Rules

_FORMER = 64 * 2**20
"""The longest former report that is read, in bytes."""


@dataclass(frozen=True, slots=True)
class Store:
    """A Loki that counts: its address, which streams, a file with its token, its tenant and the CA of its certificate."""

    url: str
    queries: tuple[str, ...]
    token_file: Path | None = None
    tenant: str | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line, as it was written."""

    logs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    window: str | None = None
    baseline: str | None = None
    roll: str = ""
    against: Path | None = None
    zone: str = ""
    clocks: tuple[str, ...] = ()
    reference: str = ""
    classes: tuple[str, ...] = ()
    loki: Store | None = None
    jobs: int = 0


def gather(asked: Asked, said: ReportOf, progress: Callable[[str], None] | None) -> Book:
    """Read everything that was named; UsageError when nothing was."""
    from edgekeeper.report.ingest.read import read
    from edgekeeper.report.ingest.workers import usual_jobs

    inputs = _inputs(asked, said)
    if not inputs and asked.loki is None:
        msg = "nothing to read: name logs, drain logs, journals or recordings (files, folders, - for standard input), or say --loki"
        raise UsageError(msg)
    rules = _rules(asked, said)
    book = read(inputs, rules, jobs=asked.jobs or usual_jobs(), progress=progress)
    if asked.loki is not None:
        _ask_loki(asked, asked.loki, rules, book, progress)
    return book


def _ask_loki(asked: Asked, store: Store, rules: Rules, book: Book, progress: Callable[[str], None] | None) -> None:
    from edgekeeper.host.tls import Trust
    from edgekeeper.report.ingest import loki

    if not asked.window or not store.queries:
        msg = "--loki needs --window (from when until when) and --query (which streams)"
        raise UsageError(msg)
    window = _window("--window", asked.window, asked.zone)
    baseline = _window("--baseline", asked.baseline, asked.zone) if asked.baseline else None
    at = loki.Store(store.url, store.token_file, store.tenant, Trust(str(store.ca_file)) if store.ca_file is not None else Trust())
    for number, query in enumerate(store.queries, 1):
        name = "loki" if number == 1 else f"loki-{number}"
        book.merge(loki.counted(at, query, window, rules, name=name, baseline=baseline, zone=asked.zone, progress=progress))


def check(asked: Asked, html: Path | None) -> None:
    """Refuse, before gigabytes are read, what could not be done after it: UsageError for options that cannot be meant."""
    window = _window("--window", asked.window, asked.zone) if asked.window else None
    baseline = _window("--baseline", asked.baseline, asked.zone) if asked.baseline else None
    if window is not None and baseline is not None and baseline.begin < window.end and window.begin < baseline.end:
        msg = "--baseline overlaps --window: what is compared with itself does not differ; name a quiet time"
        raise UsageError(msg)
    if asked.against is not None:
        _former(asked.against)
    if html is not None:
        page_may_be(html)


def _inputs(asked: Asked, said: ReportOf) -> list[Input]:
    from edgekeeper.report.ingest.files import expand
    from edgekeeper.report.ingest.read import Input

    named: list[tuple[str, str]] = [("", word) for word in asked.logs]
    for text in asked.sources:
        node, sign, path = text.partition("=")
        if not sign or not node or not path:
            msg = f"--source {text[:80]!a}: write NODE=FILE"
            raise UsageError(msg)
        named.append((node, path))
    if any(not word for _, word in named):
        msg = "one of the names is empty (a variable that is not set?); nothing is read"
        raise UsageError(msg)
    found = []
    for node, word in named:
        for path in expand([word]):
            known = next((s for s in said.sources if fnmatchcase(path, s.match) or fnmatchcase(Path(path).name, s.match)), None)
            one = Input(path, node=node, zone=asked.zone, within=word if Path(word).is_dir() else "")
            if known is not None:
                one = replace(one, name=known.name or "", node=node or known.node or "", zone=known.zone or asked.zone, format=known.format or "")
            found.append(one)
    return found


def _rules(asked: Asked, said: ReportOf) -> Rules:
    from edgekeeper.report.rules import Group, Rules

    groups = [
        Group(name, tuple(clients.networks), _moment(clients.begin), _moment(clients.until)) for name, several in said.classes.items() for clients in several
    ]
    for text in asked.classes:
        name, sign, networks = text.partition("=")
        if not sign or not name:
            msg = f"--class {text[:80]!a}: write NAME=NETWORK, or several networks with commas between"
            raise UsageError(msg)
        groups.append(Group(name, tuple(_network(text, one) for one in networks.split(",")), None, None))
    return Rules(bad=frozenset(said.bad), groups=tuple(groups))


def _network(text: str, one: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(one, strict=False))
    except ValueError as err:
        msg = f"--class {text[:80]!a}: {err}"
        raise UsageError(msg) from None


def judge(book: Book, asked: Asked, said: ReportOf) -> Report:
    """The report of what was read."""
    from edgekeeper.report.make import Wanted, make
    from edgekeeper.report.study import Gap, Settings

    settings = Settings(
        slo=said.slo,
        slo_days=round(said.slo_period / 86400),
        gaps=tuple(Gap(g.name, g.begin, g.end, g.key or "") for g in said.gaps),
        feeds=dict(said.feeds),
        bad=frozenset(said.bad),
        groups=(*said.classes, *(text.partition("=")[0] for text in asked.classes)),
        periodic={name: c.per_minute for name, several in said.classes.items() for c in several if c.per_minute is not None},
    )
    _known_machines(book, asked, said.reference or "")
    wanted = Wanted(
        window=_window("--window", asked.window, asked.zone) if asked.window else None,
        baseline=_window("--baseline", asked.baseline, asked.zone) if asked.baseline else None,
        roll=asked.roll,
        reference=asked.reference or said.reference or "",
        clocks=_clocks(asked, said),
        against=_former(asked.against) if asked.against is not None else None,
    )
    return make(book, settings, wanted)


def _known_machines(book: Book, asked: Asked, reference: str) -> None:
    """UsageError for a machine of the command line that wrote nothing of what was read: a clock that is not corrected would not be noticed."""
    nodes = {source.node or name for name, source in book.sources.items()} | {mark.node for mark in book.marks if mark.node}
    named = [("--clock", text.partition("=")[0]) for text in asked.clocks] + [("--reference", asked.reference)] * bool(asked.reference)
    for option, node in named:
        if node not in nodes:
            some = ", ".join(sorted(printable(name, 60) for name in nodes)[:8]) or "none"
            msg = f"{option}: nothing that was read is of {node[:60]!a}; machines and sources are: {some}"
            raise UsageError(msg)
        if option == "--clock" and node == (asked.reference or reference):
            msg = f"--clock {node[:60]!a}: that is the clock of --reference, which the report goes by; name another one there, or leave it out"
            raise UsageError(msg)


def _clocks(asked: Asked, said: ReportOf) -> dict[str, float]:
    known = {source.node: _shift(f"clock of {source.node}", source.clock) for source in said.sources if source.node is not None and source.clock is not None}
    for text in asked.clocks:
        node, sign, shift = text.partition("=")
        if not sign or not node or (shift[:1] in "+-" and shift[1:2] in "+-"):
            msg = f"--clock {text[:80]!a}: write NODE=183s, or NODE=-2s"
            raise UsageError(msg)
        known[node] = _shift(f"--clock {text[:80]!a}", shift)
    return known


def _shift(where: str, text: str) -> float:
    try:
        return parse_duration(text.lstrip("+-")) * (-1.0 if text.startswith("-") else 1.0)
    except ValueError as err:
        msg = f"{where}: {err}"
        raise UsageError(msg) from None


def _former(path: Path) -> Mapping[str, Any]:
    import json

    try:
        found = json.loads(read_text(path, _FORMER))
    except (ValueError, RecursionError) as err:
        msg = f"{path} is not a report: {err}; write one with -o json"
        raise UsageError(msg) from None
    if not isinstance(found, dict) or found.get("schema") != 1 or not isinstance(found.get("outages"), list):
        msg = f"{path} is not a report of schema 1; write one with `edgekeeper report ... -o json > {path.name}`"
        raise UsageError(msg)
    return found


def _window(option: str, text: str, zone: str) -> Window:
    """``A..B`` or ``A+24m``; B may be a time of day only. Times without zone are of ``--zone``, else UTC."""
    begin_text, dots, end_text = text.partition("..")
    try:
        if not dots:
            begin_text, plus, length = text.rpartition("+")
            if not plus or not length[-1:].isalpha():
                msg = "write A..B or A+24m"
                raise ValueError(msg)  # noqa: TRY301 - told with the others
            begin = _time(begin_text, zone)
            end = begin + timedelta(seconds=parse_duration(length))
        else:
            begin = _time(begin_text, zone)
            end = _end(begin, end_text, zone)
    except ValueError as err:
        msg = f"{option} {text[:80]!a}: {err}; write 2026-09-07T04:48Z..2026-09-07T05:12Z, 2026-09-07T04:48Z..05:12Z or 2026-09-07T04:48Z+24m"
        raise UsageError(msg) from None
    if end <= begin:
        msg = f"{option} {text[:80]!a} ends before it begins"
        raise UsageError(msg)
    return Window(begin.timestamp(), end.timestamp(), "as asked")


def _end(begin: datetime, text: str, zone: str) -> datetime:
    """A moment, or a time of day: in the zone of the begin where it names none, and of the next day where it would be before the begin."""
    if "-" in text[:5]:
        return _time(text, zone)
    of_day = time.fromisoformat(text.strip())
    day = begin.astimezone(of_day.tzinfo) if of_day.tzinfo is not None else begin
    end = datetime.combine(day.date(), of_day, of_day.tzinfo or begin.tzinfo)
    return end if end > begin else end + timedelta(days=1)


def _time(text: str, zone: str) -> datetime:
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo is not None else found.replace(tzinfo=_zone(zone))


def _zone(zone: str) -> tzinfo:
    from edgekeeper.report.ingest.zones import zone_of

    return zone_of(zone) if zone else UTC


def _moment(day: str | None) -> float | None:
    return None if day is None else _time(day, "").timestamp()


def holds(made: Report, condition: FailIf) -> bool:
    """Whether a condition is true of a report."""
    from edgekeeper.measure.failif import holds as true
    from edgekeeper.report.make import values_of

    return true(condition, values_of(made))


def write_page(made: Report, path: Path) -> str:
    """Write the HTML page; says so in a sentence. UsageError where something else is in its place, which is left alone."""
    from edgekeeper.report.pages.html import render

    page_may_be(path)
    text = render(made)
    write_text(path, text, mode=0o644)
    return f"{path}: the page was written, {len(text.encode()) / 1024:.0f} KiB, nothing else is needed to read it"


def page_may_be(path: Path) -> None:
    """UsageError where a page cannot be written: something that is no page is in its place, or there is no folder."""
    if path.exists() and not _is_page(path):
        msg = f"{path} exists and is no page; it is left as it is, name another file"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"{path}: there is no folder {path.parent}; make it, or name another file"
        raise UsageError(msg)


def _is_page(path: Path) -> bool:
    """Whether a file begins as a page does, or is empty; a device or a pipe is none, and is not waited for."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            begin = file.read(64).lstrip().lower()
    except OSError:
        return False
    return not begin or begin.startswith(b"<!doctype html")


def keep(book: Book, path: Path) -> str:
    """Write what was counted; says so in a sentence."""
    if path.suffix == ".parquet":
        from edgekeeper.report.ingest.sql import write_parquet

        return write_parquet(book, path)
    from edgekeeper.report.ingest.cells_file import write

    return write(book, path)


def ask(book: Book, query: str, *, as_json: bool) -> None:
    """Print the answer to a question in SQL."""
    from edgekeeper.cli.output import say_json, table
    from edgekeeper.report.ingest.sql import ask as answer

    columns, rows = answer(book, query)
    if as_json:
        say_json({"columns": list(columns), "rows": [list(row) for row in rows]})
    else:
        table(tuple(columns), [["" if value is None else str(value) for value in row] for row in rows])
