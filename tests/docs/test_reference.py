"""The pages in docs/reference say what the code says; the blocks in all pages are configs and command lines that work."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from edgekeeper.cli.main import global_options_first
from edgekeeper.cli.root import build
from edgekeeper.config.dns import MemberEntry
from edgekeeper.config.load import parse
from edgekeeper.config.members import parse_members

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONTINUED = re.compile(r"\\\n\s*")


def blocks(*languages: str) -> list[Any]:
    found = []
    for page in PAGES:
        for number, block in enumerate(BLOCK.finditer(page.read_text())):
            if block[1] in languages:
                found.append(pytest.param(block[2], id=f"{page.relative_to(ROOT)}-{number}"))
    return found


def command_lines(text: str) -> list[str]:
    """The lines of a shell block that call edgekeeper, without their prompt and comment."""
    lines = [line.strip().removeprefix("$ ").removeprefix("sudo ") for line in CONTINUED.sub(" ", text).splitlines()]
    return [line for line in lines if line.startswith("edgekeeper ")]


def test_the_reference_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("edgekeeper_docs", ROOT / "script" / "docs.py")
    assert spec is not None
    assert spec.loader is not None
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    assert [path.name for path in docs.stale()] == [], "run script/docs"


@pytest.mark.parametrize("text", blocks("yaml", "yml"))
def test_a_config_in_the_docs_is_a_config(text: str) -> None:
    """A block that begins with ``members:`` is a members file; one of another program names it in its first line (``# compose.yaml``)."""
    first = text.splitlines()[0]
    if re.match(r"# \S+\.ya?ml", first) and "edge" not in first and "members" not in first:
        pytest.skip(f"another program's file: {first}")
    if re.search(r"^members:", text, re.MULTILINE):
        parse_members(text, "docs", MemberEntry)
    else:
        parse(text, "docs")


@pytest.mark.parametrize("text", blocks("sh", "bash", "shell", "console"))
def test_a_command_line_in_the_docs_is_one(text: str) -> None:
    root = typer.main.get_command(build(None, everything=True))
    silence(root)
    for line in command_lines(text):
        words = shlex.split(line.split(" | ")[0].split(" > ")[0].split(" && ")[0], comments=True)[1:]
        root.main(global_options_first(words), prog_name="edgekeeper", standalone_mode=False)


def silence(command: Any) -> None:
    """Let every command parse its words and do nothing."""
    command.callback = None
    for below in getattr(command, "commands", {}).values():
        silence(below)


def test_the_command_check_sees_a_wrong_option() -> None:
    root = typer.main.get_command(build(None, everything=True))
    silence(root)
    with pytest.raises(Exception, match="No such option"):
        root.main(["check", "--nonsense"], prog_name="edgekeeper", standalone_mode=False)
