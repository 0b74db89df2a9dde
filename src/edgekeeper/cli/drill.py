"""``edgekeeper drill list|run``: break real engines in network namespaces and keep a promise."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.output import Cell, Format, Tone, complain, progress, progress_done, say, say_block, say_json, table
from edgekeeper.errors import AbortedError, EdgekeeperError, MissingError, UsageError

if TYPE_CHECKING:
    from edgekeeper.lab.referee import Promise
    from edgekeeper.lab.report import CaseResult, DrillResult

app = typer.Typer()


@app.command("list")
def list_(output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT) -> None:
    """Name the drills, their cases and what each promises."""
    from edgekeeper.lab.drills import DRILLS

    rows = [(f"{d.name}/{c.name}", c.about, "; ".join(_promise(p) for p in c.promises)) for d in DRILLS.values() for c in d.cases]
    if output is Format.JSON:
        say_json({"drills": [{"drill": name, "about": about, "promises": promises} for name, about, promises in rows]})
        return
    table(("DRILL/CASE", "WHAT HAPPENS", "PROMISE"), rows)


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Drills, or drill/case.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All drills.")] = False,
    baseline: Annotated[bool, typer.Option("--baseline", help="The same fault against the engine without edgekeeper, too.")] = False,
    suites: Annotated[
        str | None, typer.Option("--engines", metavar="SUITES", help="debian12,debian13,testing or host; the newest in the cache when not said.")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=100, help="Runs of each case; medians are shown.")] = 1,
    ci: Annotated[bool, typer.Option("--ci", help="Only the subset and the short forms that every change runs.")] = False,
    record: Annotated[Path | None, typer.Option("--record", metavar="DIR", help="Keep configs, logs and records of every run here.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write what the clients saw as one self-contained page.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results here as JSON.")] = None,
    policy: Annotated[str, typer.Option("--policy", help="dnsdist's, on both sides: chashed or leastOutstanding.")] = "chashed",
) -> None:
    """Run drills; exit 0 when every promise was kept, 1 when one was broken, 6 when an engine is missing."""
    import asyncio
    import json

    from edgekeeper.cli.report_work import page_may_be
    from edgekeeper.lab import rights
    from edgekeeper.lab.report import drill_json
    from edgekeeper.lab.run import Options, chosen
    from edgekeeper.lab.run import run as run_all

    if policy not in ("chashed", "leastOutstanding"):
        msg = f"--policy {policy}: write chashed or leastOutstanding"
        raise UsageError(msg)
    picks = chosen(names or [], everything=everything)
    if html is not None:
        page_may_be(html)  # said before minutes of drills, not after them
    wanted = tuple(s for s in (suites or "").split(",") if s)
    kept = contextlib.ExitStack()
    folder = record if record is not None or html is None else Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="edgekeeper-drill-")))
    options = Options(wanted, baseline=baseline, repeat=repeat, ci=ci, record=folder, policy=policy)
    if not rights.is_root():
        asyncio.run(rights.become_root_inside())

    def save(so_far: tuple[DrillResult, ...]) -> None:
        if json_file is not None:
            documents = [drill_json(r) for r in so_far]
            json_file.write_text(json.dumps(documents[0] if len(documents) == 1 else documents, indent=1) + "\n", encoding="utf-8")

    with kept:
        try:
            results = asyncio.run(run_all(picks, options, _say, save))
        except asyncio.CancelledError:
            msg = "stopped; what was built is taken down again"
            raise AbortedError(msg) from None
        progress_done()
        if html is not None and folder is not None:
            complain(_page(folder, html))
    _show(results)
    raise typer.Exit(_exit_code(results))


def _page(folder: Path, html: Path) -> str:
    """Write the report of what was recorded."""
    from edgekeeper.cli import report_work as work
    from edgekeeper.config.report import ReportOf

    asked, said = work.Asked(logs=(str(folder),)), ReportOf.model_validate({})
    return work.write_page(work.judge(work.gather(asked, said, None), asked, said), html)


def _say(text: str) -> None:
    from edgekeeper.cli.output import is_terminal

    if is_terminal():
        progress(text)
    else:
        complain(text)


def _show(results: tuple[DrillResult, ...]) -> None:
    from edgekeeper.lab.report import HEAD, case_row

    cases = [c for r in results for c in r.cases]
    if len(cases) <= 2:
        for case in cases:
            _show_timeline(case)
    rows: list[list[str | Cell]] = []
    for case in cases:
        row = case_row(case)
        tone = {"kept": Tone.GOOD, "BROKEN": Tone.BAD, "missing": Tone.DOUBT}.get(row[3], Tone.DIM)
        rows.append([*row[:3], Cell(row[3], tone), *row[4:]])
    table(HEAD, rows)
    say("")
    for case in cases:
        say(f"{case.drill}/{case.case} on {case.version}: {case.why}")


def _show_timeline(case: CaseResult) -> None:
    from edgekeeper.lab.engines import TITLES

    engine = f"{TITLES[case.engine]} {case.version}"
    for who, runs in ((f"plain {engine}", case.plain), (f"edgekeeper with {engine}", case.runs)):
        if not runs:
            continue
        say(f"{case.drill}/{case.case}, {who}")
        say_block("\n".join(f"  {at:7.2f} s  {what}" for at, what in runs[-1].timeline))
        say("")


def _promise(promise: Promise) -> str:
    from edgekeeper.lab.referee import number

    limit = f"{promise.limit * 100:g} %" if promise.share_of else f"{number(promise.limit)} {promise.unit}"
    since = f" (from {'.'.join(str(n) for n in promise.since)})" if promise.since else ""
    return f"{promise.what}: at most {limit}{since}"


def _exit_code(results: tuple[DrillResult, ...]) -> int:
    cases = [c for r in results for c in r.cases]
    if any(not c.kept and not c.missing for c in cases):
        return EdgekeeperError.exit_code
    return MissingError.exit_code if any(c.missing for c in cases) else 0
