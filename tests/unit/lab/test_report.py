"""Results as JSON in the shape that is kept, and as rows."""

from __future__ import annotations

import math

from edgekeeper.lab.referee import Promise, judge
from edgekeeper.lab.report import HEAD, CaseResult, DrillResult, Run, case_row, drill_json
from edgekeeper.measure.outages import Outage

RUN = Run({"asked": 2500.0, "unanswered_3s": 3.0}, Outage(0.5, 0.75, 1, 2, 3), ((0.0, "began"), (1.0, "killed")))
PLAIN = Run({"asked": 2500.0, "unanswered_3s": 480.0}, Outage(2.0, math.inf, 1, 2, 480), ())
PROMISES = (Promise("unanswered_3s", "unanswered within 3 s", 0.004, share_of="asked"),)
KEPT = CaseResult("dns-x", "a", "testing", "2.1.3", "unanswered_3s", (RUN,), (PLAIN,), judge(PROMISES, [RUN.figures]))
BROKEN = CaseResult("dns-x", "b", "testing", "2.1.3", "unanswered_3s", (PLAIN,), (), judge(PROMISES, [PLAIN.figures]))
SKIPPED = CaseResult("dns-x", "c", "debian12", "1.7.3", "unanswered_3s", skipped="not on 1.7.3: it needs dnsdist 2.0")
FAILED = CaseResult("dns-x", "d", "testing", "2.1.3", "unanswered_3s", error="it did not start; the drill stops")


def test_the_shape_of_the_json() -> None:
    found = drill_json(DrillResult("dns-x", "2.1.3", "testing", (KEPT,)))
    keys = {"schema", "drill", "kept", "promise", "engines", "asked", "unanswered", "outage", "baseline", "timeline", "why", "cases", "case"}
    assert set(found) == keys
    assert found["schema"] == 1
    assert found["kept"] is True
    assert found["promise"] == {"what": "unanswered within 3 s", "limit": 10.0, "unit": "queries"}
    assert found["engines"] == {"dnsdist": "2.1.3"}
    assert (found["asked"], found["unanswered"]) == (2500, 3)
    assert found["outage"] == {"min_s": 0.5, "max_s": 0.75}
    assert found["baseline"]["unanswered"] == 480
    assert found["baseline"]["outage"]["max_s"] is None, "an outage whose end was not seen"
    assert found["timeline"] == [{"at_s": 0.0, "what": "began"}, {"at_s": 1.0, "what": "killed"}]


def test_a_broken_case_speaks_for_the_drill() -> None:
    result = DrillResult("dns-x", "2.1.3", "testing", (KEPT, BROKEN))
    assert not result.kept
    found = drill_json(result)
    assert found["case"] == "b"
    assert found["why"].startswith("broken: unanswered within 3 s: 480 queries, promised at most 10")
    assert [c["kept"] for c in found["cases"]] == [True, False]


def test_what_could_not_run_is_broken_and_what_cannot_is_not() -> None:
    assert not FAILED.kept
    assert FAILED.why == "broken: it did not start; the drill stops"
    assert SKIPPED.kept
    assert DrillResult("dns-x", "1.7.3", "debian12", (SKIPPED,)).leading is None
    assert drill_json(DrillResult("dns-x", "1.7.3", "debian12", (SKIPPED,)))["asked"] is None


def test_rows() -> None:
    assert case_row(KEPT) == ("dns-x", "a", "dnsdist 2.1.3", "kept", "2500", "3", "480", "160.0 times fewer", "0.50 s to 0.75 s")
    assert case_row(SKIPPED)[3:5] == ("not here", "-")
    assert case_row(FAILED)[3] == "BROKEN"
    assert len(case_row(BROKEN)) == len(HEAD)


def test_another_engine_and_another_unit() -> None:
    promises = (Promise("longest_s", "the longest wait", 2.7, "s"),)
    ours = Run({"asked": 9.0, "unanswered": 1.0, "longest_s": 2.5}, Outage(2.25, 2.75, 1, 2, 1), ())
    plain = Run({"asked": 9.0, "unanswered": 4.0, "longest_s": 15.0}, Outage(15.0, math.inf, 1, 2, 4), ())
    case = CaseResult("lb-x", "a", "testing", "3.2.26", "longest_s", (ours,), (plain,), judge(promises, [ours.figures]), engine="haproxy", unit="s")
    assert case_row(case)[2:8] == ("haproxy 3.2.26", "kept", "9", "2.5 s", "15 s", "6.0 times shorter")
    found = drill_json(DrillResult("lb-x", "3.2.26", "testing", (case,)))
    assert found["engines"] == {"haproxy": "3.2.26"}
    assert (found["unanswered"], found["baseline"]["unanswered"]) == (1, 4)
    assert found["cases"][0]["headline"] == {"figure": "longest_s", "unit": "s", "product": 2.5, "plain": 15.0}


def test_medians_over_runs() -> None:
    runs = tuple(Run({"asked": 10.0, "unanswered_3s": float(n)}, None, ()) for n in (9, 1, 2))
    case = CaseResult("dns-x", "a", "testing", "2.1.3", "unanswered_3s", runs)
    assert case_row(case)[5] == "2"
    assert case_row(case)[8] == "none seen"
