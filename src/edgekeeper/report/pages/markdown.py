"""The report for a change ticket: short, in GitHub's Markdown. Pure.

What a log said is escaped so that it stays text: no markup, no link, no picture, nobody is called by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from edgekeeper.model.text import printable
from edgekeeper.report.document import Figure, Report, Table
from edgekeeper.report.pages import facts, multiples
from edgekeeper.report.pages.short import with_short_routes
from edgekeeper.report.pages.when import UTC, Zone, times

MOST_ROWS = 40
"""Rows of one table: a ticket is read by people."""
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = re.compile(r"[\\`*_\[\]{}|~$]")
_LINE_START = re.compile(r"^([-+#=])(?=\s|\1|$)|^([0-9]+)(?=[.)](?:\s|$))")  # what would begin a list, a heading, a rule
_CALLS = re.compile(r"(?<![\w])@(?=\w)|(?<=\w)@(?=[\w.-]+\.\w)")  # @somebody; an address, which would become a link
_LINKS = re.compile(r"(?i)(?<=[a-z]:/)(?=/)|(?<=www)(?=\.)|(?<=mailto)(?=:)|(?<=xmpp)(?=:)")  # a backslash is enough here, and leaves no trace
_JOINER = "&#8288;"  # a word joiner, of no width: with it inside a word is no address and no name


def render(report: Report, zone: Zone = UTC) -> str:
    """The verdict, the outages, the figures' answers, and what was not measured."""
    report = with_short_routes(report)
    said = times(report.window.begin, report.window.end, zone)
    parts = [
        f"## {escape(facts.headline(report, said))}",
        f"**{escape(report.verdict)}**",
        "" if report.can_judge else "> **No judgement is made:** see the first line.",
        "\n".join(f"- {name}: {escape(value)}" for name, value in facts.facts(report, said)),
    ]
    if report.outages:
        parts += ["### Outages", table(facts.outage_table(report.outages, said))]
    parts += _figures(report.figures)
    if report.not_measured:
        parts += ["### What was not measured", "\n".join(f"- {escape(text)}" for text in report.not_measured)]
    if report.clocks:
        parts += ["### Clocks", table(Table(facts.CLOCK_COLUMNS, facts.clock_rows(report.clocks)))]
    parts += ["### What was read", escape(facts.read(report))]
    skipped = facts.skipped_rows(report)
    if skipped:
        parts.append(table(Table(facts.SKIPPED_COLUMNS, skipped)))
    return (
        "\n\n".join(part for part in parts if part)
        + f"\n\nTimes are in {zone.name}; a duration is an interval that holds the truth. Tables and pictures are in the HTML page.\n"
    )


def _figures(figures: Sequence[Figure]) -> list[str]:
    """A line for each: what was found. Their tables would fill the ticket."""
    lines = []
    for figure in figures:
        if not figure.measured or (figure.timeline and not figure.table):
            continue  # what was not measured has its own list; the table of outages says what a timeline shows
        lines.append(f"- **{escape(figure.id)} {escape(figure.title)}:** {escape(figure.answer)}")
        lines += [f"  - {escape(s.name or 'unclassed')}: {escape(multiples.sentence(s))}" for s in figure.multiples[: multiples.MOST]]
    return ["### What was found", "\n".join(lines)] if lines else []


def table(shown: Table) -> str:
    """A table; what does not fit is said below it."""
    lines = ["| " + " | ".join(escape(name) or " " for name in shown.columns) + " |", "|" + " --- |" * len(shown.columns)]
    for row in shown.rows[:MOST_ROWS]:
        cells = [*row[: len(shown.columns)], *("",) * (len(shown.columns) - len(row))]
        lines.append("| " + " | ".join(escape(cell) or " " for cell in cells) + " |")
    left = len(shown.rows) - MOST_ROWS
    return "\n".join(lines) + (f"\n\n({left} more rows; the JSON has all.)" if left > 0 else "")


def escape(text: str) -> str:
    """The text as Markdown that shows exactly it."""
    said = printable(text).strip().translate(_HTML)
    said = _MARKS.sub(lambda m: "\\" + m[0], said)
    said = _LINKS.sub("\\\\", said)
    said = _CALLS.sub("@" + _JOINER, said)
    return _LINE_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\", said)
