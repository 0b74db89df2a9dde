"""``edgekeeper watch replay``: what a watch would have done over a recorded log, with these settings and with others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.context import Settings, settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, progress, progress_done, say, say_json, table
from edgekeeper.errors import UsageError

if TYPE_CHECKING:
    from edgekeeper.config.watch import Watch
    from edgekeeper.model.budget import Budget
    from edgekeeper.model.time import Span
    from edgekeeper.watch.fingerprint import Matcher
    from edgekeeper.watch.replay import Dark, Outcome
    from edgekeeper.watch.state import Policy
    from edgekeeper.watch.world import Sign, World

_TONES = {"act": Tone.BAD, "suppress": Tone.DOUBT, "fail": Tone.BAD, "prove": Tone.GOOD, "confirm": Tone.DOUBT}
_SOME_PROBE = "tcp://127.0.0.1:1"
"""Stands for the probe where there is no config: it is never asked, and confirms at the usual times."""
_COOLDOWNS = (600.0, 60.0, 0.0)
"""The cooldowns of the table: a cautious script's, that of one who learned from it, and none (the budget alone)."""


def replay(
    ctx: typer.Context,
    logs: Annotated[list[str], typer.Argument(metavar="LOGFILE...", help="Recorded logs of the service; gzip and xz too, - for standard input.")],
    watch: Annotated[str | None, typer.Option("--watch", metavar="NAME", help="A watch of the config.")] = None,
    preset: Annotated[str | None, typer.Option("--preset", metavar="NAME", help="Or a ready-made watch, without a config: netbird-proxy.")] = None,
    fingerprint: Annotated[list[str] | None, typer.Option("--fingerprint", metavar="TEXT", help="Or text that a line has; may be given several times.")] = None,
    recovered: Annotated[list[str] | None, typer.Option("--recovered", metavar="TEXT", help="Text of a line that says the service is well again.")] = None,
    started: Annotated[list[str] | None, typer.Option("--started", metavar="TEXT", help="Text of a line that says the service was started.")] = None,
    probes: Annotated[str | None, typer.Option("--probes", metavar="FILE", help="Answers recorded by `edgekeeper probe --record` at that time.")] = None,
    cooldown: Annotated[
        str | None, typer.Option("--cooldown", metavar="DURATION", help="No cure within so long of the last; the watch's own when not said.")
    ] = None,
    confirm: Annotated[bool | None, typer.Option("--confirm/--no-confirm", help="Whether the probe has to confirm a line.")] = None,
    cure_takes: Annotated[str, typer.Option("--cure-takes", metavar="DURATION", help="How long a cure takes until the service answers.")] = "2s",
    quiet: Annotated[str, typer.Option("--quiet", metavar="DURATION", help="Without --probes: a burst that is silent for so long is over.")] = "60s",
    limit: Annotated[int, typer.Option("--limit", min=0, help="List no more decisions than this (0: all).")] = 40,
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """What a watch would have done over recorded logs: the same decisions, in virtual time, with these settings and with others.

    Nothing is asked and nothing is cured. Without recorded answers of a probe it is assumed when the service was dead; what is
    assumed is said.
    """
    from edgekeeper.watch.replay import as_it_happened, simulate

    plan = _plan(_section(settings(ctx), watch, preset, fingerprint), (recovered or [], started or []), cooldown, confirm, probed=probes is not None)
    cure_s, quiet_s = _duration("--cure-takes", cure_takes), _duration("--quiet", quiet)
    read = _read(logs, plan)
    world, doubts = _world(plan, read, probes, quiet_s)
    answer_s = plan.answer_s

    def run(wait_s: float | None, *, confirmed: bool) -> Outcome:
        policy = replace(plan.policy, confirm=confirmed)
        return simulate(policy, _with_cooldown(plan.budget, wait_s), read.signs, world, cure_s=cure_s, answer_s=answer_s)

    found = run(plan.cooldown_s, confirmed=plan.policy.confirm)
    waits = sorted({*_COOLDOWNS, plan.cooldown_s or 0.0}, reverse=True)
    others = [_Variant(wait, confirmed, run(wait, confirmed=confirmed)) for wait in waits for confirmed in (True, False)]
    happened = as_it_happened(world)
    notes = (*found.notes, *doubts)
    if output is Format.JSON:
        say_json(_document(plan, read, found, others, happened, notes))
        return
    complain(*(f"note: {note}" for note in notes))
    _show(found, others, happened, limit)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is simulated: how it decides, what is looked for, and which targets' answers count."""

    name: str
    policy: Policy
    budget: Budget
    """Without the cooldown."""
    cooldown_s: float | None
    matcher: Matcher | None
    marks: Matcher | None
    started: frozenset[str]
    targets: tuple[str, ...]
    need: str
    answer_s: float


@dataclass(frozen=True, slots=True)
class _Read:
    """What the logs say."""

    signs: tuple[Sign, ...]
    files: tuple[dict[str, Any], ...]
    last: float
    doubts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Variant:
    """One line of the table: the cooldown, whether a probe confirms, and what would have happened."""

    cooldown_s: float
    confirm: bool
    outcome: Outcome


def _section(chosen: Settings, watch: str | None, preset: str | None, fingerprints: list[str] | None) -> Watch:
    """The watch that is replayed: of the config, or a preset or fingerprints without one."""
    from pydantic import ValidationError

    from edgekeeper.config.watch import Watch
    from edgekeeper.watch.presets import merged

    if sum(said is not None for said in (watch, preset)) + bool(fingerprints and watch is None) != 1 and not (preset and fingerprints and watch is None):
        msg = "name what is replayed: --watch NAME of the config, or --preset netbird-proxy, or --fingerprint TEXT"
        raise UsageError(msg)
    if watch is not None:
        known = {one.name: one for one in chosen.load_role("watch").root.watch or ()}
        if watch not in known:
            msg = f"the config has no watch {watch!r}; it has {', '.join(known)}"
            raise UsageError(msg)
        found = merged(known[watch])
        more = _valid([{"text": text} for text in fingerprints or ()])
        return found.model_copy(update={"fingerprints": (*(found.fingerprints or ()), *more)}) if more else found
    said: dict[str, Any] = {"name": preset or "replay", "preset": preset, "docker": preset or "replay", "probe": _SOME_PROBE}
    try:
        return merged(Watch.model_validate({**said, **({"fingerprints": fingerprints} if fingerprints else {})}))
    except ValidationError as err:
        first = err.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        msg = f"{'--preset' if place == 'preset' else '--fingerprint'}: {first['msg']}"
        raise UsageError(msg) from None


def _valid(fingerprints: list[dict[str, str]]) -> tuple[Any, ...]:
    from edgekeeper.config.watch import Fingerprint

    return tuple(Fingerprint.model_validate(one) for one in fingerprints)


def _plan(section: Watch, marks: tuple[list[str], list[str]], cooldown: str | None, confirm: bool | None, *, probed: bool) -> _Plan:
    from edgekeeper.watch import build
    from edgekeeper.watch.fingerprint import Fingerprint, Matcher

    recovered, started = marks
    policy = replace(build.policy(section), shadow=False)
    policy = replace(policy, confirm=policy.confirm if confirm is None else confirm, probed=policy.probed or probed)
    own = section.budget.cooldown or None
    wait_s = own if cooldown is None else _duration("--cooldown", cooldown)
    well = build.recovered(section)
    try:
        found = [*(well.fingerprints if well else ()), *(Fingerprint(text=text) for text in (*recovered, *started))]
        matcher = Matcher(found) if found else None
    except ValueError as err:
        msg = f"--recovered or --started: {err}"
        raise UsageError(msg) from None
    if build.matcher(section) is None and not probed:
        msg = f"watch {section.name} has no fingerprints; say what to look for with --fingerprint, or give recorded answers with --probes"
        raise UsageError(msg)
    probe = section.probe
    targets = probe.targets if probe is not None and probe.targets != (_SOME_PROBE,) else ()
    return _Plan(
        name=section.name,
        policy=policy,
        budget=build.budget(section.budget.model_copy(update={"cooldown": 0.0})),
        cooldown_s=wait_s,
        matcher=build.matcher(section),
        marks=matcher,
        started=frozenset(started),
        targets=targets,
        need=probe.need if probe is not None else "any",
        answer_s=probe.timeout if probe is not None else 1.0,
    )


def _with_cooldown(budget: Budget, wait_s: float | None) -> Budget:
    from edgekeeper.model.budget import Window

    return replace(budget, rules=(*budget.rules, Window(1, wait_s))) if wait_s else budget


def _duration(option: str, text: str) -> float:
    from edgekeeper.model.time import parse_duration

    try:
        return parse_duration(text)
    except ValueError as err:
        msg = f"{option}: {err}"
        raise UsageError(msg) from None


def _read(logs: Sequence[str], plan: _Plan) -> _Read:
    """Read every log once; what stands for many lines is kept once."""
    from edgekeeper.watch.fingerprint import Matcher
    from edgekeeper.watch.recorded import Recorded
    from edgekeeper.watch.world import Kind, Thinner

    signs: list[Sign] = []
    files: list[dict[str, Any]] = []
    doubts: list[str] = []
    last = -math.inf
    for path in logs:
        log = Recorded(path, plan.matcher or Matcher([]), plan.marks)
        thin = Thinner(plan.policy.burst.distinct)
        counted = {True: 0, False: 0}
        for moment in log.moments(lambda lines, path=path: progress(f"{path}: {lines:,} lines")):  # type: ignore[misc]
            kind = Kind.HIT if not moment.recovered else Kind.STARTED if moment.match.name in plan.started else Kind.RECOVERED
            counted[moment.recovered] += 1
            thin.add(moment.at, kind, moment.match.line, moment.match.rest)
        progress_done()
        signs += thin.signs()
        if log.last is None and log.lines:
            msg = f"no line of {path} says when it was written, and a replay needs that; `docker logs -t` writes times"
            raise UsageError(msg)
        doubts += [text for text in (log.damage, *_doubts(path, log.disordered, log.undated, thin.width_s)) if text]
        last = max(last, log.last if log.last is not None else -math.inf)
        files.append(
            {
                "file": path,
                "lines": log.lines,
                "envelope": log.envelope,
                "first": log.first,
                "last": log.last,
                "hits": counted[False],
                "recovered": counted[True],
                "out_of_order": log.disordered,
                "without_time": log.undated,
            }
        )
    signs.sort(key=lambda sign: sign.at)
    return _Read(tuple(signs), tuple(files), max(last, max((sign.until for sign in signs), default=-math.inf)), tuple(doubts))


def _doubts(path: str, disordered: int, undated: int, width_s: float) -> list[str]:
    out = []
    if disordered:
        out.append(f"{path}: {disordered} lines are older than the one before them; they were put in order")
    if undated:
        out.append(f"{path}: {undated} lines with a fingerprint have no time, nor has one near them; they are left out")
    if width_s > 0.1:
        out.append(f"{path}: so many lines have a fingerprint that those within {width_s:g} s which say the same stand as one")
    return out


def _world(plan: _Plan, read: _Read, probes: str | None, quiet_s: float) -> tuple[World, tuple[str, ...]]:
    from edgekeeper.watch.probefile import read_record
    from edgekeeper.watch.world import from_lines, from_probes

    if probes is None:
        return from_lines(read.signs, read.last, plan.policy.burst, quiet_s), read.doubts
    record, strange, damage = read_record(probes)
    doubts = [*read.doubts, *([damage] if damage else [])]
    if strange:
        doubts.append(f"{probes}: {strange} lines are not recorded answers of this version; they are left out")
    if plan.targets and not set(plan.targets) & set(record.targets()):
        doubts.append(f"{probes}: none of the watch's own targets was asked; all that were asked count: {', '.join(record.targets()[:4])}")
    world = from_probes(record, read.signs, read.last, targets=plan.targets, need=plan.need, within_s=plan.policy.proof_within_s)
    return world, tuple(doubts)


def _show(found: Outcome, others: Sequence[_Variant], happened: Sequence[Dark], limit: int) -> None:
    if found.told:
        listed = found.told[:limit] if limit else found.told
        table(("TIME", "DECISION", "WHY"), [(time_text(one.at), Cell(one.kind, _TONES.get(one.kind, Tone.PLAIN)), one.why) for one in listed])
        if len(listed) < len(found.told):
            say(f"... and {len(found.told) - len(listed)} more; --limit 0 lists all")
        say("")
    if found.dark:
        dark = found.dark[:limit] if limit else found.dark
        table(("DARK FROM", "FOR", "ENDED BY"), [(time_text(one.at), Cell(one.span.brief(), Tone.BAD), _ENDED.get(one.by, one.by)) for one in dark])
        if len(dark) < len(found.dark):
            say(f"... and {len(found.dark) - len(dark)} more; --limit 0 lists all")
        say("")
    from edgekeeper.watch.replay import longest, total

    rows: list[tuple[str | Cell, ...]] = [("as it happened", "-", "-", "-", "-", "-", "-", total(happened).brief(), _longest(longest(happened)))]
    rows += [_row(one) for one in others]
    table(("COOLDOWN", "CONFIRMED BY", "CURES", "OF A WELL SERVICE", "HELD BACK", "OVER BEFORE A CURE", "FALSE ALARMS", "DARK IN ALL", "LONGEST"), rows)
    say("")
    say(_verdict(found), *([comparison] if (comparison := compare(others)) else []))


_ENDED = {
    "cure": "the cure",
    "recovered": "the log says it is well",
    "started": "a start, by somebody else",
    "silence": "no line came any more",
    "probe": "it answered again",
    "nothing": "not seen: the record ends",
}


def _row(one: _Variant) -> tuple[str | Cell, ...]:
    o = one.outcome
    return (
        _cooldown(one.cooldown_s),
        "the probe" if one.confirm else "nothing",
        str(len(o.cures)),
        Cell(str(o.needless), Tone.BAD if o.needless else Tone.GOOD),
        str(o.suppressed),
        str(o.healed),
        str(o.false_alarms),
        o.total.brief(),
        _longest(o.longest),
    )


def _longest(span: Span | None) -> str:
    return "-" if span is None else span.brief()


def _cooldown(seconds: float) -> str:
    return f"{seconds:g} s" if seconds else "none"


def _verdict(found: Outcome) -> str:
    cures = "1 cure" if len(found.cures) == 1 else f"{len(found.cures)} cures"
    parts = [f"{cures}, {found.suppressed} held back, {found.healed} wedges over before a cure, {found.false_alarms} false alarms"]
    if found.needless:
        parts.append(f"{found.needless} of the cures hit a service that was well")
    if found.still_wanted:
        parts.append("the record ends while a cure is wanted")
    return "; ".join(parts)


def compare(others: Sequence[_Variant]) -> str:
    """What the cooldown alone changes, where a probe confirms: the sentence, or nothing when it changes nothing."""
    spans = [(_cooldown(one.cooldown_s), _longest(one.outcome.longest)) for one in others if one.confirm]
    if len({span for _, span in spans}) < 2:
        return ""
    said: list[str] = []
    for at, (name, span) in enumerate(spans):
        if at and span == spans[at - 1][1]:
            continue
        said.append(f"{span} with {'no cooldown' if name == 'none' else f'a cooldown of {name}'}")
    return f"the longest time without service: {'; '.join(said)}"


def time_text(at: float) -> str:
    """A moment as it is shown: UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _document(plan: _Plan, read: _Read, found: Outcome, others: Sequence[_Variant], happened: Sequence[Dark], notes: Sequence[str]) -> dict[str, Any]:
    return {
        "watch": plan.name,
        "files": list(read.files),
        "settings": {"cooldown_s": plan.cooldown_s or 0.0, "confirm": plan.policy.confirm},
        "assumed": list(notes),
        "decisions": [{"ts": one.at, "kind": one.kind, "why": one.why} for one in found.told],
        "dark": [_dark(one) for one in found.dark],
        "totals": _totals(found),
        "still_wanted": found.still_wanted,
        "as_it_happened": [_dark(one) for one in happened],
        "with_other_settings": [{"cooldown_s": one.cooldown_s, "confirm": one.confirm, **_totals(one.outcome)} for one in others],
    }


def _totals(o: Outcome) -> dict[str, Any]:
    return {
        "cures": len(o.cures),
        "cures_of_a_well_service": o.needless,
        "armed": o.armed,
        "confirmed": o.confirmed,
        "suppressed": o.suppressed,
        "over_before_a_cure": o.healed,
        "false_alarms": o.false_alarms,
        "dark_s": _span(o.total),
        "longest_s": None if o.longest is None else _span(o.longest),
    }


def _dark(one: Dark) -> dict[str, Any]:
    return {"from": one.at, "for_s": _span(one.span), "ended_by": one.by}


def _span(span: Span) -> list[float | None]:
    return [round(span.min_s, 3), None if math.isinf(span.max_s) else round(span.max_s, 3)]
