"""F15: who is hurt next or is hurt silently: sessions that stay on dead servers, leases that grow old; and whom outages hit most. Pure.

A balancer writes the line of a session when it ends. A session that stays pinned to a dead server leaves no line until somebody kills it:
only looking at the sessions themselves (``edgekeeper lb sessions``, ``show sess``) tells of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from edgekeeper.report.document import Figure, Table
from edgekeeper.report.figures.counts import group_name
from edgekeeper.report.figures.followed import Followed, followed, without_s
from edgekeeper.report.figures.say import clock, many, seconds, some
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.study import Study

OLD_S = 10.0
"""A node renews its lease every 10 s: an older one was missed."""

MOST_ROWS = 50
TOP = 20


def f15(study: Study) -> Figure:
    """Sessions that were seen on servers that are down: how many, how old, whose; and nodes whose leases were not renewed."""
    pinned, leases = study.marks(Kind.PINNED), study.marks(Kind.LEASE_AGE)
    if not pinned and not leases:
        return Figure("F15", "Pinned sessions", "nobody looked at sessions or leases: who hangs on a dead server is not known", measured=False)
    dead = _on_dead(study, pinned)
    old = _old(leases)
    rows = [
        (name, str(len(who)), seconds(max(_age(m) for m in some_)), some(sorted(who), 5), clock(some_[-1].at)) for name, (some_, who) in sorted(dead.items())
    ]
    rows += [(f"lease of {node}", "-", seconds(_age(mark)), node, clock(mark.at)) for node, mark in sorted(old.items())]
    victims = sum(len(who) for _, who in dead.values())
    said = (
        f"{many(victims, 'client')} held on to {many(len(dead), 'server')} that {'was' if len(dead) == 1 else 'were'} down"
        if dead
        else "no session was seen on a server that is down"
    )
    if old:
        said += f"; the leases of {some(sorted(old))} were not renewed for more than {OLD_S:g} s"
    looks = len({m.at for m in pinned})
    return Figure(
        "F15",
        "Pinned sessions",
        said,
        table=Table(("server or lease", "clients", "oldest", "who", "last seen"), tuple(rows[:MOST_ROWS])) if rows else None,
        notes=(f"Sessions were looked at {many(looks, 'time')}; what came and went in between was not seen.",) if pinned else ("Nobody looked at sessions.",),
        data={"servers": {name: sorted(who) for name, (_, who) in dead.items()}, "leases": {node: _age(mark) for node, mark in old.items()}},
    )


def _on_dead(study: Study, pinned: Sequence[Mark]) -> dict[str, tuple[list[Mark], set[str]]]:
    """Sessions by the dead server they are on: what the look itself says, else what the balancer's log last said of the server."""
    states = study.marks(Kind.SERVER_DOWN, Kind.SERVER_UP)
    found: dict[str, tuple[list[Mark], set[str]]] = {}
    for mark in pinned:
        down = mark.data.get("down")
        if down is None:
            down = _down(states, mark)
        if down:
            seen, who = found.setdefault(mark.object, ([], set()))
            seen.append(mark)
            who.add(str(mark.data.get("client") or "?").rpartition(":")[0] or str(mark.data.get("client") or "?"))
    return found


def _down(states: Sequence[Mark], mark: Mark) -> bool:
    said = [s for s in states if s.object == mark.object and s.at is not None and mark.at is not None and s.at <= mark.at]
    return bool(said) and said[-1].kind == Kind.SERVER_DOWN


def _age(mark: Mark) -> float:
    age = mark.data.get("age_s")
    return float(age) if isinstance(age, int | float) else 0.0


def _old(leases: Iterable[Mark]) -> dict[str, Mark]:
    """Per node its oldest lease, where that is too old."""
    found: dict[str, Mark] = {}
    for mark in leases:
        if _age(mark) > OLD_S and (mark.object not in found or _age(mark) > _age(found[mark.object])):
            found[mark.object] = mark
    return found


def clients(study: Study) -> Figure:
    """Whom bad answers hit most, and for how long each was without a good one."""
    everybody = followed(study)
    if not everybody:
        return Figure("CLIENTS", "Clients that were hurt most", "no access log tells who asked", measured=False)
    hit: list[tuple[float, int, Followed]] = []
    begin, end = study.window.begin, study.window.end
    for client in everybody:
        bad = sum(run.answers for run in client.runs if not run.ok and run.first < end and run.last >= begin)
        if bad:
            hit.append((without_s(client.runs, begin, end), bad, client))
    hit.sort(key=lambda row: (-row[0], -row[1], row[2].group, row[2].address))
    by_group: dict[str, int] = defaultdict(int)
    for _, _, client in hit:
        by_group[client.group] += 1
    rows = tuple((c.address, group_name(c.group), str(bad), seconds(length), some(c.sources, 2)) for length, bad, c in hit[:TOP])
    lost = study.book.cells.clients_lost
    return Figure(
        "CLIENTS",
        "Clients that were hurt most",
        f"{many(len(hit), 'client')} of {len(everybody):,} had bad answers" + (f"; the worst had no good one for {seconds(hit[0][0])}" if hit else ""),
        table=Table(("client", "class", "bad answers", "without a good one for", "source"), rows) if rows else None,
        notes=tuple(
            [f"By class: {some([f'{group_name(g)} {n}' for g, n in sorted(by_group.items())])}."] * bool(by_group)
            + [f"{many(lost, 'client')} and more were not followed, because there were too many; those that were hurt are."] * bool(lost)
            + ["A client here is an address; behind one address may be many. A client that asks more than one route is good as soon as any of them answers."]
        ),
        data={"hurt": len(hit), "clients": len(everybody), "by_class": dict(by_group)},
    )
