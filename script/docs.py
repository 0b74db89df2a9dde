"""Write docs/reference and docs/checks from the code: the config's keys, the commands, the events, the doctor's checks.

Run it with the project's Python (``script/docs`` does); ``--check`` writes nothing and exits 1 when a
page is stale. A test does the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from edgekeeper.cli.root import build
from edgekeeper.config.describe import parts
from edgekeeper.config.root import RESERVED
from edgekeeper.doctor.checks import CHECKS
from edgekeeper.log import Event

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by script/docs from the code; change it there. -->\n\n"
WIDTH = "100"


def config_page() -> str:
    """Every key of the config file: kind, default, meaning."""
    out = [
        NOTE,
        "# The config file\n\n",
        (
            "One YAML file (1.2: `off` and `no` are text), named by `--config`, else `./edgekeeper.yaml`, else `/etc/edgekeeper/edgekeeper.yaml`.\n"
            "An unknown key is an error, and all mistakes are told at once as `file:line:column`. `edgekeeper check --defaults` prints the defaults\n"
            "that are in force, `edgekeeper schema` a JSON schema for editors.\n\n"
            "A *duration* is written `250ms`, `90s`, `5m` or `1h30m`. A *member* is written `[name=]host[:port]`, or as a mapping.\n"
            "A *listener* is `192.0.2.1:53` or `[2001:db8::1]:53`. *Secrets* stand in files that only their owner may read, or in the environment;\n"
            "never in this file.\n\n"
            f"Sections of later versions ({', '.join(f'`{name}`' for name in RESERVED)}) are known by name and refused.\n"
        ),
    ]
    for part in parts():
        title = f"`{part.path}`" if part.path else "Top level"
        out.append(f"\n## {title}\n\n{_sentence(part.what)}\n\n| key | kind | default | meaning |\n| --- | --- | --- | --- |\n")
        for key in part.keys:
            default = "**must be given**" if key.required else f"`{key.default}`" if key.default not in {"", "not set"} else key.default
            name = key.path.removeprefix(f"{part.path}.") if part.path else key.path
            out.append(f"| `{name}` | {_cell(key.kind)} | {_cell(default)} | {_cell(key.why)} |\n")
    return "".join(out)


def cli_page() -> str:
    """The help of every command."""
    root = typer.main.get_command(build(None, everything=True))
    out = [
        NOTE,
        "# Commands\n\n",
        (
            "Errors are one line on standard error. Exit codes:\n\n"
            "| code | meaning |\n| --- | --- |\n"
            "| 0 | done |\n"
            "| 1 | findings, changes wanted, or a promise broken |\n"
            "| 2 | the command line or the config is wrong |\n"
            "| 3 | refused for safety |\n"
            "| 4 | somebody else holds the lock |\n"
            "| 5 | a step failed or timed out; doing it again is safe |\n"
            "| 6 | something needed is missing or cannot be reached |\n"
            "| 7 | aborted by the user |\n"
        ),
    ]
    for path, text in _helps(root, "edgekeeper"):
        out.append(f"\n## `{path}`\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(out)


def events_page() -> str:
    """The closed list of events."""
    rows = "".join(f"| `{event}` | {_cell(event.meaning)} |\n" for event in Event)
    return (
        f"{NOTE}# Events\n\n"
        "Every log line names one of these, and so does every entry of the journal (`edgekeeper history`). The words are kept: alerts may match them.\n\n"
        'A JSON log line: `{"ts", "level", "event", "why", "node", "data"}`. A journal line:\n'
        '`{"schema": 1, "ts", "mono", "node", "role", "event", "object", "decision", "why", "data"}`.\n\n'
        f"| event | meaning |\n| --- | --- |\n{rows}"
    )


def checks_page() -> str:
    """The list of the doctor's checks."""
    rows = "".join(f"| [{check.id}]({check.id}.md) | {check.severity} | {_cell(check.title)} | {check.needs} |\n" for check in CHECKS)
    return (
        f"{NOTE}# Checks\n\n"
        "`edgekeeper audit haproxy.cfg` asks those of HAP of a configuration, and with `--socket` of the running HAProxy; `edgekeeper audit` with the\n"
        "`keepalived.conf` of each host asks those of VRP of all hosts together. Nothing is written. `edgekeeper audit --explain HAP001` prints a page.\n"
        "CRIT: clients are hurt now; HIGH: the next single failure hurts; WARN; INFO; UNKNOWN: could not be read, so neither found nor passed.\n"
        "Exit 1 on any of WARN or worse (`--fail-on`).\n\n"
        f"| id | worst | title | looks at |\n| --- | --- | --- | --- |\n{rows}"
    )


PAGES = {"config.md": config_page, "cli.md": cli_page, "events.md": events_page}


def pages() -> dict[Path, str]:
    """Every generated page with the text that it should have."""
    os.environ["COLUMNS"] = WIDTH  # what help is wrapped to
    reference = {ROOT / "docs" / "reference" / name: make() for name, make in PAGES.items()}
    checks = {ROOT / "docs" / "checks" / f"{check.id}.md": NOTE + check.markdown() for check in CHECKS}
    return reference | checks | {ROOT / "docs" / "checks" / "README.md": checks_page()}


def stale() -> list[Path]:
    """The pages whose file says something else than the code, and those of checks that are gone."""
    wanted = pages()
    gone = [path for path in (ROOT / "docs" / "checks").glob("*.md") if path not in wanted]
    return gone + [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def _helps(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    names = command.context_settings.get("help_option_names", parent.help_option_names if parent else None)
    context = command.context_class(command, info_name=path.rsplit(" ", 1)[-1], parent=parent, terminal_width=int(WIDTH), help_option_names=names)
    yield path, command.get_help(context)
    for name in getattr(command, "commands", {}):
        yield from _helps(command.commands[name], f"{path} {name}", context)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _sentence(text: str) -> str:
    return text.replace("``", "`")


def main() -> int:
    """Write the pages, or say which are stale."""
    found = stale()
    if "--check" in sys.argv[1:]:
        for path in found:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale; run script/docs\n")
        return 1 if found else 0
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
