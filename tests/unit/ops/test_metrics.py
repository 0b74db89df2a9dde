from __future__ import annotations

import re

import pytest

from edgekeeper.ops.metrics import METRICS, Metrics


def values(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith("edgekeeper_")}


def test_counters_count_and_gauges_hold() -> None:
    metrics = Metrics()
    metrics.count("edgekeeper_dns_renders", {"result": "ok"})
    metrics.count("edgekeeper_dns_renders", {"result": "ok"})
    metrics.count("edgekeeper_dns_cache_flushes")
    metrics.set("edgekeeper_dns_backends", 3)
    found = values(metrics)
    assert found['edgekeeper_dns_renders_total{result="ok"}'] == 2
    assert found["edgekeeper_dns_cache_flushes_total"] == 1
    assert found["edgekeeper_dns_backends"] == 3


def test_a_member_that_is_gone_disappears() -> None:
    metrics = Metrics()
    metrics.replace("edgekeeper_dns_backend_up", "backend", {"ns-a": 1, "ns-b": 0})
    metrics.replace("edgekeeper_dns_backend_up", "backend", {"ns-b": 1})
    assert {k: v for k, v in values(metrics).items() if "backend_up" in k} == {'edgekeeper_dns_backend_up{backend="ns-b"}': 1}


@pytest.mark.parametrize("name", ['x"} 1\nevil_metric 1', "x\\", "ns-ä"])
def test_no_name_leaves_its_quotes(name: str) -> None:
    metrics = Metrics()
    metrics.replace("edgekeeper_dns_backend_up", "backend", {name: 1})
    lines = [line for line in metrics.text().decode().splitlines() if "backend_up" in line and not line.startswith("#")]
    assert len(lines) == 1
    assert not any(line.startswith("evil") for line in metrics.text().decode().splitlines())


def test_every_metric_has_a_prefix_a_help_and_no_name_twice() -> None:
    assert len({m.name for m in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"edgekeeper_[a-z_]+", metric.name)
        assert not metric.name.endswith("_total")
        assert metric.help.endswith(".")


def test_the_process_itself_is_measured() -> None:
    assert b"process_resident_memory_bytes" in Metrics().text()
