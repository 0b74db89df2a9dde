"""``edgekeeper probe``: an outage meter for the terminal."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, progress, progress_done, say, say_json, table
from edgekeeper.errors import EdgekeeperError, UsageError

if TYPE_CHECKING:
    from edgekeeper.measure.outages import Outage, Summary
    from edgekeeper.model.sample import Sample
    from edgekeeper.probe.meter import Pace
    from edgekeeper.probe.target import Target

LIVE_EVERY_S = 0.25


def probe(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="TARGET...", help="dns://SERVER/NAME?type=TXT, tcp://HOST:PORT, tls://, http(s)://; else probe.targets.")
    ] = None,
    every: Annotated[str | None, typer.Option("--every", help="Period of the questions to each target; an outage is known to within two. [1s]")] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", help="When a question counts as unanswered; above 1s it hides black holes. [1s]")] = None,
    warm: Annotated[bool, typer.Option("--warm", help="Ask over a kept connection too: it fails differently.")] = False,
    count: Annotated[int | None, typer.Option("--count", min=1, help="Stop after so many questions to each target.")] = None,
    duration: Annotated[str | None, typer.Option("--duration", help="Stop after this long.")] = None,
    record: Annotated[Path | None, typer.Option("--record", metavar="FILE", help="Append every question to this file (JSON lines, schema 1).")] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", metavar="EXPR", help="Exit 1 when true of a target: outage > 2s, unanswered > 0, loss > 0.4%.")
    ] = None,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """An outage meter for your terminal.

    It asks all the time and says how long each target did not answer. A slow answer never delays the
    next question. Ctrl-C ends it with the summary.
    """
    import asyncio

    from edgekeeper.measure.failif import parse as parse_condition
    from edgekeeper.probe.meter import Pace
    from edgekeeper.probe.target import parse as parse_target

    urls, usual_every, usual_timeout = _defaults(ctx, targets)
    aims = [parse_target(url) for url in urls]
    conditions = [parse_condition(text) for text in fail_if or []]
    pace = Pace(
        every_s=_seconds("--every", every, usual_every),
        timeout_s=_seconds("--timeout", timeout, usual_timeout),
        count=count,
        duration_s=_seconds("--duration", duration, 0.0) or None,
        warm=warm,
    )
    samples: dict[tuple[str, str], list[Sample]] = {(a.url, conn): [] for a in aims for conn in (("fresh", "warm") if warm else ("fresh",))}
    if output is Format.TEXT:
        for note in _standing(aims):
            complain(note)
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_measure(aims, pace, samples, stack, record))
    progress_done()
    summaries = _summaries(samples)
    broken = [(key, c.text) for key, s in summaries.items() for c in conditions if _holds(c, s)]
    if output is Format.JSON:
        say_json(
            {
                "targets": [_json(key, s) for key, s in summaries.items()],
                "failed": [{"target": key[0], "conn": key[1], "condition": text} for key, text in broken],
            }
        )
    else:
        _show(summaries, samples)
        for (url, conn), text in broken:
            say(f"failed: {text} is true of {url} ({conn})")
    if broken:
        raise typer.Exit(EdgekeeperError.exit_code)


async def _measure(aims: list[Target], pace: Pace, samples: dict[tuple[str, str], list[Sample]], stack: contextlib.ExitStack, record: Path | None) -> None:
    import asyncio
    import json
    from dataclasses import asdict

    from edgekeeper.model.sample import SCHEMA
    from edgekeeper.probe.meter import Meter

    file = None
    if record is not None:
        try:
            file = stack.enter_context(record.open("a", encoding="utf-8"))
        except OSError as err:
            msg = f"{record} cannot be written ({err.strerror}); nothing was asked"
            raise UsageError(msg) from None

    def sink(sample: Sample) -> None:
        samples[sample.target, sample.conn].append(sample)
        if file is not None:
            file.write(json.dumps({"schema": SCHEMA, **asdict(sample)}) + "\n")
            file.flush()

    async def live() -> None:
        while True:
            progress(_live_line(samples))
            await asyncio.sleep(LIVE_EVERY_S)

    picture = asyncio.create_task(live())
    try:
        await Meter(aims, pace, sink).run()
    finally:
        picture.cancel()


def _defaults(ctx: typer.Context, targets: list[str] | None) -> tuple[list[str], float, float]:
    if targets:
        return targets, 1.0, 1.0
    found = settings(ctx).load().root.probe
    if not found.targets:
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


def _standing(aims: list[Target]) -> list[str]:
    """Where this machine asks from, for each target, and a warning when the target is this machine."""
    from edgekeeper.probe.path import source_of

    out = []
    for aim in aims:
        source = source_of(aim.host, aim.port)
        if source is None:
            out.append(f"{aim.url}: no way there is known yet")
        elif source[0] == source[1] or source[1].startswith("127.") or source[1] == "::1":
            out.append(f"{aim.url}: {source[1]} is this machine: what is measured is not what clients see")
        else:
            out.append(f"{aim.url}: asked from {source[0]}")
    return out


def _live_line(samples: dict[tuple[str, str], list[Sample]]) -> str:
    parts = []
    for (url, conn), kept in samples.items():
        name = url if conn == "fresh" else f"{url} (warm)"
        if not kept:
            parts.append(f"{name} ...")
        elif kept[-1].ok:
            parts.append(f"{name} ok {(kept[-1].done - kept[-1].sent) * 1000:.0f} ms, {sum(not s.ok for s in kept)}/{len(kept)} lost")
        else:
            since = next((s.sent for s in reversed(kept) if s.ok), kept[0].sent)
            parts.append(f"{name} OUT for {kept[-1].done - since:.1f} s ({kept[-1].error})")
    return " | ".join(parts)


def _summaries(samples: dict[tuple[str, str], list[Sample]]) -> dict[tuple[str, str], Summary]:
    from edgekeeper.measure.outages import summarize

    return {key: summarize(kept) for key, kept in samples.items()}


def _holds(condition: Any, summary: Summary) -> bool:
    from edgekeeper.measure.failif import true_of

    return true_of(condition, summary)


def _show(summaries: dict[tuple[str, str], Summary], samples: dict[tuple[str, str], list[Sample]]) -> None:
    rows: list[list[str | Cell]] = []
    for (url, conn), s in summaries.items():
        kept = samples[url, conn]
        worst = s.worst
        rows.append(
            [
                url,
                conn,
                str(s.asked),
                Cell(str(s.unanswered), Tone.BAD if s.unanswered else Tone.GOOD),
                str(s.slow),
                str(len(s.lenient)),
                worst.text() if worst else "none seen",
                _latency([x.done - x.sent for x in kept if x.ok]),
                next((x.error or "" for x in reversed(kept) if not x.ok), ""),
            ]
        )
    table(("TARGET", "CONN", "ASKED", "UNANSWERED", "SLOW", "OUTAGES", "LONGEST", "MEDIAN / P99", "LAST ERROR"), rows)
    for (url, conn), s in summaries.items():
        say(f"{url} ({conn}): {s.text()}")
        if s.slow and len(s.strict) > len(s.lenient):
            say(f"{url} ({conn}): with slow answers counted as failures: {len(s.strict)} outages")


def _latency(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return f"{ordered[len(ordered) // 2] * 1000:.1f} / {ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] * 1000:.1f} ms"


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
