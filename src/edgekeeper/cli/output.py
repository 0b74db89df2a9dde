"""The only place that prints: lines, tables, JSON, progress.

Whatever is printed for people is escaped first, so that a name or a log line from outside cannot move
the cursor, change colours or hide a word. Colours and progress appear on a terminal only, and never
with NO_COLOR.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any

from edgekeeper.model.text import printable


class Format(StrEnum):
    """What ``-o`` takes."""

    TEXT = "text"
    JSON = "json"


class Tone(StrEnum):
    """What a cell means; the colour follows from it."""

    PLAIN = ""
    GOOD = "green"
    BAD = "bold red"
    DOUBT = "yellow"
    DIM = "dim"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: text from anywhere, and its tone."""

    text: str
    tone: Tone = Tone.PLAIN


def say(*lines: str) -> None:
    r"""Print lines to standard output; a line end inside one is written out as ``\n``."""
    for line in lines:
        print(printable(line))


def say_block(text: str) -> None:
    """Print a text of several lines (a rendered config): every line escaped, tabs kept."""
    for line in text.splitlines():
        print("\t".join(printable(part) for part in line.split("\t")))


def complain(*lines: str) -> None:
    """Print lines to standard error, escaped."""
    for line in lines:
        print(printable(line), file=sys.stderr)


def complain_block(text: str) -> None:
    """Print a text of several lines to standard error, each line escaped."""
    complain(*text.splitlines())


def say_json(data: Mapping[str, Any], *, schema: int = 1) -> None:
    """Print one JSON document, ``schema`` first, ASCII only."""
    print(json_text({"schema": schema, **data}, indent=2), flush=True)


def say_json_rows(data: Mapping[str, Any], name: str, rows: Iterable[Mapping[str, Any]], *, schema: int = 1) -> None:
    """Print one JSON document whose last member ``name`` is a long list, row by row as they come, so that they are never all in memory as text."""
    head = json_text({"schema": schema, **data}, indent=2)
    print(f'{head[:-2]},\n  "{name}": [', end="")
    between = "\n    "
    for row in rows:
        print(between + json_text(row), end="")
        between = ",\n    "
    print("\n  ]\n}", flush=True)


def say_json_line(data: Mapping[str, Any]) -> None:
    """Print one JSON object on one line, as it is (a line of the journal has its schema already)."""
    print(json_text(data), flush=True)


def json_text(data: Mapping[str, Any], indent: int | None = None) -> str:
    """The JSON of a document, with nothing in it that a terminal could act on."""
    import json

    return json.dumps(data, indent=indent, default=str)


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether a person watches the stream (standard output when not said)."""
    return (stream or sys.stdout).isatty()


def colour(stream: IO[str] | None = None) -> bool:
    """Whether colours are wanted there: a terminal that can, and no NO_COLOR."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def table(head: Sequence[str], rows: Sequence[Sequence[str | Cell]]) -> None:
    """Print a table: aligned columns, two spaces apart; on a terminal fitted to its width, with colours."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    if not is_terminal():
        widths = [max([len(name), *(len(printable(row[i].text)) for row in cells)]) for i, name in enumerate(head)]
        for row in [[Cell(name) for name in head], *cells]:
            print("  ".join(printable(cell.text).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for i, name in enumerate(head):
        longest = max([len(name), *(len(printable(row[i].text)) for row in cells)])
        # The last column is the one that gives way: names and times stay in one piece.
        drawn.add_column(name, overflow="fold", min_width=min(longest, 32) if i < len(head) - 1 else None)
    for row in cells:
        drawn.add_row(*(Text(printable(cell.text), style=cell.tone.value) for cell in row))
    Console(no_color=not colour(), highlight=False, soft_wrap=False).print(drawn)


def repaint() -> None:
    """Clear the terminal for the next picture of a ``--watch``; elsewhere pictures follow each other."""
    if is_terminal():
        print("\x1b[H\x1b[2J", end="", flush=True)


def progress(text: str) -> None:
    """Show how far a long job is, in place of what was shown before; on a terminal only (standard error)."""
    if is_terminal(sys.stderr):
        width = max(20, os.get_terminal_size(sys.stderr.fileno()).columns - 1)
        print(f"\r{printable(text, width)}\x1b[K", end="", file=sys.stderr, flush=True)


def progress_done() -> None:
    """Take the progress line away."""
    if is_terminal(sys.stderr):
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def careful_streams() -> None:
    """Make characters that the terminal's encoding lacks come out as escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
