"""``edgekeeper watch history``: what the watches of this node did and held back, why, and how long it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgekeeper.cli.output import Cell, Format, Tone, complain, say, say_json_rows, table

if TYPE_CHECKING:
    from edgekeeper.model.time import Span
    from edgekeeper.watch.history import Item, WatchHistory

_TONES = {
    "watch.cured": Tone.BAD,
    "watch.suppressed": Tone.DOUBT,
    "watch.not_proved": Tone.BAD,
    "watch.proved": Tone.GOOD,
    "watch.confirmed": Tone.DOUBT,
    "watch.blind": Tone.BAD,
}


def history(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this watch.")] = None,
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="A duration (14d, 1h), or a date and time; all when not said.")] = "",
    output: Annotated[Format, typer.Option("-o", "--output", help="text or json.")] = Format.TEXT,
) -> None:
    """Every arm, confirmation, cure and cure held back, with its reason and the time to recover, and what they come to.

    The journal of this node is read, so it works whether or not the role runs.
    """
    from edgekeeper.cli.status import journal_since, say_unreadable
    from edgekeeper.watch.history import histories, items, lost

    folder, records, unreadable = journal_since(ctx, since)
    lines = [(record.ts, record.fields) for record in records]
    found = items(lines, name)
    watches = histories(found)
    missing = lost(lines)
    if output is Format.JSON:
        head = {"watches": [_document(one) for one in watches], "unreadable_lines": unreadable, "lost_entries": missing}
        say_json_rows(head, "entries", (_entry(item) for item in found))
        return
    if found:
        _show(found, watches)
    else:
        say(f"no watch{'' if name is None else f' {name}'} has written anything into the journal in {folder}" + (f" since {since}" if since else ""))
    say_unreadable(unreadable)
    if missing:
        complain(f"{missing} {'entries' if missing > 1 else 'entry'} could not be written to the journal; what they told of is missing here")


def _show(found: Sequence[Item], watches: Sequence[WatchHistory]) -> None:
    from edgekeeper.cli.watch_replay import time_text
    from edgekeeper.watch.history import Ending, median, worst

    rows = [
        (time_text(i.at), i.watch, Cell(i.event, _TONES.get(i.event, Tone.PLAIN)), "-" if i.recovered is None else i.recovered.text(), i.why) for i in found
    ]
    table(("TIME", "WATCH", "EVENT", "RECOVERED AFTER", "WHY"), rows)
    say("")
    nodes = len({one.node for one in watches}) > 1
    table(
        (
            "WATCH",
            "TROUBLES",
            "CURED",
            "HEALED BY ITSELF",
            "STARTED BY OTHERS",
            "FALSE ALARMS",
            "NOT OVER",
            "CURES IN VAIN",
            "HELD BACK",
            "RECOVERED AFTER (MEDIAN)",
            "(WORST)",
        ),
        [
            (
                f"{one.watch} on {one.node}" if nodes else one.watch,
                str(len(one.troubles)),
                str(one.count(Ending.CURED)),
                str(one.count(Ending.HEALED)),
                str(one.count(Ending.RESTARTED)),
                str(one.count(Ending.FALSE)),
                str(one.count(Ending.OPEN) + one.count(Ending.UNKNOWN)),
                str(sum(trouble.in_vain for trouble in one.troubles)),
                ", ".join(f"{why} {count}" for why, count in one.held.most_common()) or "-",
                _text(median(one.recovered)),
                _text(worst(one.recovered)),
            )
            for one in watches
        ],
    )
    told = [text for one in watches if (text := one.healed_text())]
    if told:
        say("", *told)


def _text(span: Span | None) -> str:
    return "-" if span is None else span.text()


def _entry(item: Item) -> dict[str, Any]:
    return {
        "ts": item.at,
        "node": item.node,
        "watch": item.watch,
        "event": item.event,
        "decision": item.decision,
        "why": item.why,
        "recovered_s": _bounds(item.recovered),
        "data": dict(item.data),
    }


def _document(one: WatchHistory) -> dict[str, Any]:
    from edgekeeper.watch.history import Ending, median, worst

    share = one.healed_share()
    hits, cases = one.healed
    return {
        "node": one.node,
        "watch": one.watch,
        "troubles": len(one.troubles),
        "armed": sum(trouble.by_line for trouble in one.troubles),
        "cures": sum(trouble.steps > 0 for trouble in one.troubles),
        "steps": sum(trouble.steps for trouble in one.troubles),
        **{str(ending).replace(" ", "_"): one.count(ending) for ending in Ending},
        "in_vain": sum(trouble.in_vain for trouble in one.troubles),
        "suppressed": dict(one.held),
        "in_shadow": sum(trouble.shadowed for trouble in one.troubles),
        "blind": one.blind,
        "healed_share": None if share is None else {"healed": hits, "of": cases, "low": round(share[0], 4), "high": round(share[1], 4)},
        "recovered_s": {"median": _bounds(median(one.recovered)), "worst": _bounds(worst(one.recovered))},
    }


def _bounds(span: Span | None) -> list[float] | None:
    return None if span is None else [round(span.min_s, 3), round(span.max_s, 3)]
