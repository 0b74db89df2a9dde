"""What the probe role says of itself: who is down, and the metrics of those that are asked."""

from __future__ import annotations

import json

from edgekeeper.meter.kept import Kept
from edgekeeper.meter.report import Gauges, Lost, alarm_of, status
from edgekeeper.model.sample import Sample
from edgekeeper.ops.metrics import Metrics

A, B = ("dns://192.0.2.53/a.example", "fresh"), ("https://edge.example/", "warm")


def fed(*samples: Sample, keys: tuple[tuple[str, str], ...] = (A, B)) -> Kept:
    kept = Kept(keys)
    for one in samples:
        kept.take(one, one.done)
    return kept


def sample(key: tuple[str, str], sent: float, error: str | None = None) -> Sample:
    return Sample(sent, key[0], key[1], sent, sent + 0.01, error is None, error=error)


def said(metrics: Metrics) -> dict[str, float]:
    lines = [line for line in metrics.text().decode().splitlines() if line.startswith("edgekeeper_probe_")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_one_that_is_down_makes_the_verdict_bad_and_the_role_no_less_ready() -> None:
    kept = fed(sample(A, 0), sample(B, 0, "refused"), sample(B, 1, "refused"))
    found = status(kept, {alarm_of(B): "no good answer"}, 6.0)
    assert (found.verdict.health.value, found.ready.health.value) == ("bad", "ok")
    assert found.verdict.why == "https://edge.example/ (warm) does not answer: refused"
    down = next(one for one in found.details["targets"] if one["target"] == B[0])
    assert (down["state"], down["since_s"], down["longest"]) == ("down", 6.0, {"min_s": 0.99, "max_s": None})
    assert json.loads(json.dumps(found.details, allow_nan=False)) == found.details


def test_a_verdict_names_a_few_of_many_that_are_down() -> None:
    keys = tuple((f"tcp://192.0.2.1:{port}", "fresh") for port in range(1, 101))
    found = status(fed(*(sample(key, 0, "refused") for key in keys), keys=keys), {}, 1.0)
    assert found.verdict.why.count("does not answer") == 5
    assert found.verdict.why.endswith("and 95 more")


def test_before_the_first_answer_nothing_is_known() -> None:
    found = status(fed(), {}, 0.0)
    assert [one["state"] for one in found.details["targets"]] == ["unknown", "unknown"]
    assert found.details["targets"][0]["unseen_below_s"] is None


def test_gauges_follow_outages_and_targets_that_are_asked_no_more_disappear() -> None:
    metrics = Metrics()
    gauges = Gauges(metrics)
    kept = fed(sample(A, 0), sample(A, 1, "refused"))
    gauges.measure(kept, {}, Lost(3, 4), 2.0)
    labels = '{conn="fresh",target="dns://192.0.2.53/a.example"}'
    assert said(metrics)[f"edgekeeper_probe_up{labels}"] == 0
    first = said(metrics)[f"edgekeeper_probe_outage_seconds_max{labels}"]
    gauges.measure(kept, {}, Lost(3, 4), 5.0)
    assert said(metrics)[f"edgekeeper_probe_outage_seconds_max{labels}"] > first, "it grows while it lasts, without an answer"
    assert (said(metrics)["edgekeeper_probe_unrecorded"], said(metrics)["edgekeeper_probe_uncounted"]) == (3, 4)
    assert not any("edge.example/" in name and "_up" in name for name in said(metrics)), "absent before the first answer"
    gauges.measure(fed(sample(B, 0), keys=(B,)), {}, Lost(0, 0), 5.0)
    assert not any(A[0] in name for name in said(metrics))
