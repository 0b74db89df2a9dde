"""Run drills: one stage after another, product and plain, on one engine version after another."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.lab import engines, netns, recorded
from edgekeeper.lab.drill import Case, Drill
from edgekeeper.lab.drills import DRILLS
from edgekeeper.lab.engines import EngineAt
from edgekeeper.lab.outcome import Side
from edgekeeper.lab.product import need
from edgekeeper.lab.referee import judge
from edgekeeper.lab.report import CaseResult, DrillResult, Run, middle
from edgekeeper.lab.stage import Stage, plan_for
from edgekeeper.lab.topology import edge_plan

Say = Callable[[str], None]
Done = Callable[[tuple[DrillResult, ...]], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How drills are run. ``repeat`` runs of each case; ``ci`` takes the subset and the short forms."""

    suites: tuple[str, ...] = ()
    baseline: bool = False
    repeat: int = 1
    ci: bool = False
    record: Path | None = None
    policy: str = "chashed"


def chosen(names: Sequence[str], *, everything: bool = False) -> tuple[tuple[Drill, tuple[Case, ...]], ...]:
    """Drills and cases by name, ``drill`` or ``drill/case``; UsageError names the nearest that exist."""
    if everything:
        return tuple((drill, drill.cases) for drill in DRILLS.values())
    out: list[tuple[Drill, tuple[Case, ...]]] = []
    for name in names:
        title, _, wanted = name.partition("/")
        drill = DRILLS.get(title)
        if drill is None:
            msg = f"there is no drill {title!r}; `edgekeeper drill list` names them"
            raise UsageError(msg)
        cases = tuple(c for c in drill.cases if not wanted or c.name == wanted)
        if not cases:
            msg = f"{title} has no case {wanted!r}; it has {', '.join(c.name for c in drill.cases)}"
            raise UsageError(msg)
        out.append((drill, cases))
    if not out:
        msg = "no drill is named; name some, or say --all"
        raise UsageError(msg)
    return tuple(out)


async def run(picks: Sequence[tuple[Drill, tuple[Case, ...]]], options: Options, say: Say, done: Done) -> tuple[DrillResult, ...]:
    """Run them all; first sweep what dead runners left. MissingError when an engine is missing.

    ``done`` is handed all results so far whenever a drill is over: hours of measuring must not hang on the last minute.
    """
    netns.need_ip()
    if (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    for gone in await netns.sweep():
        say(f"removed what a dead run left: {gone}")
    wanted = list(dict.fromkeys(drill.engine for drill, _ in picks))
    found = [{name: await engines.find(suite or await engines.default(name), name) for name in wanted} for suite in options.suites or ("",)]
    out: list[DrillResult] = []
    for number, installed in enumerate(found):
        for drill, cases in picks:
            engine = installed[drill.engine]
            if any(other[drill.engine] == engine for other in found[:number]):
                continue  # an engine that no suite has a version of is run once
            kept = [c for c in cases if not options.ci or (c.ci and engine.numbers >= c.ci_since)]
            results = tuple([await _case(drill, case, engine, options, say) for case in kept])
            if results:
                out.append(DrillResult(drill.name, engine.version, engine.suite, results))
                done(tuple(out))
    return tuple(out)


async def _case(drill: Drill, case: Case, engine: EngineAt, options: Options, say: Say) -> CaseResult:
    title = f"{drill.name}/{case.name} on {engine.title}"
    blank = CaseResult(drill.name, case.name, engine.suite, engine.version, case.headline, engine=engine.name, unit=case.unit)
    if engine.numbers < case.since:
        since = ".".join(str(n) for n in case.since)
        return replace(blank, skipped=f"not on {engine.version}: it needs {engines.TITLES[engine.name]} {since}")
    plain: tuple[Run, ...] = ()
    runs: tuple[Run, ...] = ()
    try:
        need(drill.needs)
        if not case.alone and (options.baseline or case.compare):
            plain = await _runs(title, case, engine, Side.PLAIN, options, say)
        runs = await _runs(title, case, engine, Side.PRODUCT, options, say)
    except MissingError as err:
        return replace(blank, plain=plain, error=str(err), missing=True)
    except EdgekeeperError as err:
        return replace(blank, plain=plain, error=str(err))
    judged = [dict(r.figures) for r in runs]
    if case.compare and (base := middle(plain, case.headline)) is not None:
        ours = middle(runs, case.headline)
        for figures in judged:
            figures["more_than_plain"] = max(0.0, (ours or 0.0) - base)
    rulings = judge([p for p in case.promises if p.applies(engine.numbers)], judged)
    result = replace(blank, runs=runs, plain=plain, rulings=rulings)
    say(f"{title}: {result.why}")
    return result


async def _runs(title: str, case: Case, engine: EngineAt, side: Side, options: Options, say: Say) -> tuple[Run, ...]:
    out = []
    repeat = min(options.repeat, case.most_runs)
    for number in range(repeat):
        who = "edgekeeper" if side is Side.PRODUCT else f"plain {engines.TITLES[engine.name]}"
        say(f"{title}: {who}, run {number + 1} of {repeat}")
        out.append(await _one(case, engine, side, options, f"{title.replace('/', '.').split(' ', maxsplit=1)[0]}-{engine.version}-{side}-{number + 1}"))
    return tuple(out)


async def _one(case: Case, engine: EngineAt, side: Side, options: Options, label: str) -> Run:
    record = options.record / label if options.record else None
    script = case.plain if side is Side.PLAIN and case.plain is not None else case.script
    with netns.folder(time.monotonic_ns() % 1_000_000, record) as folder:
        async with plan_for(case.plan or edge_plan(case.members)) as net, Stage(side, engine, net, folder, quick=options.ci, policy=options.policy) as stage:
            measured = await script(stage)
            timeline = tuple((mark.at_s, mark.what) for mark in stage.timeline)
            zero = stage.zero
        if record is not None:
            recorded.write(folder, label, zero=zero, wall=time.time() - time.monotonic(), timeline=timeline, outage=measured.outage)
    return Run(measured.figures, measured.outage, timeline)
