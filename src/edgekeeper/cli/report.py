"""``edgekeeper report LOGS...``: who was hurt, for how long, by what."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import complain, is_terminal, progress, progress_done, say, say_block, say_json
from edgekeeper.errors import EdgekeeperError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.report import ReportOf


class Output(StrEnum):
    """What ``-o`` takes here."""

    TEXT = "text"
    JSON = "json"
    MD = "md"


def report(
    ctx: typer.Context,
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOGS...", help="Access logs, drain logs, journals, probe recordings, drill results; files, folders, *, or - for standard input."
        ),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", metavar="NODE=FILE", help="A log and the machine whose clock wrote it; may be repeated.")
    ] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="A..B", help="What is reported on: 2026-09-07T04:48Z..05:12Z, or A+24m. [as the logs suggest]")
    ] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", metavar="A..B", help="The quiet time to compare with. [as long right before]")] = None,
    roll: Annotated[str | None, typer.Option("--roll", metavar="ID", help="The window of this roll, out of its journal.")] = None,
    against: Annotated[Path | None, typer.Option("--against", metavar="FILE", help="A former report (-o json) to compare with.")] = None,
    zone: Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="Time zone of stamps that have none: Europe/Berlin, +02:00. [UTC]")] = None,
    clock: Annotated[
        list[str] | None, typer.Option("--clock", metavar="NODE=183s", help="What to add to the stamps of a machine, where that is known.")
    ] = None,
    reference: Annotated[str | None, typer.Option("--reference", metavar="NODE", help="The machine whose clock the report goes by.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--class", metavar="NAME=NET[,NET]", help="A class of clients by where they come from; the first that fits counts.")
    ] = None,
    loki: Annotated[str | None, typer.Option("--loki", metavar="URL", help="Let this Loki count; needs --query and --window.")] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", metavar="SELECTOR", help='Which streams of it: {namespace="ingress", container="traefik"}; may be repeated.')
    ] = None,
    token_file: Annotated[Path | None, typer.Option("--loki-token-file", metavar="FILE", help="Bearer token for it.")] = None,
    tenant: Annotated[str | None, typer.Option("--loki-tenant", metavar="ID", help="Its X-Scope-OrgID, where it has several tenants.")] = None,
    ca_file: Annotated[Path | None, typer.Option("--loki-ca-file", metavar="FILE", help="CA of its certificate. [the system's]")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page too.")] = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="text, json or md.")] = Output.TEXT,
    cells_out: Annotated[
        Path | None,
        typer.Option("--cells-out", metavar="FILE", help="Keep what was counted, to be read again beside other logs (.jsonl; .parquet with edgekeeper[sql])."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql", metavar="QUERY", help="Ask this of the tables cells, minutes, latencies, marks, samples, sources, clients instead; needs edgekeeper[sql]."
        ),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, max=64, help="Processes that read. [one a core, 8 at most]")] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", metavar="EXPR", help="Exit 1 when true: outage.max > 5s, outages > 0, bad > 0.1%, budget > 10%.")
    ] = None,
) -> None:
    """Who was hurt, for how long, by what: out of logs and recordings.

    Formats are recognised by what the files hold, compressed or not. Durations come as bounds. Exit 1 when too much could not be read to judge.
    """
    from edgekeeper.cli import report_work as work
    from edgekeeper.measure.failif import REPORT, parse

    conditions = [parse(text, REPORT) for text in fail_if or []]
    said = _config(ctx)
    asked = work.Asked(
        logs=tuple(logs or ()),
        sources=tuple(source or ()),
        window=window,
        baseline=baseline,
        roll=roll or "",
        against=against,
        zone=zone or "",
        clocks=tuple(clock or ()),
        reference=reference or "",
        classes=tuple(group or ()),
        loki=work.Store(loki, tuple(query or ()), token_file, tenant, ca_file) if loki else None,
        jobs=jobs or 0,
    )
    if query and not loki:
        msg = "--query says which streams of a Loki; say --loki URL too"
        raise UsageError(msg)
    _alone(sql, html, against, fail_if)
    work.check(asked, html)
    book = work.gather(asked, said, progress if is_terminal_here() else None)
    progress_done()
    if cells_out is not None:
        complain(work.keep(book, cells_out))
    if sql is not None:
        work.ask(book, sql, as_json=output is Output.JSON)
        return
    made = work.judge(book, asked, said)
    if html is not None:
        complain(work.write_page(made, html))
    match output:
        case Output.JSON:
            from edgekeeper.report.pages.json import document

            say_json(document(made))
        case Output.MD:
            from edgekeeper.report.pages.markdown import render as markdown

            say_block(markdown(made))
        case Output.TEXT:
            from edgekeeper.report.pages.text import render as text

            say_block(text(made))
    broken = [c.text for c in conditions if work.holds(made, c)]
    for condition in broken:
        (complain if output is not Output.TEXT else say)(f"failed: {condition} is true")
    if broken or not made.can_judge:
        raise typer.Exit(EdgekeeperError.exit_code)


def _alone(sql: str | None, *others: object) -> None:
    if sql is not None and any(others):
        msg = "--sql answers in place of a report: --html, --fail-if and --against have nothing to say beside it; ask in two commands"
        raise UsageError(msg)


def is_terminal_here() -> bool:
    """Whether somebody watches standard error."""
    import sys

    return is_terminal(sys.stderr)


def _config(ctx: typer.Context) -> ReportOf:
    """The section of the config, where there is a config: a report needs none."""
    from edgekeeper.config.report import ReportOf

    loaded = settings(ctx).load_if_there()
    return loaded.root.report if loaded is not None else ReportOf.model_validate({})
