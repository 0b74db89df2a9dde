"""The scripts and the pages that name them, as text; that they work is for whoever runs them on a bare machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted(path for path in (ROOT / "script").iterdir() if path.is_file() and path.suffix != ".py")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_says_at_its_top_what_it_does(path: Path) -> None:
    lines = path.read_text().splitlines()
    if not path.name.startswith("_"):
        assert lines[0] == "#!/bin/sh", "plain sh: there is nothing to install first"
        assert path.stat().st_mode & 0o111, "chmod +x"
        lines = lines[1:]
    assert re.match(r"# [A-Z].{20,}", lines[0])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_stops_at_its_first_mistake(path: Path) -> None:
    text = path.read_text()
    sourced = path.name.startswith("_") and path.name != "_env"  # a part of the script that reads it
    assert sourced or "set -eu" in text or '. "$(dirname "$0")/_env"' in text


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", ".ci/run", "docs/architecture.md"])
def test_a_page_names_only_scripts_that_exist(page: str) -> None:
    named = set(re.findall(r"\bscript/([a-z_-]+)\b", (ROOT / page).read_text()))
    missing = {name for name in named if not (ROOT / "script" / name).exists()}
    assert not missing


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"])
def test_a_page_links_only_to_what_exists(page: str) -> None:
    folder = (ROOT / page).parent
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text())
    assert [link for link in links if not (folder / link).exists()] == []


def test_nothing_is_installed_without_a_digest() -> None:
    for path in SCRIPTS:
        for line in path.read_text().splitlines():
            if "pip" in line and " install " in line and not line.lstrip().startswith("#") and path.name != "lock":
                assert "--require-hashes" in line or "--no-index" in line, f"{path.name}: {line.strip()}"
