"""The proxy that wedges on command: what it writes, and what of it is a client's."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from edgekeeper.lab import wedge
from edgekeeper.lab.drills import watch_lines
from edgekeeper.lab.wedge import decoded


def test_a_path_is_logged_decoded_so_that_a_client_can_write_a_line_of_its_own() -> None:
    inside, whole = (decoded(path.encode()) for path in watch_lines.PATHS)
    assert wedge.FINGERPRINT in inside
    assert "\n" not in inside
    first, second = whole.split("\n")
    assert first == "/x"
    assert second.split(" ", 2)[1:] == ["WARN", wedge.SAYS]


def test_what_is_no_code_of_a_byte_is_left_as_it_came() -> None:
    assert decoded(b"/100%/%zz/%+4/%4") == "/100%/%zz/%+4/%4"
    assert decoded(b"/a%2Fb%00") == "/a/b\0"


def test_it_needs_the_standard_library_alone() -> None:
    """It is bound into containers that have nothing else, and started without the site module."""
    tree = ast.parse(Path(wedge.__file__).read_text(encoding="utf-8"))
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names} | {
        n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)
    }
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
