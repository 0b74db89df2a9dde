from __future__ import annotations

import errno
import importlib
import os

import pytest
import typer

from edgekeeper.cli import root
from edgekeeper.cli.ending import internal
from edgekeeper.cli.main import global_options_first, run
from edgekeeper.errors import AbortedError, LockHeldError, MissingError, RefusedError, StepFailedError, UsageError

GOOD = 'node: edge-a\ndns:\n  listen: ["127.0.0.1:5300"]\n  members: {static: ["127.0.0.1:5301"]}\n'


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Let every command fail in a given way."""

    def fail_with(error: BaseException) -> None:
        def command(_words: object) -> int:
            raise error

        monkeypatch.setattr(root, "run_command", command)

    return fail_with


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError, 2), (RefusedError, 3), (LockHeldError, 4), (StepFailedError, 5), (MissingError, 6), (AbortedError, 7)],
)
def test_an_error_is_its_line_and_its_code(failing, capsys: pytest.CaptureFixture[str], error: type[Exception], code: int) -> None:
    failing(error("it is \x1b[31mwrong\n; do this instead"))
    assert run(["check"]) == code
    assert capsys.readouterr().err == "edgekeeper: it is \\x1b[31mwrong\\n; do this instead\n"


def test_an_error_of_our_own_is_a_line_too_and_its_place_is_for_debug(failing, capsys: pytest.CaptureFixture[str]) -> None:
    failing(KeyError("x\ny"))
    assert run(["check"]) == 5
    told = capsys.readouterr().err
    assert told.startswith("edgekeeper: internal error, KeyError: ")
    assert told.count("\n") == 1
    failing(KeyError("x"))
    run(["check", "--debug"])
    assert "test_main.py" in capsys.readouterr().err


def test_ctrl_c_is_seven(failing, capsys: pytest.CaptureFixture[str]) -> None:
    failing(KeyboardInterrupt())
    assert run(["status"]) == 7
    assert "Traceback" not in capsys.readouterr().err


def test_ctrl_c_inside_a_command_is_seven_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("edgekeeper.cli.context.Settings.load", interrupted)
    assert run(["check"]) == 7
    assert capsys.readouterr().err.count("\n") == 1


def test_a_reader_that_went_away_ends_it_quietly(failing, capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(1)
    try:
        failing(BrokenPipeError())
        assert run(["history"]) == 0
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nonsense"], "edgekeeper: no such command 'nonsense'; `edgekeeper --help` says what it takes"),
        (["check", "--nonsense"], "edgekeeper: no such option: --nonsense; `edgekeeper check --help` says what it takes"),
        (["check", "a", "b"], None),
        (["--log-format", "xml", "check"], None),
        (["check", "-o", "xml"], None),
        (["check", "\x1b[31m", "\x1b"], None),
    ],
)
def test_a_wrong_command_line_is_one_line_and_two(capsys: pytest.CaptureFixture[str], words: list[str], line: str | None) -> None:
    assert run(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "\x1b" not in told.err
    assert line is None or told.err.strip() == line


def test_no_command_shows_the_help_and_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: edgekeeper" in capsys.readouterr().out


def test_help_and_version_are_zero(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["-h"], ["--version"], ["check", "--help"], ["--version", "check"]):
        assert run(words) == 0, words
    assert "edgekeeper " in capsys.readouterr().out


def test_root_options_may_stand_anywhere_before_two_dashes() -> None:
    assert global_options_first(["dns", "run", "--config", "f", "--debug"]) == ["--config", "f", "--debug", "dns", "run"]
    assert global_options_first(["check", "--node=a", "x", "--log-format=text"]) == ["--node=a", "--log-format=text", "check", "x"]
    assert global_options_first(["x", "--", "--config", "f"]) == ["x", "--", "--config", "f"]
    assert global_options_first(["check", "--config"]) == ["check", "--config"]


def test_a_wrong_config_is_two_all_its_mistakes_are_told_and_nothing_is_touched(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text(GOOD.replace("listen", "listne") + f"state_dir: {tmp_path}/state\nvip: {{}}\nprobe: {{targets: [icmp://192.0.2.1], every: 0s}}\n")
    for words in (["check", str(config)], ["--config", str(config), "status"], ["history", "--config", str(config)]):
        assert run(words) == 2, words
        told = capsys.readouterr()
        assert told.out == ""
        assert [line.split(": ")[0] for line in told.err.splitlines()] == [f"{config}:{place}" for place in ("2:1", "3:3", "6:1", "7:45")]
        assert list(tmp_path.iterdir()) == [config]


def test_a_file_of_mistakes_only_is_not_printed_whole(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "edge.yaml"
    config.write_text("node: a\n" * 500)
    assert run(["check", str(config)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 201
    assert lines[-1].endswith("has 299 more mistakes; mend these first")


def test_every_command_is_listed_with_the_sentence_of_its_own_help() -> None:
    for command in root.COMMANDS:
        what = getattr(importlib.import_module(command.module), command.what)
        if not isinstance(what, typer.Typer):
            assert (what.__doc__ or "").strip().split("\n")[0] == command.help, command.name


def test_a_full_disk_behind_the_output_is_no_mistake_of_ours():
    told = internal(OSError(errno.ENOSPC, "No space left on device"))
    assert "no space left" in str(told)
    assert told.exit_code == 5
    assert "internal error" in str(internal(OSError(errno.EIO, "Input/output error")))
