"""The report for a terminal: plain lines, tables and block characters, no colours. Pure.

Every line is printable: nothing that a log said can move a cursor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from edgekeeper.model.text import printable
from edgekeeper.report.document import Bar, Figure, Hurt, Report, Row, Series, Smoke, Table, Timeline
from edgekeeper.report.pages import facts, multiples, smoke
from edgekeeper.report.pages.short import with_short_routes
from edgekeeper.report.pages.timeline import fitted, sure_part
from edgekeeper.report.pages.when import UTC, Times, Zone, known, ticks, times

WIDTH = 100
"""Columns, where the terminal's are not known."""
_LEAST = 60
_RAW = frozenset({"from (raw)", "until (raw)", "stamps"})
_BLOCKS = "▁▂▃▄▅▆▇█"
_NAME = 22
_STUB = 8
"""Characters of a long name that are not worth to be left behind on a line."""
_MOST_ROWS = 60
"""Rows of one table or timeline; beyond them a terminal is the wrong place."""


def render(report: Report, zone: Zone = UTC, width: int = WIDTH) -> str:
    """The whole report, verdict first, ``width`` columns wide (60 at least)."""
    report = with_short_routes(report)
    width = max(_LEAST, width)
    said = times(report.window.begin, report.window.end, zone)
    lines = [*wrap(report.verdict, width), ""]
    if not report.can_judge:
        lines += ["No judgement is made: see the first line.", ""]
    lines += wrap(facts.headline(report, said), width)
    named = [(name, value) for name, value in facts.facts(report, said)]
    lines += [line for name, value in named for line in wrap(f"{name}: {value}", width, indent=2)]
    lead = facts.lead(report.figures)
    if lead:
        lines += ["", *_figure(lead, said, width)]
    if report.outages:
        lines += ["", "Outages", *_outages(report.outages, said, width)]
    for figure in (f for f in report.figures if f is not lead):
        lines += ["", *_figure(figure, said, width)]
    lines += ["", *_end(report, said, width)]
    return "\n".join(printable(line.rstrip()) for line in lines) + "\n"


def _outages(outages: Sequence[Hurt], said: Times, width: int) -> list[str]:
    """When, how long, how many; then the name of the route in one piece, and below it what caused it."""
    shown = facts.outage_table(outages, said)
    place = {name: i for i, name in enumerate(shown.columns)}
    short = [name for name in ("first failure", "lasted", "failed", "kind", "clients") if name in place]
    rows = tuple((*(row[place[name]] for name in short), row[place["route"]]) for row in shown.rows)
    lines = table(Table((*short, "route"), rows), max(width, 10_000))
    causes = [row[place["cause"]] + (f" (told by {row[place['told by']]})" if "told by" in place else "") for row in shown.rows[:_MOST_ROWS]]
    out = wrap(lines[0], width, indent=17)
    for line, cause in zip(lines[1:], causes, strict=False):
        out += [*wrap(line, width, indent=17), *wrap(" " * 17 + cause, width, indent=17)]
    return out + lines[1 + len(causes) :]


def _head(figure: Figure, width: int) -> list[str]:
    return wrap(f"{figure.id}  {figure.title}: {figure.answer or 'see below'}", width, indent=len(figure.id) + 2)


def _figure(figure: Figure, said: Times, width: int) -> list[str]:
    lines = _head(figure, width)
    lines += _timeline(figure.timeline, said, width)
    lines += _multiples(figure.multiples, said, width)
    lines += _smokes(figure.smoke, said, width)
    if figure.table and figure.table.rows and not figure.multiples:  # by the minute: the line of blocks says it
        lines += table(figure.table, width)
    return lines + [line for note in figure.notes for line in wrap(f"- {note}", width, indent=2)]


def _end(report: Report, said: Times, width: int) -> list[str]:
    lines = []
    if report.not_measured:
        lines += ["What was not measured", *(line for text in report.not_measured for line in wrap(f"- {text}", width, indent=2)), ""]
    if report.clocks:
        lines += ["Clocks", *table(Table(facts.CLOCK_COLUMNS, facts.clock_rows(report.clocks)), width), ""]
    lines += ["Read: " + facts.read(report)]
    skipped = facts.skipped_rows(report)
    lines += table(Table(facts.SKIPPED_COLUMNS, skipped), width) if skipped else []
    return lines + (["", "Sources", *table(facts.source_table(report.sources, said, without=_RAW), width)] if report.sources else [])


