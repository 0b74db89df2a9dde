from __future__ import annotations

import json
from typing import Any

from edgekeeper.doctor import sarif
from edgekeeper.doctor.checks import CHECKS
from edgekeeper.model.finding import Finding, Place, Severity


def finding(severity: Severity, place: Place | None) -> Finding:
    return Finding("HAP001", severity, "backend b", "what", "seen", "why", "fix", (), place)


def run_of(*findings: Finding, files: tuple[str, ...] = ("etc/haproxy.cfg",)) -> dict[str, Any]:
    document = json.loads(json.dumps(sarif.document(findings, CHECKS, files)))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    return dict(run)


def test_rules_carry_their_pages() -> None:
    rules = run_of()["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [check.id for check in CHECKS]
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert "How to fix it" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
        assert 0 <= float(rule["properties"]["security-severity"]) <= 10


def test_a_result_points_to_its_line_and_its_rule() -> None:
    run = run_of(finding(Severity.HIGH, Place("./etc/my haproxy.cfg", 42)))
    (result,) = run["results"]
    assert (result["level"], result["kind"]) == ("error", "fail")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "HAP001"
    (location,) = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": "etc/my%20haproxy.cfg"}, "region": {"startLine": 42}}


def test_a_result_without_a_line_has_its_file_and_one_without_a_file_has_none() -> None:
    (result,) = run_of(finding(Severity.UNKNOWN, None))["results"]
    assert (result["level"], result["kind"]) == ("none", "open")
    assert "region" not in result["locations"][0]["physicalLocation"]
    (result,) = run_of(finding(Severity.CRIT, None), files=())["results"]
    assert "locations" not in result


def test_an_absolute_path_is_a_file_uri() -> None:
    (result,) = run_of(finding(Severity.WARN, Place("/etc/haproxy/haproxy.cfg", 1)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///etc/haproxy/haproxy.cfg"
