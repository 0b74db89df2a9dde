"""Findings as SARIF 2.1.0, which code hosts show beside the line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from edgekeeper import __version__
from edgekeeper.doctor.check import Check
from edgekeeper.doctor.checks import BY_ID
from edgekeeper.model.finding import Finding, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.CRIT: "error", Severity.HIGH: "error", Severity.WARN: "warning", Severity.INFO: "note", Severity.UNKNOWN: "none"}
_SCORES = {Severity.CRIT: "9.0", Severity.HIGH: "8.0", Severity.WARN: "5.0", Severity.INFO: "2.0", Severity.UNKNOWN: "0.0"}


def document(findings: Sequence[Finding], checks: Sequence[Check], files: Sequence[str]) -> dict[str, Any]:
    """One run: the rules that were asked with their pages, and a result for each finding."""
    index = {check.id: number for number, check in enumerate(checks)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "edgekeeper",
                        "semanticVersion": __version__,
                        "version": __version__,
                        "rules": [_rule(check) for check in checks],
                    }
                },
                "artifacts": [{"location": {"uri": _uri(file)}} for file in files],
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, index, files) for finding in findings],
            }
        ],
    }


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "name": check.id,
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": " ".join(check.page.what.split())},
        "help": {"text": check.markdown(), "markdown": check.markdown()},
        "defaultConfiguration": {"level": _LEVELS[check.severity]},
        "properties": {"security-severity": _SCORES[check.severity], "tags": ["availability", check.engine]},
    }


def _result(finding: Finding, index: dict[str, int], files: Sequence[str]) -> dict[str, Any]:
    message = f"{finding.object}: {finding.what}. Seen: {finding.evidence}. Why: {finding.why}. Fix: {finding.fix}"
    result: dict[str, Any] = {
        "ruleId": finding.id,
        "level": _LEVELS[finding.severity],
        "kind": "open" if finding.severity is Severity.UNKNOWN else "fail",
        "message": {"text": message},
        "partialFingerprints": {"idAndObject/v1": f"{finding.id} {finding.object}"},
        "properties": {"severity": str(finding.severity)},
    }
    if finding.id in index:
        result["ruleIndex"] = index[finding.id]
    file = finding.place.file if finding.place else files[0] if files else None
    if file is not None:  # code hosts drop a result without a place
        location: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
        if finding.place and finding.place.line:
            location["region"] = {"startLine": finding.place.line}
        result["locations"] = [{"physicalLocation": location, "logicalLocations": [{"fullyQualifiedName": finding.object}]}]
    return result


def _uri(file: str) -> str:
    """A path as a URI: relative as it was given, or absolute with its scheme."""
    return ("file://" if file.startswith("/") else "") + quote(file.removeprefix("./"))


def rules(ids: Sequence[str]) -> tuple[Check, ...]:
    """The checks of some ids, in their order."""
    return tuple(BY_ID[name] for name in ids)
