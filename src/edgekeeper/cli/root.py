"""The root command: the list of commands, the options that all of them have, and how one is run.

Only the called command's module is imported; the others are known by name and sentence.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from edgekeeper import __version__
from edgekeeper.cli.context import Settings
from edgekeeper.cli.output import careful_streams, say
from edgekeeper.errors import AbortedError, UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, the module and what in it (a function, or a Typer app with commands of its own), and one sentence."""

    name: str
    module: str
    what: str
    help: str


COMMANDS = (
    Command("init", "edgekeeper.cli.config", "init", "Write a commented starter edgekeeper.yaml."),
    Command("check", "edgekeeper.cli.config", "check", "Validate the config, render every engine, ask its real validator; change nothing."),
    Command("schema", "edgekeeper.cli.config", "schema", "Print the config's JSON schema, for editors."),
    Command("run", "edgekeeper.cli.run", "run", "Run all roles that are configured for this node, in one process."),
    Command("status", "edgekeeper.cli.status", "status", "One table of what each node says of itself."),
    Command("history", "edgekeeper.cli.status", "history", "The journal of this node: what acted, what was held back, and why."),
    Command("dns", "edgekeeper.cli.dns", "app", "dnsdist under supervision."),
    Command("vip", "edgekeeper.cli.vip", "app", "keepalived under supervision: hand-overs that lose nothing, and who holds a VIP."),
    Command("lb", "edgekeeper.cli.lb", "app", "HAProxy under supervision, and no client left on a dead server."),
    Command("watch", "edgekeeper.cli.watch", "app", "Watchdogs: a log line arms, a probe confirms, nothing suppressed is forgotten."),
    Command("expose", "edgekeeper.cli.expose", "app", "Hosts of the cluster, published through the mesh's reverse proxy; nothing deleted on doubt."),
    Command("audit", "edgekeeper.cli.audit", "audit", "What will hurt in somebody's own configuration, with the sum in seconds; nothing is written."),
    Command("probe", "edgekeeper.cli.probe", "probe", "An outage meter for your terminal."),
    Command("report", "edgekeeper.cli.report", "report", "Who was hurt, for how long, by what: out of logs and recordings."),
    Command("drill", "edgekeeper.cli.drill", "app", "Break real engines in network namespaces and keep a promise."),
)


class LogFormat(StrEnum):
    """What ``--log-format`` takes."""

    JSON = "json"
    TEXT = "text"


_INTERRUPTED = 130
"""What Typer turns a KeyboardInterrupt into."""


def run_command(words: Sequence[str]) -> int:
    """Run a command line whose root options stand first; UsageError for a wrong one, the command's exit code otherwise."""
    careful_streams()
    app = build(_called(words))
    try:
        code = app(args=list(words) or ["--help"], prog_name="edgekeeper", standalone_mode=False)
    except TyperException as err:
        raise UsageError(_one_line(err)) from err
    except typer.Abort:
        msg = "aborted; what was done stays done"
        raise AbortedError(msg) from None
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if not words:
        return UsageError.exit_code
    return code if isinstance(code, int) else 0


def build(called: str | None, *, everything: bool = False) -> typer.Typer:
    """The Typer app with the called command in it; the others only by their sentence, unless ``everything`` is wanted."""
    app = typer.Typer(
        name="edgekeeper",
        help="Keep a self-hosted network edge answering, and measure how long clients were hurt.",
        epilog="The options above may stand anywhere on the line. Exit codes: 0 done, 1 findings or a broken promise, 2 usage or config, "
        "3 refused for safety, 4 lock held, 5 a step failed, 6 something is missing, 7 aborted.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_options)
    for command in COMMANDS:
        if everything or command.name == called:
            _add(app, command)
        elif find_spec(command.module):
            app.command(command.name, help=command.help)(_elsewhere)
    return app


def _add(app: typer.Typer, command: Command) -> None:
    """Import a command's module and hang it into the app."""
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as err:
        if err.name != command.module:
            raise
        return
    what: Any = getattr(module, command.what)
    if isinstance(what, typer.Typer):
        app.add_typer(what, name=command.name, help=command.help)
    else:
        function: Callable[..., Any] = what
        app.command(command.name)(function)


def _called(words: Sequence[str]) -> str | None:
    """The first word that is a command's name; for shell completion, the one on the line that is completed."""
    if "_EDGEKEEPER_COMPLETE" in os.environ:
        words = os.environ.get("COMP_WORDS", "").split() or os.environ.get("_TYPER_COMPLETE_ARGS", "").split()
    names = {command.name for command in COMMANDS}
    return next((word for word in words if word in names), None)


def _one_line(err: TyperException) -> str:
    """A wrong command line in one sentence, with the help to read."""
    text = err.format_message().rstrip(".").replace("\n", " ")
    ctx = getattr(err, "ctx", None)
    path = ctx.command_path if ctx is not None else "edgekeeper"
    return f"{text[:1].lower()}{text[1:]}; `{path} --help` says what it takes"


def _elsewhere() -> None:
    """Stands for a command that another command line would import."""


def _version(asked: bool) -> None:
    if asked:
        say(f"edgekeeper {__version__}")
        raise typer.Exit


def _options(
    ctx: typer.Context,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="The config; else ./edgekeeper.yaml, else /etc/edgekeeper/edgekeeper.yaml.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="NAME", help="Which node of the config this is; else node:, else the host name.")] = None,
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How logs are written.")] = LogFormat.JSON,
    debug: Annotated[bool, typer.Option("--debug", help="Log more, and show where an error came from.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    ctx.obj = Settings(config, node, log_format.value, debug)
    ctx.obj.start_logging()
    del version