def table(shown: Table, width: int) -> list[str]:
    """Aligned columns, two spaces apart; where they are too wide the widest ones break into lines."""
    rows = [[printable(cell) for cell in row] for row in shown.rows[:_MOST_ROWS]]
    widths = [max([len(name), *(len(row[i]) for row in rows if i < len(row))]) for i, name in enumerate(shown.columns)]
    for floor in (18, 10, 5):  # names and times stay in one piece as long as they can
        _shrink(widths, [min(w, floor) for w, name in zip(widths, shown.columns, strict=True)], width - 2)
    lines = [line for row in [list(shown.columns), *rows] for line in _lines(row, widths)]
    left = len(shown.rows) - len(rows)
    return ["  " + line for line in lines] + ([f"  ... and {left} more rows; -o json has all"] if left else [])


def _shrink(widths: list[int], least: Sequence[int], width: int) -> None:
    """Make the widest columns narrower until all fit, or none may give way any more."""
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max((i for i in range(len(widths)) if widths[i] > least[i]), key=lambda i: widths[i], default=None)
        if widest is None:
            return
        widths[widest] -= 1


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterable[str]:
    cells = [_broken(cell, width) for cell, width in zip(row, widths, strict=False)]
    for i in range(max((len(c) for c in cells), default=0)):
        yield "  ".join((cell[i] if i < len(cell) else "").ljust(width) for cell, width in zip(cells, widths, strict=False)).rstrip()


