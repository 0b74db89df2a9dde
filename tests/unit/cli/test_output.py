from __future__ import annotations

import contextlib
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.cli import output
from edgekeeper.cli.output import Cell, Tone


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_lines_are_escaped_each(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\x1b[31m", "b\nc")
    output.complain("d\re")
    told = capsys.readouterr()
    assert told.out == "a\\x1b[31m\nb\\nc\n"
    assert told.err == "d\\re\n"


def test_a_block_keeps_its_lines_and_tabs_only(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_block("a:\n\tb\x1b[0m\n")
    assert capsys.readouterr().out == "a:\n\tb\\x1b[0m\n"


def test_json_has_its_schema_first_and_nothing_a_terminal_acts_on(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_json({"a": "\x1b\x7f\x9b\u202e"})
    text = capsys.readouterr().out
    assert json.loads(text) == {"schema": 1, "a": "\x1b\x7f\x9b\u202e"}
    assert list(json.loads(text)) == ["schema", "a"]
    assert text.replace("\n", "").isprintable()
    assert text.isascii()


def test_a_table_in_a_pipe_is_aligned_and_has_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("NODE", "WHY"), [("edge-a", Cell("bad\x1b[2J", Tone.BAD)), ("b", "")])
    assert capsys.readouterr().out == "NODE    WHY\nedge-a  bad\\x1b[2J\nb\n"


def test_a_table_on_a_terminal_has_colours_and_takes_no_markup_or_escape_from_outside(terminal: Terminal) -> None:
    with contextlib.redirect_stdout(terminal):
        output.table(("NODE",), [(Cell("[red]x[/red]\x1b]0;title\x07", Tone.GOOD),)])
    text = terminal.getvalue()
    assert "\x1b[32m" in text
    assert "[red]x[/red]\\x1b]0;title\\x07" in text
    assert "\x1b]" not in text


def test_no_color_is_honoured(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stdout(terminal):
        output.table(("NODE",), [(Cell("x", Tone.GOOD),)])
    assert "x" in terminal.getvalue()
    assert "\x1b[3" not in terminal.getvalue()
    assert not output.colour(terminal)


def test_a_dumb_terminal_gets_no_colours(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.colour(terminal)
    monkeypatch.setenv("TERM", "dumb")
    assert not output.colour(terminal)


def test_progress_and_repaint_are_for_terminals(capsys: pytest.CaptureFixture[str]) -> None:
    output.progress("half")
    output.progress_done()
    output.repaint()
    assert capsys.readouterr() == ("", "")


@given(st.lists(st.tuples(st.text(st.characters(), max_size=8), st.text(st.characters(), max_size=8)), max_size=3))
def test_any_table_is_printable_with_one_line_a_row(rows: list[tuple[str, str]]) -> None:
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        output.table(("A", "B"), rows)
    lines = screen.getvalue().split("\n")
    assert len(lines) == len(rows) + 2
    assert all(line.isprintable() for line in lines)
