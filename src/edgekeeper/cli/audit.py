"""``edgekeeper audit FILE...``: what will hurt in somebody's own configuration. Reads, and writes nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.output import complain, say, say_block, say_json, table
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgekeeper.doctor.examine import Examined
    from edgekeeper.doctor.facts import HaproxyFacts
    from edgekeeper.model.finding import Finding, Severity


class Output(StrEnum):
    """What ``-o`` takes here."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


class FailOn(StrEnum):
    """What ``--fail-on`` takes."""

    CRIT = "CRIT"
    HIGH = "HIGH"
    WARN = "WARN"
    INFO = "INFO"
    UNKNOWN = "UNKNOWN"


def audit(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="haproxy.cfg; several are one configuration, as for haproxy -f A -f B; a folder: its *.cfg.")
    ] = None,
    socket: Annotated[str | None, typer.Option("--socket", metavar="PATH", help="Look at the running HAProxy too: its stats or master socket.")] = None,
    api_backend: Annotated[
        list[str] | None, typer.Option("--api-backend", metavar="NAME", help="A backend of kube-apiservers that its port (6443) does not tell.")
    ] = None,
    output: Annotated[Output, typer.Option("-o", "--output", help="text, json or sarif.")] = Output.TEXT,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="Exit 1 when something is as bad as this, or worse.")] = FailOn.WARN,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="ID", help="Only these checks; HAP means all that begin so.")] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", metavar="ID", help="Not these checks.")] = None,
    explain: Annotated[str | None, typer.Option("--explain", metavar="ID", help="Print what a check looks for, why it hurts and how to fix it.")] = None,
) -> None:
    """What will hurt in somebody's own configuration, with the sum in seconds; nothing is written.

    Findings come worst first, with the line to add and where. Exit 1 when there are any of WARN or worse (--fail-on).
    """
    import asyncio

    from edgekeeper.doctor.collect import collect, configurations
    from edgekeeper.doctor.examine import examine, in_order
    from edgekeeper.host.clock import SystemClock

    if explain is not None:
        _explain(explain)
        return
    _known([*(only or ()), *(skip or ())])
    if "" in (files or ()):
        msg = "a file without a name is given (an empty variable?); nothing was judged, name a haproxy.cfg"
        raise UsageError(msg)
    if not files and socket is None:
        msg = "no file is named; name a haproxy.cfg, or a running HAProxy with --socket"
        raise UsageError(msg)
    found = configurations(files or [])
    if socket is not None and len(found) > 1:
        msg = f"{len(found)} configurations are named and one --socket; name the files of the HAProxy behind it"
        raise UsageError(msg)
    judged: list[tuple[HaproxyFacts, Examined]] = []
    for sources in found or ((),):
        facts = asyncio.run(collect(sources, socket=socket, api_backends=api_backend or (), clock=SystemClock()))
        judged.append((facts, examine(facts, only=only or (), skip=skip or ())))
    _same_names(judged, api_backend or [])
    findings = in_order(finding for _, examined in judged for finding in examined.findings)
    names = [source.name for sources in found for source in sources]
    _SHOW[output](names, judged, findings)
    _end(judged, findings, fail_on, nothing_read=not names)


def _end(judged: Sequence[tuple[HaproxyFacts, Examined]], findings: Sequence[Finding], fail_on: FailOn, *, nothing_read: bool) -> None:
    """The exit code: 6 when nothing could be read, 1 when there is something as bad as was asked."""
    from edgekeeper.doctor.examine import is_failure
    from edgekeeper.doctor.facts import Unknown
    from edgekeeper.model.finding import Severity

    runtime = judged[0][0].runtime
    if nothing_read and isinstance(runtime, Unknown):
        raise MissingError(runtime.reason)
    worst: Severity = Severity(fail_on.value)
    if is_failure(findings, worst):
        raise typer.Exit(EdgekeeperError.exit_code)


def _text(names: Sequence[str], judged: Sequence[tuple[HaproxyFacts, Examined]], findings: Sequence[Finding]) -> None:
    from edgekeeper.doctor.facts import HaproxyRuntime
    from edgekeeper.doctor.report import HEAD, lines, row, summary

    say(*lines(findings))
    rows = [row(found) for _, examined in judged for found in examined.detections]
    if rows:
        table(HEAD, rows)
        say("")
    for facts, _ in judged:
        if isinstance(facts.runtime, HaproxyRuntime):
            complain(*(f"not seen: {sentence}" for sentence in facts.runtime.blind))
    for ids, why in _not_judged(judged):
        say(f"not judged: {', '.join(ids)} ({why})" if ids else f"not judged: {why}")
    many = f"{len(names)} files in {len(judged)} configurations" if len(judged) > 1 else ", ".join(names) or "the running HAProxy"
    say(f"{many}: {summary(findings)}" + (f"; `edgekeeper audit --explain {findings[0].id}` says more" if findings else ""))


def _not_judged(judged: Sequence[tuple[HaproxyFacts, Examined]]) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(dict.fromkeys(said for _, examined in judged for said in examined.not_judged))


def _json(names: Sequence[str], judged: Sequence[tuple[HaproxyFacts, Examined]], findings: Sequence[Finding]) -> None:
    from edgekeeper.doctor.examine import Examined
    from edgekeeper.doctor.report import document

    detections = tuple(found for _, examined in judged for found in examined.detections)
    say_json(document(names, Examined(tuple(findings), detections, _not_judged(judged))))


def _sarif(names: Sequence[str], judged: Sequence[tuple[HaproxyFacts, Examined]], findings: Sequence[Finding]) -> None:
    from edgekeeper.cli.output import json_text
    from edgekeeper.doctor.checks import CHECKS
    from edgekeeper.doctor.sarif import document

    del judged
    say_block(json_text(document(findings, CHECKS, names), indent=2))


_SHOW: dict[Output, Any] = {Output.TEXT: _text, Output.JSON: _json, Output.SARIF: _sarif}


def _known(ids: Sequence[str]) -> None:
    """A name that no check has is a mistake, not an audit that passes."""
    from edgekeeper.doctor.checks import BY_ID

    for name in ids:
        if not name or not any(known.startswith(name) for known in BY_ID):
            msg = f"there is no check {name!r}; there are {', '.join(BY_ID)}"
            raise UsageError(msg)


def _same_names(judged: Sequence[tuple[HaproxyFacts, Examined]], wanted: Sequence[str]) -> None:
    there = {proxy.name for facts, _ in judged for config in facts.readings for proxy in config.proxies if proxy.has_servers}
    for name in wanted:
        if there and name not in there:
            msg = f"there is no backend {name!r}; there are {', '.join(sorted(there))}"
            raise UsageError(msg)


def _explain(name: str) -> None:
    from edgekeeper.doctor.checks import BY_ID

    check = BY_ID.get(name.upper())
    if check is None:
        msg = f"there is no check {name!r}; there are {', '.join(BY_ID)}"
        raise UsageError(msg)
    say_block(check.markdown())
