"""Which drills run on which engines: on each of a suite's versions, and once where no suite has one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from edgekeeper.lab import run as runner
from edgekeeper.lab.drill import Case, Drill
from edgekeeper.lab.engines import EngineAt
from edgekeeper.lab.report import CaseResult
from edgekeeper.lab.run import Options, run
from edgekeeper.lab.stage import Stage

KUBE = EngineAt("kube", "/bin/kube-apiserver", "1.33.1", (1, 33, 1), "kube-apiserver")
DNS = EngineAt("debian12", "/bin/dnsdist", "1.7.3", (1, 7, 3))


async def script(stage: Stage) -> None:
    raise AssertionError(stage)


def drill(name: str, engine: str) -> Drill:
    return Drill(name, "", (Case("a", "", script, ()),), engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("suites", [(), ("debian12",), ("debian12", "testing")])
def test_a_drill_whose_engine_is_of_no_suite_runs_once(monkeypatch: pytest.MonkeyPatch, suites: tuple[str, ...]) -> None:
    ran: list[tuple[str, str]] = []

    async def nothing() -> tuple[str, ...]:
        return ()

    async def find(suite: str, name: str) -> EngineAt:
        return KUBE if name == KUBE.name else replace(DNS, suite=suite, version=suite)

    async def case(one: Drill, picked: Case, engine: EngineAt, *_: object) -> CaseResult:
        ran.append((one.name, engine.suite))
        return CaseResult(one.name, picked.name, engine.suite, engine.version, "x")

    monkeypatch.setattr(runner.netns, "need_ip", lambda: None)
    monkeypatch.setattr(runner.netns, "sweep", nothing)
    monkeypatch.setattr(runner.engines, "find", find)
    monkeypatch.setattr(runner, "_case", case)
    picks = tuple((one, one.cases) for one in (drill("dns-x", "dnsdist"), drill("expose-x", "kube-apiserver")))
    results = asyncio.run(run(picks, Options(suites), lambda _: None, lambda _: None))
    assert [name for name, _ in ran].count("dns-x") == max(1, len(suites))
    assert [suite for name, suite in ran if name == "expose-x"] == ["kube"]
    assert len(results) == len(ran)
