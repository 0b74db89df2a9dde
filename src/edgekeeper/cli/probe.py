"""``edgekeeper probe``: an outage meter for the terminal."""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, is_terminal, say, say_json, table
from edgekeeper.errors import EdgekeeperError, UsageError

if TYPE_CHECKING:
    from edgekeeper.measure.outages import Outage, Summary
    from edgekeeper.measure.running import Times
    from edgekeeper.meter.kept import Kept
    from edgekeeper.meter.live import Recent
    from edgekeeper.meter.meter import Meter, Sink
    from edgekeeper.meter.record import Recording
    from edgekeeper.model.sample import Sample


def probe(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="TARGET...", help="dns://SERVER/NAME?type=TXT, tcp://HOST:PORT, tls://, http(s)://, icmp://HOST; else probe.targets. Or: run."),
    ] = None,
    every: Annotated[str | None, typer.Option("--every", help="Period of the questions to each target; an outage is known to within two. [1s]")] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", help="When a question counts as unanswered; above 1s it hides black holes. [1s]")] = None,
    warm: Annotated[bool, typer.Option("--warm", help="Ask over a kept connection too: it fails differently.")] = False,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after so many questions to each target.")] = None,
    duration: Annotated[str | None, typer.Option("--duration", help="Stop after this long.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help="Append every question to this file (JSON lines, schema 1).")] = None,
    mark: Annotated[
        bool, typer.Option("--mark", help="Give each request by HTTP an id (kp=... in its query), recorded too: logs and records meet in a report.")
    ] = False,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", metavar="EXPR", help="Exit 1 when true of a target: outage > 2s, unanswered > 0, loss > 0.4%.")
    ] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """An outage meter for your terminal.

    It asks all the time and says how long each target did not answer. A slow answer never delays the
    next question. Ctrl-C ends it with the summary. `edgekeeper probe run` asks the config's targets all day, as a role.
    """
    if targets and targets[0] == "run":
        _run_role(ctx, lone=len(targets) == 1 and (every, timeout, count, duration, record, fail_if) == (None,) * 6 and not (warm or mark))
        return
    import asyncio

    from edgekeeper.measure.failif import parse as parse_condition
    from edgekeeper.measure.failif import true_of
    from edgekeeper.meter.kept import Kept
    from edgekeeper.meter.live import Recent
    from edgekeeper.meter.meter import Meter, Pace
    from edgekeeper.meter.record import Recording
    from edgekeeper.meter.room import make_room
    from edgekeeper.meter.ways import plan, standing
    from edgekeeper.probe.icmp import need_icmp
    from edgekeeper.probe.target import parse as parse_target

    urls, usual_every, usual_timeout = _defaults(ctx, targets)
    aims = [parse_target(url) for url in dict.fromkeys(urls)]
    conditions = [parse_condition(text) for text in fail_if or []]
    pace = Pace(
        every_s=_seconds("--every", every, usual_every),
        timeout_s=_seconds("--timeout", timeout, usual_timeout),
        count=count,
        duration_s=_seconds("--duration", duration, 0.0) or None,
        warm=warm,
        mark=mark,
    )
    if any(aim.transport == "icmp" for aim in aims):
        need_icmp()
    kept = Kept(((aim.url, conn) for aim in aims for conn in (("fresh", "warm") if warm else ("fresh",))), pace.hole_s)
    notes = [plan(aims, pace), make_room(len(kept.running), pace)]
    if output is Format.TEXT:
        complain(*standing(aims), *(note for note in notes if note is not None))
    recent = Recent() if output is Format.TEXT and is_terminal(sys.stderr) else None
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        recording = stack.enter_context(Recording(record)) if record is not None else None
        meter = Meter(aims, pace, _sink(kept, recording, recent, told=output is Format.TEXT))
        asyncio.run(_measure(meter, kept, recent, recording))
    kept.finish()
    if recording is not None and recording.lost:
        complain(f"{recording.lost} questions were not recorded: {recording.why or 'there was no space left for them'}")
    if (note := meter.held_up()) is not None:
        complain(note)
    summaries = {key: running.summary() for key, running in kept.running.items()}
    broken = [(key, c.text) for key, s in summaries.items() for c in conditions if true_of(c, s)]
    if output is Format.JSON:
        say_json(
            {
                "targets": [_json(key, s) for key, s in summaries.items()],
                "failed": [{"target": key[0], "conn": key[1], "condition": text} for key, text in broken],
                "meter": {"late_p99_ms": round((meter.late.quantile(0.99) or 0.0) * 1000, 3), "void": meter.void, "missed": meter.missed, "why": meter.why},
            }
        )
    else:
        _show(kept)
        for (url, conn), text in broken:
            say(f"failed: {text} is true of {url} ({conn})")
    if broken:
        raise typer.Exit(EdgekeeperError.exit_code)


def _sink(kept: Kept, recording: Recording | None, recent: Recent | None, *, told: bool) -> Sink:
    """What becomes of each sample; where there is no live table, changes are told in lines."""
    from edgekeeper.meter.live import sentence

    def sink(sample: Sample, until: float) -> None:
        news = kept.take(sample, until)
        if recent is not None:
            recent.take(sample)
        elif told and news:
            complain(*(sentence(one) for one in news))
        if recording is not None:
            recording.write(sample)

    return sink


async def _measure(meter: Meter, kept: Kept, recent: Recent | None, recording: Recording | None) -> None:
    import asyncio

    asking = asyncio.create_task(meter.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asking.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        if recent is None:
            await asking
            return
        from edgekeeper.cli.probe_screen import painted

        await painted(asking, kept, recent, recording)


def _run_role(ctx: typer.Context, *, lone: bool) -> None:
    """``edgekeeper probe run``: the role, as other roles have it; no target is called "run"."""
    from edgekeeper.cli.run import LISTEN, maker, start

    if not lone:
        msg = "`edgekeeper probe run` takes no targets and no options of its own: what is asked stands in the config's probe section"
        raise UsageError(msg)
    start(settings(ctx), settings(ctx).load_role("probe"), {"probe": maker("probe")}, LISTEN["probe"])


def _defaults(ctx: typer.Context, targets: list[str] | None) -> tuple[list[str], float, float]:
    if targets:
        return targets, 1.0, 1.0
    found = settings(ctx).load().root.probe
    if found is None:
        msg = "no target is named, and the config has none in probe.targets; name one, like dns://192.0.2.53/health.example?type=TXT"
        raise UsageError(msg)
    return list(found.targets), found.every, found.timeout


def _seconds(option: str, text: str | None, usual: float) -> float:
    from edgekeeper.model.time import parse_duration

    if text is None:
        return usual
    try:
        value = parse_duration(text)
    except ValueError as err:
        msg = f"{option}: {err}"
        raise UsageError(msg) from None
    if not 0.01 <= value <= 1e7:
        msg = f"{option} {text}: write at least 10ms"
        raise UsageError(msg)
    return value


def _show(kept: Kept) -> None:
    rows: list[list[str | Cell]] = []
    for (url, conn), running in kept.running.items():
        s = running.summary()
        worst = s.worst
        rows.append(
            [
                url,
                conn,
                str(s.asked),
                Cell(str(s.unanswered), Tone.BAD if s.unanswered else Tone.GOOD),
                str(s.slow),
                str(running.outages),
                worst.text() if worst else "none seen",
                _latency(running.times),
                (running.last_bad.error or "") if running.last_bad is not None else "",
            ]
        )
    table(("TARGET", "CONN", "ASKED", "UNANSWERED", "SLOW", "OUTAGES", "LONGEST", "MEDIAN / P99", "LAST ERROR"), rows)
    for (url, conn), running in kept.running.items():
        s = running.summary()
        say(f"{url} ({conn}): {s.text()}")
        if s.slow and len(s.strict) > len(s.lenient):
            say(f"{url} ({conn}): with slow answers counted as failures: {len(s.strict)} outages")


def _latency(times: Times) -> str:
    median, p99 = times.quantile(0.5), times.quantile(0.99)
    return "-" if median is None or p99 is None else f"{median * 1000:.1f} / {p99 * 1000:.1f} ms"


def _json(key: tuple[str, str], s: Summary) -> dict[str, Any]:
    return {
        "target": key[0],
        "conn": key[1],
        "asked": s.asked,
        "unanswered": s.unanswered,
        "slow": s.slow,
        "outages": [_outage(o) for o in s.lenient],
        "outages_strict": [_outage(o) for o in s.strict],
        "unseen_below_s": None if s.blind_s == float("inf") else round(s.blind_s, 3),
        "verdict": s.text(),
    }


def _outage(outage: Outage) -> dict[str, Any]:
    return {
        "min_s": round(outage.min_s, 3),
        "max_s": None if outage.max_s == float("inf") else round(outage.max_s, 3),
        "first_bad": outage.first_bad,
        "last_bad": outage.last_bad,
        "questions": outage.bad,
    }
