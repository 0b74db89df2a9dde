"""The architecture is a test: what the import contracts cannot say about the tree as it is."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_spec = importlib.util.spec_from_file_location("edgekeeper_map", ROOT / "script" / "_map.py")
assert _spec is not None
assert _spec.loader is not None
code_map = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(code_map)

# A file of one of these names promises to be pure, in whichever folder of these it stands.
PURE_NAMES = {
    "causes", "clocks", "debounce", "decide", "desired", "examine", "facts", "features", "fingerprint", "functions", "gates", "instances",
    "live", "logline", "lua", "names", "outages", "packet", "plan", "quote", "rebalance", "records", "referee", "render", "routing", "said", "sample", "seat",
    "select", "stats", "status", "target", "threshold", "topology", "view", "yaml",
}  # fmt: skip
EFFECTS = {"cli", "host", "kube"}  # folders of effects, where a name like "status" is a command
ALSO_PURE = {"edgekeeper.errors", "edgekeeper.lab.report", "edgekeeper.measure.report", "edgekeeper.ports"}
LIMIT = 400


def modules() -> dict[str, Path]:
    return code_map.modules()


def promised_pure() -> list[str]:
    found = []
    for module, path in modules().items():
        parts = module.split(".")
        folder = parts[1] if len(parts) > 1 else ""
        if folder in EFFECTS:
            continue
        says_so = re.search(r"\bPure\b", code_map.docstring(path)) is not None
        in_pure_folder = folder == "model" or (folder == "config" and path.stem != "load")
        if (says_so or path.stem in PURE_NAMES or in_pure_folder or module in ALSO_PURE) and module != "edgekeeper.config":
            found.append(module)
    if "edgekeeper.engines" in modules():
        found += [module for module in modules() if module.startswith("edgekeeper.engines.") and module.endswith(".engine")]
    return found


def test_every_module_that_promises_to_be_pure_is_held_to_it() -> None:
    missing = [module for module in promised_pure() if not code_map.is_pure(module)]
    assert not missing, "add these to contract 2 in pyproject.toml"
    assert len(promised_pure()) > 20


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    files = [*modules().values(), *(ROOT / "tests").rglob("*.py"), *(p for p in (ROOT / "script").iterdir() if p.is_file())]
    long = {str(path.relative_to(ROOT)): n for path in files if (n := len(path.read_text().splitlines())) > LIMIT}
    assert not long, f"cut these; the limit is {LIMIT} lines"


def test_every_module_says_what_it_is_for() -> None:
    silent = [module for module, path in modules().items() if not code_map.sentence(path)]
    assert not silent


def test_the_map_in_the_architecture_page_is_fresh() -> None:
    page = code_map.PAGE.read_text()
    assert page == code_map.page(page), "write it again with script/docs"


def test_every_top_level_name_has_its_layer() -> None:
    placed = {name for line in code_map.layers() for name in line}
    present = {module.split(".")[1] for module in modules() if "." in module} - {"__main__"}
    assert present == placed


def test_no_layer_is_called_optional_once_it_exists() -> None:
    lines = code_map.contract("layers")["layers"]
    optional = {part.strip()[1:-1] for line in lines for part in line.split("|") if part.strip().startswith("(")}
    present = {module.split(".")[1] for module in modules() if "." in module}
    assert not optional & present, "take the parentheses away in contract 1: a layer that exists must not vanish unseen"


@pytest.mark.parametrize(
    ("pattern", "module", "expected"),
    [
        ("edgekeeper.model", "edgekeeper.model.time", True),
        ("edgekeeper.model", "edgekeeper.modelling", False),
        ("edgekeeper.engines.*.yaml", "edgekeeper.engines.dnsdist.yaml", True),
        ("edgekeeper.engines.*.yaml", "edgekeeper.engines.dnsdist.deep.yaml", False),
        ("edgekeeper.**.topology", "edgekeeper.engines.dnsdist.topology", True),
        ("edgekeeper.**.topology", "edgekeeper.lab.topology", True),
        ("edgekeeper.**.topology", "edgekeeper.lab.netns", False),
    ],
)
def test_patterns_match_as_the_linter_matches_them(pattern: str, module: str, expected: bool) -> None:
    assert code_map.matches(pattern, module) is expected


def test_every_ignored_lint_rule_has_its_reason() -> None:
    bare = []
    inside = False
    for line in (ROOT / "pyproject.toml").read_text().splitlines():
        if line.startswith("[tool.ruff.lint"):
            inside = True
        elif line.startswith("["):
            inside = False
        if inside and line.startswith('  "') and "#" not in line:
            bare.append(line.strip())
    assert not bare


def test_the_runtime_needs_are_those_of_the_lock_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = {line.split("==")[0] for line in (ROOT / "requirements" / "run.txt").read_text().splitlines() if "==" in line}
    named = {need.split(">=")[0].replace(".", "-") for need in project["dependencies"]}
    assert named <= locked, "write the lock files again with script/lock"


def test_lock_files_name_no_address_and_no_package_without_digest() -> None:
    for kind in ("run", "dev"):
        text = (ROOT / "requirements" / f"{kind}.txt").read_text()
        assert "://" not in text
        lines = text.splitlines()
        packages = [n for n, line in enumerate(lines) if "==" in line and not line.lstrip().startswith("--hash")]
        assert packages
        assert all(lines[n + 1].lstrip().startswith("--hash=sha256:") for n in packages)
