"""The report as one HTML file: no script, nothing from elsewhere, readable on a telephone, on paper and aloud. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from edgekeeper.report.document import Figure, Report, Series, Table
from edgekeeper.report.pages import facts, multiples, smoke, timeline
from edgekeeper.report.pages.markup import Child, Markup, el, style_of, whole
from edgekeeper.report.pages.short import with_short_routes
from edgekeeper.report.pages.style import sheet
from edgekeeper.report.pages.svg import Axis, shared
from edgekeeper.report.pages.when import UTC, Times, Zone, times

MOST_TABLE_ROWS = 500
"""Rows of one table; beyond them nobody reads, and the JSON has all."""
_TALL = 40
"""Rows beyond which a table scrolls in its own box."""
_LONG = 28
"""Characters from which a cell may break into lines."""
_RIGHT = re.compile(r"[-+<≥≤≈]?\s?[0-9]")
_LONG_VERDICT = 180
"""Characters from which a verdict is a paragraph, and set smaller."""
_JOINT = re.compile(r"(?<=[/.@_:?&=])(?=\w)")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(slots=True)
class _Page:
    """What all parts of one page share."""

    times: Times
    work: tuple[tuple[float, float], ...] = ()
    keys: count[int] = field(default_factory=lambda: count(1))

    def key(self) -> str:
        return f"c{next(self.keys)}"


def render(report: Report, zone: Zone = UTC) -> str:
    """The whole document, verdict first."""
    report = with_short_routes(report)
    made = _Page(times(report.window.begin, report.window.end, zone))
    made.work = tuple(span for figure in report.figures if figure.timeline for span in timeline.work_spans(figure.timeline))
    sections = [section for section in _sections(report, made) if section[2] is not None]
    body = el(
        "body",
        shared(),
        el(
            "div",
            _head(report, made, [(key, name) for key, name, _ in sections]),
            el("main", [el("section", el("h2", name, id=f"{key}-h"), content, id=key, aria_labelledby=f"{key}-h") for key, name, content in sections]),
            el("footer", f"Times are in {zone.name}. A duration is an interval: the truth lies between its bounds. Made by edgekeeper report."),
            class_="page",
        ),
    )
    return whole(el("html", _meta(report, made), body, lang="en"))


def _meta(report: Report, made: _Page) -> Markup:
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("link", rel="icon", href="data:,"),
        el("title", facts.headline(report, made.times)),
        style_of(sheet()),
    )


def _head(report: Report, made: _Page, sections: Sequence[tuple[str, str]]) -> Markup:
    return el(
        "header",
        el(
            "div",
            el("p", facts.headline(report, made.times), class_="over"),
            None if report.can_judge else el("p", "No judgement is made: see the first line.", class_="doubt"),
            el("h1", report.verdict, class_="long" if len(report.verdict) > _LONG_VERDICT else None),
            class_="verdict" if report.can_judge else "verdict unsure",
        ),
        el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts.facts(report, made.times)], class_="facts"),
        el("nav", el("ul", [el("li", el("a", name, href=f"#{key}")) for key, name in sections]), aria_label="Parts of this report"),
    )


def _sections(report: Report, made: _Page) -> list[tuple[str, str, Child]]:
    lead = facts.lead(report.figures)
    minutes = [f for f in report.figures if f is not lead and f.multiples]
    probes = [f for f in report.figures if f is not lead and f not in minutes and _of_probes(f)]
    rest = [f for f in report.figures if f is not lead and f not in minutes and f not in probes]
    return [
        ("timeline", "Timeline", _figures([lead] if lead else [], made)),
        ("outages", "Outages", _outages(report, made)),
        ("clients", "Clients by the minute", _figures(minutes, made)),
        ("probes", "Probes", _figures(probes, made)),
        ("figures", "Figures", _figures(rest, made)),
        ("not-measured", "What was not measured", _not_measured(report)),
        ("clocks", "Clocks", _clocks(report)),
        ("input", "What was read", _input(report, made)),
    ]


def _of_probes(figure: Figure) -> bool:
    return bool(figure.smoke) or (figure.timeline is not None and any(row.group == "edge" for row in figure.timeline.rows))


def _figures(figures: Sequence[Figure], made: _Page) -> Child:
    return [_figure(figure, made) for figure in figures] if figures else None


def _figure(figure: Figure, made: _Page) -> Markup:
    key = made.key()
    return el(
        "article",
        el(
            "header",
            el("span", figure.id, class_="id"),
            el("h3", figure.title, id=f"{key}-h"),
            None if figure.measured else el("span", "not measured", class_="tag"),
        ),
        el("p", figure.answer, class_="answer") if figure.answer else None,
        _timeline(figure, made),
        _multiples(figure, made),
        _smoke(figure, made),
        table(figure.title, figure.table, titled=True) if figure.table and figure.table.rows and not figure.multiples else None,
        el("ul", [el("li", note) for note in figure.notes], class_="notes") if figure.notes else None,
        class_="fig" if figure.measured else "fig un",
        aria_labelledby=f"{key}-h",
    )


def _timeline(figure: Figure, made: _Page) -> Child:
    drawn = figure.timeline
    if not drawn:
        return None
    said = "Bars reach over all the time in which it may have been, and are solid where it certainly was; none is drawn narrower than 3 pixels."
    said += " Shaded: somebody worked on a node." if made.work else ""
    said += f" Drawn: the first {timeline.MOST_ROWS} of {len(drawn.rows)} rows." if len(drawn.rows) > timeline.MOST_ROWS else ""
    return el(
        "figure",
        timeline.plot(made.key(), figure.title, drawn, made.times, made.work),
        timeline.legend(drawn),
        el("figcaption", said),
        _data(figure.title, timeline.COLUMNS, timeline.rows_of(drawn, made.times)),
    )


def _multiples(figure: Figure, made: _Page) -> Child:
    if not figure.multiples:
        return None
    drawn = figure.multiples[: multiples.MOST]
    return [
        el("div", [_multiple(series, made, multiples.axis_of(drawn)) for series in drawn], class_="multiples"),
        multiples.legend(drawn),
        _cut(len(drawn), len(figure.multiples)),
        _data(figure.title, *_numbers_of(figure, made)),
    ]


def _numbers_of(figure: Figure, made: _Page) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The figure's own table by the minute where it has one."""
    if figure.table:
        return figure.table.columns, figure.table.rows
    drawn = figure.multiples[: multiples.MOST]
    return multiples.columns_of(drawn), multiples.rows_of(drawn, made.times)