def wrap(text: str, width: int, indent: int = 0) -> list[str]:
    """Lines of at most ``width``, the later ones indented."""
    indent = min(indent, width // 4)
    said = printable(text)
    lead = " " * min(len(said) - len(said.lstrip(" ")), width // 4)
    first, *rest = _broken(said.strip(" "), width - len(lead), width - indent)
    return [lead + first, *(" " * indent + line for line in rest)]


def _broken(text: str, width: int, later: int = 0) -> list[str]:
    """Broken between words, and inside one that is longer than a line."""
    width, later = max(1, width), max(1, later or width)  # a room of nothing would never be left
    lines, line, room = [], "", width
    for word in text.split(" "):
        while len(line) + len(word) + bool(line) > room:
            if line and (len(word) <= later or room - len(line) < _STUB):
                lines.append(line)
                line = ""
            else:
                space = room - len(line) - bool(line)
                if space <= 0:
                    lines.append(line)
                    line, room = "", later
                    continue
                space = _joint(word, space)
                line += (" " if line else "") + word[:space]
                word = word[space:]  # noqa: PLW2901 - what is left of it
                lines.append(line)
                line = ""
            room = later
        line += (" " if line else "") + word
    return [*lines, line]


def _joint(word: str, space: int) -> int:
    """Where a long name breaks: behind its last joint in what fits, if that is not too far to the left."""
    joint = max(word.rfind(sign, 0, space) for sign in "-/.@:_,")
    return joint + 1 if joint >= space // 2 else space


def _multiples(series: Sequence[Series], said: Times, width: int) -> list[str]:
    lines: list[str] = []
    for one in series[: multiples.MOST]:
        columns = multiples.bins(one, width - _NAME - 4)
        lines += wrap(f"  {one.name or 'unclassed'}: {multiples.sentence(one)}", width, indent=4)
        lines.append("    requests".ljust(_NAME) + spark([c.requests for c in columns], silent=True))
        if any(c.bad for c in columns):
            lines.append("    failed".ljust(_NAME) + spark([c.bad for c in columns]))
    if lines and any(n == 0 for s in series for _, n, _ in s.minutes):
        lines.append("    (○ no requests at all, ? not measured)")
    if lines and series[0].minutes:
        lines.append(f"    from {said.minute(series[0].minutes[0][0])} to {said.minute(series[0].minutes[-1][0] + 60)} {said.zone.name}")
    return lines


def spark(counts: Sequence[float | None], *, silent: bool = False) -> str:
    """Block characters by size. What is not nothing is seen; ``silent``: nothing is a ring, because silence is no success. Not measured is ``?``."""
    most = max((c for c in counts if c is not None and math.isfinite(c)), default=0)
    out = ""
    for count in counts:
        if count is None or not math.isfinite(count):
            out += "?"
        elif not count:
            out += "○" if silent else " "
        else:
            out += _BLOCKS[min(7, max(0, math.ceil(8 * count / most) - 1))]
    return out


def _smokes(smokes: Sequence[Smoke], said: Times, width: int) -> list[str]:
    lines: list[str] = []
    for one in smoke.worst_first(smokes)[: smoke.MOST]:
        drawn = smoke.slots(one, width - _NAME - 4)
        lines += wrap(f"  {one.name}: {smoke.sentence(one)}", width, indent=4)
        lines.append("    median".ljust(_NAME) + spark([m for _, m, _, _ in drawn]))
        if any(f for *_, f in drawn):
            lines.append("    failed".ljust(_NAME) + spark([f for *_, f in drawn]))
    if lines and smokes[0].slots:
        lines.append(f"    from {said.at(smokes[0].slots[0][0])} {said.zone.name} (? nothing answered)")
    return lines


def _timeline(timeline: Timeline | None, said: Times, width: int) -> list[str]:
    if timeline is None or not timeline.begin < timeline.end:
        return []
    room = width - _NAME - 2
    lines = [" " * (_NAME + 2) + _axis(timeline, said.zone, room)]
    group = ""
    for row in timeline.rows[:_MOST_ROWS]:
        if row.group != group:
            group = row.group
            lines.append(f"  {group}"[:width])
        lines.append("    " + fitted(printable(row.name), _NAME - 3).ljust(_NAME - 2) + _drawn(row, timeline, room))
    left = len(timeline.rows) - _MOST_ROWS
    if left > 0:
        lines.append(f"    ... and {left} more rows; --html shows them, -o json has all")
    return [*lines, *wrap("    (█ certain, ░ possible, ▓ work on a node, ▼ down, ▲ up, ● acted, ◇ held back, │ note)", width, indent=4)]


def _axis(timeline: Timeline, zone: Zone, room: int) -> str:
    line = [" "] * room
    for tick in ticks(timeline.begin, timeline.end, max(2, room // 11), zone):
        at = _place(tick.at, timeline, room)
        text = "╷" + tick.label
        if at + len(text) <= room and not "".join(line[max(0, at - 1) : at + len(text)]).strip():
            line[at : at + len(text)] = text
    return "".join(line)


def _drawn(row: Row, timeline: Timeline, room: int) -> str:
    line = [" "] * room
    for bar in sorted(row.bars, key=lambda b: b.tone != "work"):
        if bar.end >= timeline.begin and bar.begin <= timeline.end:
            _fill(line, bar.begin, bar.end, "░", timeline)
    for bar in sorted(row.bars, key=lambda b: b.tone != "work"):
        sure = sure_part(bar)
        if sure and sure[1] >= timeline.begin and sure[0] <= timeline.end:
            _fill(line, *sure, _block(bar), timeline)
    for point in row.points:
        if known(point.at) and timeline.begin <= point.at <= timeline.end:
            line[_place(point.at, timeline, room)] = _SIGNS.get(point.shape, "│")
    return "".join(line)


_SIGNS = {"down": "▼", "up": "▲", "act": "●", "hold": "◇"}


def _block(bar: Bar) -> str:
    return "▓" if bar.tone in {"work", "calm"} else "█"


def _fill(line: list[str], begin: float, end: float, sign: str, timeline: Timeline) -> None:
    for i in range(_place(begin, timeline, len(line)), _place(end, timeline, len(line)) + 1):
        line[i] = sign


def _place(at: float, timeline: Timeline, room: int) -> int:
    if not at > timeline.begin:
        return 0
    return room - 1 if at >= timeline.end else int((at - timeline.begin) / (timeline.end - timeline.begin) * room)
