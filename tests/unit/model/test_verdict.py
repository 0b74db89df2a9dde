from __future__ import annotations

import pytest

from edgekeeper.model.finding import Finding, Severity
from edgekeeper.model.verdict import Health, Verdict


@pytest.mark.parametrize(("health", "ok"), [(Health.OK, True), (Health.BAD, False), (Health.UNKNOWN, False)])
def test_unknown_is_never_good(health: Health, ok: bool) -> None:
    assert Verdict(health, "because").ok is ok


def test_severities_are_written_worst_first_and_a_finding_keeps_its_shape() -> None:
    assert [str(s) for s in Severity] == ["CRIT", "HIGH", "WARN", "INFO", "UNKNOWN"]
    assert set(Finding.__dataclass_fields__) == {"id", "severity", "object", "what", "evidence", "why", "fix", "refs", "place"}