def _multiple(series: Series, made: _Page, axis: Axis) -> Markup:
    caption = el("figcaption", el("b", series.name or "unclassed"), f" {multiples.sentence(series)}", f"; {series.note}" if series.note else "")
    return el("figure", caption, multiples.plot(made.key(), series, made.times, made.work, axis))


def _smoke(figure: Figure, made: _Page) -> Child:
    if not figure.smoke:
        return None
    drawn = smoke.worst_first(figure.smoke)[: smoke.MOST] if len(figure.smoke) > smoke.MOST else figure.smoke
    pictures = [
        el("figure", el("figcaption", el("b", one.name), f" {smoke.sentence(one)}"), smoke.plot(made.key(), one, made.times, made.work, smoke.axis_of(drawn)))
        for one in drawn
    ]
    return [
        el("div", pictures, class_="multiples"),
        smoke.legend(),
        _cut(len(drawn), len(figure.smoke)),
        _data(figure.title, smoke.COLUMNS, smoke.rows_of(drawn, made.times)),
    ]


def _cut(drawn: int, there: int) -> Child:
    return el("p", f"Drawn: {drawn} of {there}; the JSON has all.", class_="notes") if drawn < there else None


def _data(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Child:
    """The picture as a table, folded away."""
    return (
        el("details", el("summary", "The same as a table"), table(f"{title}, as a table", Table(tuple(columns), tuple(map(tuple, rows))), titled=True))
        if rows
        else None
    )


def _outages(report: Report, made: _Page) -> Child:
    if not report.outages:
        return el("p", "None was seen. What was not measured is listed below.", class_="answer")
    return table("Each outage, and how long it lasted at least and at most", facts.outage_table(report.outages, made.times))


def _not_measured(report: Report) -> Child:
    figures = [f"{figure.title}: {figure.answer}" for figure in report.figures if not figure.measured]
    said = [*report.not_measured, *(text for text in figures if text not in report.not_measured)]
    if not said:
        return el("p", "Nothing that this report knows of.", class_="answer")
    return el("ul", [el("li", text) for text in said], class_="plain")


def _clocks(report: Report) -> Child:
    if not report.clocks:
        return None
    return [
        el("p", "What was added to the stamps of each node, and between which bounds it may lie; every span across nodes is wider by that.", class_="answer"),
        table("Clocks, as they were and as they were corrected", Table(facts.CLOCK_COLUMNS, facts.clock_rows(report.clocks))),
    ]


def _input(report: Report, made: _Page) -> Child:
    skipped = facts.skipped_rows(report)
    return [
        el("p", facts.read(report), class_="answer"),
        table("Lines that could not be read, by reason", Table(facts.SKIPPED_COLUMNS, skipped)) if skipped else None,
        table("Sources", facts.source_table(report.sources, made.times)) if report.sources else None,
    ]


def table(title: str, shown: Table, *, titled: bool = False) -> Markup:
    """A table in a box of its own that scrolls when the page is too narrow for it; ``titled``: its title stands above already."""
    right = [_is_right(shown, i) for i in range(len(shown.columns))]
    rows = shown.rows[:MOST_TABLE_ROWS]
    said = title if len(rows) == len(shown.rows) else f"{title} (the first {len(rows)} of {len(shown.rows)} rows; the JSON has all)"
    head = el("tr", [el("th", name, scope="col", class_="r" if right[i] else None) for i, name in enumerate(shown.columns)])
    body = [el("tr", [_cell(cell, i, right=i < len(right) and right[i]) for i, cell in enumerate(row)]) for row in rows]
    made = el("table", el("caption", said, class_="heard" if titled and said == title else None), el("thead", head), el("tbody", body))
    return el("div", made, class_="scroll tablebox tall" if len(rows) > _TALL else "scroll tablebox", tabindex="0", role="region", aria_label=title)


def _cell(text: str, place: int, *, right: bool) -> Markup:
    kind = "r" if right else "t" if len(text) > _LONG else None
    shown = _breakable(text) if kind == "t" else text
    return el("th", shown, scope="row", class_=kind) if place == 0 else el("td", shown, class_=kind)


def _breakable(text: str) -> Child:
    """A long name breaks at its joints rather than anywhere."""
    parts = _JOINT.split(text)
    return [parts[0], *(child for part in parts[1:] for child in (el("wbr"), part))]


def _is_right(shown: Table, place: int) -> bool:
    """Whether a column is of numbers: all of its cells that say anything begin as one, and none is long."""
    cells = [row[place] for row in shown.rows[:MOST_TABLE_ROWS] if place < len(row) and row[place]]
    return bool(cells) and place > 0 and all(_RIGHT.match(cell) and len(cell) <= _LONG for cell in cells)
