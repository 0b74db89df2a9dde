"""Writes the map of the code into docs/architecture.md: the layers from the import contracts, the modules with their first sentence.

``--check`` changes nothing and exits 1 when the page is stale. Everything is read from pyproject.toml and src/.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "edgekeeper"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- map: written by script/docs from the import contracts, do not edit -->"
END = "<!-- end of map -->"


@functools.cache
def contract(kind: str, root: Path = ROOT) -> dict[str, object]:
    """The import contract of a type (layers, forbidden, ...), the first one where there are several."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    return next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == kind)


def layers() -> list[list[str]]:
    """The layers, top first; those that are optional and absent are left out."""
    lines = [[name.strip(" ()") for name in re.split(r"[|:]", line)] for line in contract("layers")["layers"]]
    present = [[name for name in line if (PACKAGE / name / "__init__.py").exists() or (PACKAGE / f"{name}.py").exists()] for line in lines]
    return [line for line in present if line]


def matches(pattern: str, module: str) -> bool:
    """Whether a module is one that the pattern of a contract names, or lies below one."""
    parts = [r".+" if part == "**" else r"[^.]+" if part == "*" else re.escape(part) for part in pattern.split(".")]
    return re.fullmatch(r"\.".join(parts) + r"(\..+)?", module) is not None


@functools.cache
def is_pure(module: str) -> bool:
    """Whether the purity contract holds for a module (given with its full name)."""
    return any(matches(pattern, module) for pattern in contract("forbidden")["source_modules"])


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its full name; a folder is named without ``__init__``."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["edgekeeper", *path.relative_to(PACKAGE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def docstring(path: Path) -> str:
    """A module's docstring; empty when it has none."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def sentence(path: Path) -> str:
    """The first paragraph of a module's docstring, up to its first full stop."""
    text = docstring(path)
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split())
    return re.split(r"(?<=[a-z0-9)`])\.(?:\s|$)", first, maxsplit=1)[0].rstrip(".").replace("|", "\\|")


def render() -> str:
    """The generated part of the page."""
    everything = modules()
    out = [BEGIN, "", "```"]
    out += [" | ".join(line) for line in layers()]
    out += ["```", "", "| module | what it is for |", "| --- | --- |"]
    for name in (name for line in layers() for name in line):
        full = f"edgekeeper.{name}"
        for module, path in everything.items():
            if module == full or module.startswith(full + "."):
                short = module.removeprefix("edgekeeper.")
                label = f"**{short}/**" if path.name == "__init__.py" else short
                out.append(f"| {label}{' ◇' if is_pure(module) and path.name != '__init__.py' else ''} | {sentence(path)} |")
    out += ["", END]
    return "\n".join(out)


def page(old: str) -> str:
    """The page with its generated part made anew."""
    head, _, rest = old.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + render() + tail


def main() -> int:
    """Write the page, or with ``--check`` say whether it is stale."""
    old = PAGE.read_text()
    new = page(old)
    if old == new:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{PAGE.relative_to(ROOT)} is stale; write it again with script/docs")
        return 1
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
