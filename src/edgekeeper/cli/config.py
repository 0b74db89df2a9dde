"""``edgekeeper init``, ``check`` and ``schema``: before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Format, complain, say, say_block, say_json, table
from edgekeeper.errors import MissingError, RefusedError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.load import Loaded


def init(
    ctx: typer.Context,
    role: Annotated[str, typer.Option("--role", metavar="ROLES", help="Roles to start with, separated by commas: dns, vip, lb; with --pair dns,vip.")] = "",
    pair: Annotated[
        str | None, typer.Option("--pair", metavar="NAME=ADDRESS,...", help="Two nodes or more that hear each other: the files of all, with certificates.")
    ] = None,
    directory: Annotated[str, typer.Option("--dir", metavar="DIR", help="With --pair: a new folder for them.")] = "edgekeeper-pair",
    etc: Annotated[str, typer.Option("--etc", metavar="DIR", help="With --pair: where the files will lie on the nodes.")] = "/etc/edgekeeper",
) -> None:
    """Write a commented starter edgekeeper.yaml.

    It goes to --config, else to ./edgekeeper.yaml; a file that is there is never overwritten.
    """
    from edgekeeper.cli.starter import SECTIONS, starter

    roles = (role or ("dns,vip" if pair else "dns")).split(",")
    unknown = [name for name in roles if name not in SECTIONS]
    if unknown:
        msg = f"role {unknown[0]!r} cannot be run by this version; it runs {', '.join(SECTIONS)}"
        raise UsageError(msg)
    if pair is not None:
        from edgekeeper.cli.pair import read_pair, write_pair

        write_pair(read_pair(pair), roles, directory, etc)
        return
    path = Path(settings(ctx).config or "edgekeeper.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starter(roles))
    except FileExistsError as err:
        msg = f"{path} is there already; nothing was written, name another with --config"
        raise RefusedError(msg) from err
    except OSError as err:
        msg = f"{path} cannot be written: {err.strerror or err}; name another with --config"
        raise MissingError(msg) from err
    say(f"{path} is written; fill in what is yours, then: edgekeeper check {path}")


def check(
    ctx: typer.Context,
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="The config; else --config, else the usual places.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when there is a warning.")] = False,
    defaults: Annotated[bool, typer.Option("--defaults", help="Also print every key that is left to its default, and why.")] = False,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """Validate the config, render every engine, ask its real validator; change nothing.

    What cannot be judged on this machine (an address of another node, say) is a warning.
    """
    chosen = settings(ctx)
    loaded = chosen.load(config)
    node = chosen.this_node(loaded)
    told = _judge(loaded, node)
    if output is Format.JSON:
        document: dict[str, object] = {"config": loaded.file, "node": node, "accepted": told.accepted, "notes": told.notes, "warnings": told.warnings}
        if defaults:
            document["defaults"] = [{"key": key, "value": value, "why": why} for key, value, why in _defaults(loaded)]
        say_json(document)
    else:
        if defaults:
            table(("KEY", "DEFAULT", "WHAT AND WHY"), _defaults(loaded))
            say("")
        say(*told.accepted, *(f"note: {note}" for note in told.notes))
        complain(*(f"warning: {warning}" for warning in told.warnings))
    if told.warnings and strict:
        raise typer.Exit(1)


def schema() -> None:
    """Print the config's JSON schema, for editors."""
    import json

    from edgekeeper.config.describe import schema as document

    say_block(json.dumps(document(), indent=2))


def _defaults(loaded: Loaded) -> list[tuple[str, str, str]]:
    from edgekeeper.config.describe import unset
    from edgekeeper.watch.presets import merged

    root = loaded.root
    if root.watch is not None:  # what a preset fills in is not left to a default
        root = root.model_copy(update={"watch": tuple(map(merged, root.watch))})
    return [(key.path, value, key.why) for key, value in unset(root)]


@dataclass(frozen=True, slots=True)
class _Told:
    """What a check found: sentences of what was accepted, of what the engine does without, and of what is in doubt."""

    accepted: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def _judge(loaded: Loaded, node: str) -> _Told:
    """Ask every engine; UsageError when one refuses."""
    import asyncio

    from edgekeeper.cli.preflight import engine_verdicts, warnings

    valid = f"{loaded.file}: valid for node {node}"
    doubts = tuple(warnings(loaded.root, node))
    verdicts = asyncio.run(engine_verdicts(loaded.root, node))
    if not verdicts:
        return _Told((valid, "no role is configured for this node; add dns:, vip:, lb:, watch: or expose:"), (), doubts)
    refused = [f"{role}: {verdict.engine}: {verdict.refusal}; nothing was changed" for role, verdict in verdicts.items() if verdict.refusal]
    if refused:
        raise UsageError("\n".join(refused))
    accepted = tuple(f"{role}: {verdict.engine} accepts the rendered configuration" for role, verdict in verdicts.items() if verdict.engine)
    notes = tuple(note for verdict in verdicts.values() for note in verdict.notes)
    return _Told((valid, *accepted), notes, (*doubts, *(doubt for verdict in verdicts.values() for doubt in verdict.doubts)))
