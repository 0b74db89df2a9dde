"""What the expose role says of itself, from what it has seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from edgekeeper.expose.brake import Memory
from edgekeeper.expose.kinds import Snapshot
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import Action, Held, Plan
from edgekeeper.expose.prover import Result
from edgekeeper.expose.report import HOSTS_MOST, measure, status
from edgekeeper.expose.seen import Seen
from edgekeeper.expose.sync import Pass
from edgekeeper.model.verdict import Health
from edgekeeper.ops.metrics import Metrics


class Clock:
    def wall(self) -> float:
        return 1_000_060.0


class Prover:
    def __init__(self, **results: bool) -> None:
        self.results = {host: Result(ok, "refused" if not ok else "answers", 1.0, 5.0) for host, ok in results.items()}


def passed(*outcomes: Outcome, right: tuple[str, ...] = (), held: tuple[Held, ...] = (), refused: str | None = None) -> Pass:
    actions = tuple(one.action for one in outcomes)
    return Pass(Plan(actions, held, right, (), Memory(), len(right) + len(held) + len(actions), len(right), 7, refused), outcomes)


LAST = passed(
    Outcome(Action("create", "made", "it is wanted")),
    Outcome(Action("update", "failed", "it is another"), "unknown_domain", "register the domain"),
    Outcome(Action("disable", "off", "nobody wants it")),
    Outcome(Action("delete", "gone", "nobody wants it")),
    Outcome(Action("create", "waits", "it is wanted"), "broken", "500"),
    right=("fine", "silent"),
    held=(Held("theirs", "conflict", "it belongs to other/a"),),
)
PARTS: Any = SimpleNamespace(
    source=SimpleNamespace(snapshot=lambda: Snapshot((), {}, 3, whole=False, why="Ingress objects were last heard of 40 s ago", stale_s=40.04))
)


def said(seen: Seen, parts: Any = PARTS, prover: Any = None, **alarms: str) -> Any:
    return status(seen, parts, prover, alarms, Clock())  # type: ignore[arg-type]


def test_before_the_first_view_it_is_being_started():
    found = said(Seen(), None)
    assert (found.verdict.health, found.ready.health) == (Health.UNKNOWN, Health.UNKNOWN)
    assert found.verdict.why == "it is being started"


def test_what_keeps_it_from_starting_is_bad_and_not_ready():
    found = said(Seen(), None, access="there is no kubeconfig")
    assert (found.verdict.health, found.ready.health) == (Health.BAD, Health.BAD)
    assert found.verdict.why == found.ready.why == "access: there is no kubeconfig"


def test_one_that_waits_for_the_lease_is_well_and_ready():
    found = said(Seen(lease="edge-b holds it"))
    assert (found.verdict.health, found.verdict.why, found.ready.health) == (Health.OK, "waits for the Lease: edge-b holds it", Health.OK)
    first = said(Seen(leads=True))
    assert (first.verdict.health, first.verdict.why, first.ready.health) == (Health.UNKNOWN, "no pass yet", Health.OK)


def test_a_pass_is_told_with_every_host_that_is_not_as_it_should_be():
    found = said(Seen(LAST, 1_000_000.0, leads=True, calls=12), PARTS, Prover(fine=True, silent=False, theirs=False))
    assert (found.verdict.health, found.verdict.why) == (Health.OK, LAST.sentence())
    details = found.details
    assert details["hosts"] == {
        "failed": {"state": "domain-unknown", "why": "register the domain"},
        "gone": {"state": "gone", "why": ""},
        "off": {"state": "leaving", "why": ""},
        "silent": {"state": "unproved", "why": "refused"},
        "theirs": {"state": "conflict", "why": "it belongs to other/a"},
        "waits": {"state": "pending", "why": "500"},
    }
    assert (details["pass_age_s"], details["proved"], details["calls"], details["leads"], details["refused"]) == (60.0, 1, 12, True, None)
    assert details["pass"] | {"took_s": 0} == {
        "wanted": 8, "managed": 2, "created": 1, "updated": 0, "disabled": 1, "deleted": 1, "held": 1, "failed": 2, "took_s": 0
    }  # fmt: skip


@pytest.mark.parametrize("parts", [PARTS, None])
def test_an_alarm_is_the_verdict_and_only_one_that_is_not_at_work_is_not_ready(parts):
    found = said(Seen(LAST, 1.0), parts, None, mesh="it does not answer; what is published stays", deletions="5 of 10 would go")
    assert found.verdict.health is Health.BAD
    assert found.verdict.why == "mesh: it does not answer; what is published stays; deletions: 5 of 10 would go"
    assert found.ready.health is (Health.OK if parts is PARTS else Health.BAD)
    assert found.details["alarms"] == {"mesh": "it does not answer; what is published stays", "deletions": "5 of 10 would go"}


def test_of_very_many_hosts_that_are_not_well_the_number_is_told():
    held = tuple(Held(f"h{i:05}", "conflict", "") for i in range(HOSTS_MOST + 50))
    details = said(Seen(passed(held=held), 1.0)).details
    assert (len(details["hosts"]), details["hosts_not_shown"]) == (HOSTS_MOST, 50)


def test_the_age_of_the_view_is_in_the_details():
    assert said(Seen()).details["sources"] == {"full": False, "age_s": 40.0, "why": "Ingress objects were last heard of 40 s ago"}
    assert said(Seen(), None).details["sources"] is None


def test_a_refusal_is_in_the_details():
    assert said(Seen(passed(refused="5 of 10 services would go"), 1.0)).details["refused"] == "5 of 10 services would go"


def gauges(seen: Seen, prover: Any = None, alarms: Any = ()) -> dict[str, float]:
    metrics = Metrics()
    measure(seen, prover, dict.fromkeys(alarms, ""), metrics)
    rows = [line.rpartition(" ") for line in metrics.text().decode().splitlines() if line.startswith("edgekeeper_expose") and "_created " not in line]
    return {name.removeprefix("edgekeeper_expose_"): float(value) for name, _, value in rows}


def test_what_is_measured_is_what_is_there():
    found = gauges(Seen(LAST, 1_000_000.0, leads=True), Prover(fine=True, silent=False, other=False), ("mesh", "lease"))
    assert {
        "leads": 1, "alarms": 2, "wanted": 8, "managed": 2, "held": 1, "drift": 2, "last_success_timestamp_seconds": 1_000_000, "unproved": 2
    }.items() <= found.items()  # fmt: skip


def test_before_the_first_pass_nothing_is_measured_of_one():
    found = gauges(Seen())
    assert set(found.values()) == {0.0}
