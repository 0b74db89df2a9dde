"""``edgekeeper audit FILE...``: what will hurt in somebody's own configuration. Reads, and writes nothing."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.output import complain, say, say_block, say_json, table
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgekeeper.doctor.examine import Examined
    from edgekeeper.doctor.facts import HaproxyFacts, Inventory, KeepalivedFacts
    from edgekeeper.model.finding import Finding, Severity

    Judged = tuple[HaproxyFacts | KeepalivedFacts, Examined]


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
        list[str] | None,
        typer.Argument(
            metavar="FILE...", help="haproxy.cfg (several: one configuration, as for haproxy -f A -f B), keepalived.conf (one for each host), or their folder."
        ),
    ] = None,
    socket: Annotated[str | None, typer.Option("--socket", metavar="PATH", help="Look at the running HAProxy too: its stats or master socket.")] = None,
    api_backend: Annotated[
        list[str] | None, typer.Option("--api-backend", metavar="NAME", help="A backend of kube-apiservers that its port (6443) does not tell.")
    ] = None,
    kubeconfig: Annotated[
        str | None, typer.Option("--kubeconfig", metavar="FILE", help="Ask this cluster too: its API servers, and how old its nodes' Leases are.")
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
    from edgekeeper.doctor.collect_vips import collect_vips
    from edgekeeper.doctor.examine import examine, examine_vips, in_order
    from edgekeeper.host.clock import SystemClock

    if explain is not None:
        _explain(explain)
        return
    _known([*(only or ()), *(skip or ())])
    if "" in (files or ()):
        msg = "a file without a name is given (an empty variable?); nothing was judged, name a haproxy.cfg or keepalived.conf"
        raise UsageError(msg)
    if not files and socket is None:
        msg = "no file is named; name a haproxy.cfg, the keepalived.conf of each host, or a running HAProxy with --socket"
        raise UsageError(msg)
    named = configurations(files or [])
    found = named.haproxy
    if socket is not None and len(found) > 1:
        msg = f"{len(found)} configurations are named and one --socket; name the files of the HAProxy behind it"
        raise UsageError(msg)
    judged: list[Judged] = []
    inventory = asyncio.run(_inventory(kubeconfig))
    for sources in found or (((),) if socket is not None else ()):
        facts = asyncio.run(collect(sources, socket=socket, api_backends=api_backend or (), clock=SystemClock()))
        facts = replace(facts, inventory=replace(inventory, nodes=()) if judged else inventory)  # the nodes are judged once
        judged.append((facts, examine(facts, only=only or (), skip=skip or ())))
    _same_names(judged, api_backend or [])
    names = [source.name for sources in found for source in sources]
    if named.keepalived:
        vips = collect_vips(named.keepalived)
        judged.append((vips, examine_vips(vips, only=only or (), skip=skip or ())))
        names += dict.fromkeys(name for host in vips.hosts for name in host.files)
    findings = in_order(finding for _, examined in judged for finding in examined.findings)
    _SHOW[output](names, judged, findings)
    _end(judged, findings, fail_on, nothing_read=not names)


async def _inventory(kubeconfig: str | None) -> Inventory:
    """What the cluster of a kubeconfig says; nothing without one."""
    from edgekeeper.doctor.facts import Inventory

    if kubeconfig is None:
        return Inventory()
    if not kubeconfig:
        msg = "--kubeconfig is given without a file; nothing was judged"
        raise UsageError(msg)
    from edgekeeper.config.kubernetes import Kubernetes
    from edgekeeper.doctor.collect_cluster import inventory
    from edgekeeper.host.clock import SystemClock

    return await inventory(Kubernetes.model_validate({"kubeconfig": kubeconfig}), SystemClock())


def _end(judged: Sequence[Judged], findings: Sequence[Finding], fail_on: FailOn, *, nothing_read: bool) -> None:
    """The exit code: 6 when nothing could be read, 1 when there is something as bad as was asked."""
    from edgekeeper.doctor.examine import is_failure
    from edgekeeper.doctor.facts import HaproxyFacts, Unknown
    from edgekeeper.model.finding import Severity

    first = judged[0][0]
    runtime = first.runtime if isinstance(first, HaproxyFacts) else None
    if nothing_read and isinstance(runtime, Unknown):
        raise MissingError(runtime.reason)
    worst: Severity = Severity(fail_on.value)
    if is_failure(findings, worst):
        raise typer.Exit(EdgekeeperError.exit_code)


def _text(names: Sequence[str], judged: Sequence[Judged], findings: Sequence[Finding]) -> None:
    from edgekeeper.doctor.facts import HaproxyFacts, HaproxyRuntime
    from edgekeeper.doctor.report import HEAD, VIP_HEAD, lines, row, summary, vip_row

    say(*lines(findings))
    rows = [row(found) for _, examined in judged for found in examined.detections]
    if rows:
        table(HEAD, rows)
        say("")
    vip_rows = [vip_row(found) for _, examined in judged for found in examined.faults]
    if vip_rows:
        table(VIP_HEAD, vip_rows)
        say("")
    for facts, _ in judged:
        if isinstance(facts, HaproxyFacts) and isinstance(facts.runtime, HaproxyRuntime):
            complain(*(f"not seen: {sentence}" for sentence in facts.runtime.blind))
    for ids, why in _not_judged(judged):
        say(f"not judged: {', '.join(ids)} ({why})" if ids else f"not judged: {why}")
    many = _counted(names, judged) or ", ".join(names) or "the running HAProxy"
    say(f"{many}: {summary(findings)}" + (f"; `edgekeeper audit --explain {findings[0].id}` says more" if findings else ""))


def _counted(names: Sequence[str], judged: Sequence[Judged]) -> str | None:
    """``3 files in 2 configurations`` when there are several; keepalived's are one for each host."""
    from edgekeeper.doctor.facts import HaproxyFacts

    count = sum(1 if isinstance(facts, HaproxyFacts) else len(facts.hosts) for facts, _ in judged)
    return f"{len(names)} file{'s' if len(names) > 1 else ''} in {count} configurations" if count > 1 else None


def _not_judged(judged: Sequence[Judged]) -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(dict.fromkeys(said for _, examined in judged for said in examined.not_judged))


def _json(names: Sequence[str], judged: Sequence[Judged], findings: Sequence[Finding]) -> None:
    from edgekeeper.doctor.examine import Examined
    from edgekeeper.doctor.report import document

    detections = tuple(found for _, examined in judged for found in examined.detections)
    faults = tuple(found for _, examined in judged for found in examined.faults)
    say_json(document(names, Examined(tuple(findings), detections, _not_judged(judged), faults)))


def _sarif(names: Sequence[str], judged: Sequence[Judged], findings: Sequence[Finding]) -> None:
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


def _same_names(judged: Sequence[Judged], wanted: Sequence[str]) -> None:
    from edgekeeper.doctor.facts import HaproxyFacts

    readings = [config for facts, _ in judged if isinstance(facts, HaproxyFacts) for config in facts.readings]
    there = {proxy.name for config in readings for proxy in config.proxies if proxy.has_servers}
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
