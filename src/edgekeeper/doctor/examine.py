"""Facts to findings: HAProxy's checks over every reading of a configuration, keepalived's over all hosts; worst first, grouped by object. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from edgekeeper.doctor.check import Check, Needs
from edgekeeper.doctor.checks import CHECKS
from edgekeeper.doctor.facts import HaproxyFacts, KeepalivedFacts, Unknown
from edgekeeper.doctor.kind import hints
from edgekeeper.doctor.vips import Fault, faults, routers
from edgekeeper.engines.haproxy.cfg_health import Detection, detection_of
from edgekeeper.engines.haproxy.cfg_values import Config, Global
from edgekeeper.model.finding import Finding, Place, Severity

ORDER = {severity: rank for rank, severity in enumerate(Severity)}
"""Worst first; what is unknown comes last."""

_OF_SEVERAL = frozenset({"VRP001", "VRP005", "VRP006", "VRP011"})
_NOTHING = Config((), Global(), ())
_Key = tuple[str, str, Place | None]


@dataclass(frozen=True, slots=True)
class Examined:
    """Findings worst first, the time each backend takes to notice a hung server and each VIP to move, and the ids that were not judged, with the reason."""

    findings: tuple[Finding, ...]
    detections: tuple[Detection, ...]
    not_judged: tuple[tuple[tuple[str, ...], str], ...]
    faults: tuple[Fault, ...] = ()


def wanted(check: Check, only: Collection[str], skip: Collection[str]) -> bool:
    """Whether a check is asked for; ids may be given by their beginning (``HAP``)."""
    return (not only or check.id.startswith(tuple(only))) and not (skip and check.id.startswith(tuple(skip)))


def examine(facts: HaproxyFacts, *, only: Collection[str] = (), skip: Collection[str] = ()) -> Examined:
    """All checks that are wanted, over one HAProxy."""
    checks = [check for check in CHECKS if check.needs is not Needs.VIPS and wanted(check, only, skip)]
    findings: list[Finding] = []
    for check in checks:
        match check.needs:
            case Needs.CONFIG:
                findings += _over_readings(check, facts)
            case Needs.RUNTIME if isinstance(facts.runtime, Unknown):
                findings.append(_unknown(check, facts.runtime))
            case Needs.RUNTIME if facts.runtime is not None:
                findings += check.run(facts, facts.readings[0] if facts.readings else _NOTHING)
            case Needs.INVENTORY:
                findings += _over_readings(check, facts)
            case Needs.CLUSTER:
                findings += check.run(facts, _NOTHING)
            case _:
                pass
    first = facts.readings[0] if facts.readings else _NOTHING
    found = (detection_of(first, backend) for backend in first.backends())
    return Examined(tuple(in_order(findings)), tuple(d for d in found if d is not None), _not_judged(checks, facts))


def examine_vips(facts: KeepalivedFacts, *, only: Collection[str] = (), skip: Collection[str] = ()) -> Examined:
    """All checks that are wanted, over the keepalived configurations of all hosts together."""
    checks = [check for check in CHECKS if check.needs is Needs.VIPS and wanted(check, only, skip)]
    found = (finding for check in checks for finding in check.run(facts))
    findings = in_order({(f.id, f.object, f.place, f.what): f for f in found}.values())  # one file may describe several hosts
    alone = tuple(check.id for check in checks if check.id in _OF_SEVERAL) if len(facts.hosts) == 1 else ()
    not_judged = ((alone, "they compare hosts: give the files of all of them at once"),) if alone else ()
    return Examined(tuple(findings), (), not_judged, tuple(fault for router in routers(facts) for fault in faults(facts, router)))


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first and grouped by object: the group with the worst finding first, then by place."""
    kept = list(findings)
    worst: dict[str, int] = {}
    for finding in kept:
        worst[finding.object] = min(worst.get(finding.object, len(ORDER)), ORDER[finding.severity])
    first = {finding.object: _at(finding) for finding in sorted(kept, key=_at, reverse=True)}
    return sorted(kept, key=lambda f: (worst[f.object], first[f.object], f.object, ORDER[f.severity], f.id, _at(f)))


def is_failure(findings: Iterable[Finding], fail_on: Severity) -> bool:
    """Whether one of them is as bad as ``fail_on`` or worse. UNKNOWN counts only when it is what was asked for."""
    if fail_on is Severity.UNKNOWN:
        return any(True for _ in findings)
    return any(f.severity is not Severity.UNKNOWN and ORDER[f.severity] <= ORDER[fail_on] for f in findings)


def _at(finding: Finding) -> tuple[str, int]:
    return (finding.place.file, finding.place.line) if finding.place else ("", 0)


def _over_readings(check: Check, facts: HaproxyFacts) -> list[Finding]:
    """What holds in every reading, as it is; what holds in some only, at most as a WARN with its condition."""
    found: dict[_Key, list[tuple[Config, Finding]]] = {}
    for config in facts.readings:
        for finding in check.run(facts, config):
            found.setdefault((finding.id, finding.object, finding.place), []).append((config, finding))
    return [pairs[0][1] if len(pairs) == len(facts.readings) else _conditional(pairs, facts.readings) for pairs in found.values()]


def _conditional(pairs: Sequence[tuple[Config, Finding]], readings: Sequence[Config]) -> Finding:
    config, finding = pairs[0]
    places = {name: place for reading in readings for name, place in reading.conditions.items()}
    clauses = [f"`.if {name}` ({places[name].text()}) is {str(value).lower()}" for name, value in config.assumed.items() if name in places]
    severity = finding.severity if ORDER[finding.severity] > ORDER[Severity.WARN] else Severity.WARN
    return replace(finding, severity=severity, evidence=f"{finding.evidence}; so it is where {' and '.join(clauses)}, which the file does not decide")


def _unknown(check: Check, unknown: Unknown) -> Finding:
    return Finding(
        id=check.id,
        severity=Severity.UNKNOWN,
        object="running HAProxy",
        what=f"cannot tell: {check.title[:1].lower()}{check.title[1:]}",
        evidence=unknown.reason,
        why="what cannot be read is not judged, and not passed",
        fix="give a socket that can be opened, of level operator or admin",
    )


def _not_judged(checks: Sequence[Check], facts: HaproxyFacts) -> tuple[tuple[tuple[str, ...], str], ...]:
    out = []
    runtime = tuple(c.id for c in checks if c.needs is Needs.RUNTIME)
    if runtime and facts.runtime is None:
        out.append((runtime, "they look at a running HAProxy: give --socket PATH"))
    inventory = tuple(c.id for c in checks if c.needs is Needs.INVENTORY)
    servers, balancers, nodes = facts.inventory.api_servers, facts.inventory.balancers, facts.inventory.nodes
    if inventory and isinstance(servers, Unknown) and isinstance(balancers, Unknown):
        out.append((inventory, f"they compare with a cluster: {servers.reason}; --kubeconfig FILE gives one"))
    elif inventory:
        out += [
            ((one,), f"{unknown.reason}") for one, unknown in (("HAP009", servers), ("HAP010", balancers)) if one in inventory and isinstance(unknown, Unknown)
        ]
    cluster = tuple(c.id for c in checks if c.needs is Needs.CLUSTER)
    if cluster and isinstance(nodes, Unknown):
        out.append((cluster, f"they look at a cluster: {nodes.reason}; --kubeconfig FILE gives one"))
    if facts.readings and (names := hints(facts.readings[0], facts.api_backends)):
        out.append(((), f"{', '.join(names)} as kube-apiservers, which only the name says: --api-backend {names[0]}"))
    return tuple(out)
