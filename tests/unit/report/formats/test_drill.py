from __future__ import annotations

import json

import pytest
from tests.fakes.eventlines import items, marks

from edgekeeper.lab.report import CaseResult, DrillResult, Run, drill_json
from edgekeeper.report.formats.drill import DRILL
from edgekeeper.report.kinds import NOT_THIS_FORMAT, TRUNCATED, Kind, Skip

RESULT = drill_json(
    DrillResult(
        "member-dies",
        "2.1.3",
        "testing",
        (CaseResult("member-dies", "udp", "testing", "2.1.3", "unanswered_3s", (Run({"asked": 9}, None, ((1.5, "a member is killed"),)),)),),
    )
)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("several", [False, True])
def test_a_result_has_an_order_and_no_times(indent: int | None, several: bool) -> None:
    whole = json.dumps([RESULT, RESULT] if several else RESULT, indent=indent)
    found = marks(DRILL, whole)
    assert len(found) == (4 if several else 2)
    verdict, step = found[:2]
    assert {m.at for m in found} == {None}
    assert (verdict.kind, verdict.object, verdict.data["min_s"], verdict.data["kept"]) == (Kind.NOTE, "member-dies/udp dnsdist 2.1.3", 0.0, True)
    assert (step.what, step.data["at_s"]) == ("+1.500 s: a member is killed", 1.5)
    assert any(DRILL.likes(line.encode()) for line in whole.splitlines())


def test_the_longest_outage_is_told() -> None:
    case = {"case": "udp", "outage": {"min_s": 0.5, "max_s": None}, "unanswered": 4, "asked": 90}
    found = marks(DRILL, json.dumps({"schema": 1, "drill": "d", "cases": [case]}))
    assert [(m.kind, m.data.get("min_s"), m.data.get("max_s")) for m in found] == [(Kind.NOTE, 0.5, None), (Kind.OUTAGE, 0.5, None)]
    assert found[1].data["bad"] == 4.0


def test_another_schema_and_a_torn_document_are_counted() -> None:
    assert items(DRILL, json.dumps({**RESULT, "schema": 9})) == [Skip(NOT_THIS_FORMAT)]
    assert items(DRILL, json.dumps(RESULT)[:-20] + "\n]\n") == [Skip(TRUNCATED)]
