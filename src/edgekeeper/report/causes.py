"""What an outage was of: everything that happened around it, named in few words. Pure.

That two things happened together is no proof that one made the other; what is named is what overlaps, the likeliest first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from edgekeeper.report.document import Hurt, Window
from edgekeeper.report.figures.bgp import gaps
from edgekeeper.report.figures.counts import words as reasons
from edgekeeper.report.figures.drains import drain_of
from edgekeeper.report.figures.moves import feeding
from edgekeeper.report.figures.outages import PROBE, TOLD, WARM
from edgekeeper.report.figures.say import some
from edgekeeper.report.figures.triggers import triggers
from edgekeeper.report.kinds import Kind, Mark
from edgekeeper.report.owners import owner_of
from edgekeeper.report.study import Study

BEFORE_S: Final = 30.0
"""What ended, or happened at one moment, at most so long before an outage may still be its cause (health checks and timers need a while)."""

_SHOWN: Final = 2
_DATABASES: Final = (Kind.DB_SWITCHOVER, Kind.DB_FAILOVER)


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that may be a cause, from when until when, in few words.

    ``before``: it lies before the ingress (a path, a VIP, an edge), where it keeps requests away. A bad answer that the ingress gave
    while a node was drained is not of that. ``host``: only what is asked from or through that machine is of it. ``routes``: only of these, where
    it is known which routes it feeds.
    """

    begin: float
    end: float
    words: str
    before: bool = True
    host: str = ""
    routes: tuple[str, ...] = ()


def caused(study: Study) -> tuple[Hurt, ...]:
    """The outages, each with what overlaps it."""
    known = sorted(_happened(study), key=lambda s: s.begin)
    fed: dict[str, set[str]] = {}
    for workload, routers in feeding(study).items():
        for router in routers:
            fed.setdefault(router, set()).add(workload.rpartition("/")[2])
    return tuple(replace(hurt, cause=_cause(study, hurt, known, fed)) for hurt in study.outages)


def _cause(study: Study, hurt: Hurt, known: Iterable[Happening], fed: dict[str, set[str]]) -> str:
    doubt = study.width(hurt.source)
    begin, end = hurt.first_bad - doubt, hurt.last_bad + doubt
    words: list[str] = []
    drain = drain_of(study.drains, hurt.first_bad, hurt.last_bad)
    if drain is not None:
        moved = [pod.rpartition("/")[2] for pod in drain.pods if owner_of(pod).name in fed.get(hurt.router, set())]
        words.append(f"drain of {drain.node}" + (f" ({some(moved, 2)} moved)" if moved else ""))
    inside = drain is not None and hurt.group not in {PROBE, WARM, TOLD}
    near = [s for s in known if s.begin <= end and begin - BEFORE_S <= s.end and (not s.routes or hurt.router in s.routes)]
    asked_from = study.node_of(hurt.source)
    if any(s.host == asked_from for s in known):  # a probe of an edge tells of that edge
        near = [s for s in near if s.host in {"", asked_from}]
    words += [s.words for s in near if not (inside and s.before)]
    shown = list(dict.fromkeys(words))
    told = hurt.cause or _told(study, hurt)
    return "; ".join(shown[:_SHOWN] + ([f"{len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []) + ([told] if told else []))


def _told(study: Study, hurt: Hurt) -> str:
    """What most lines of the bad answers say of their reason."""
    if hurt.group in {PROBE, WARM, TOLD}:
        return ""
    said = reasons(study, study.lanes(router=hurt.router), Window(hurt.first_bad, hurt.last_bad), ended=False)
    said.pop("", None)
    return said.most_common(1)[0][0] if said else ""


def _happened(study: Study) -> list[Happening]:
    """All that can take a route or the edge down beside a drain."""
    found = [Happening(g.down, g.up if g.up is not None else study.window.end, f"BGP to {g.peer} down ({g.observer})") for g in gaps(study)[0]]
    for host, several in triggers(study).items():
        name = host.partition(": ")[0]
        for t in several:
            end = t.answered or t.restarted or t.at
            found.append(
                Happening(t.at, end, f"restart of {t.service} suppressed on {name}" if t.suppressed else f"{t.service} restarted on {name}", host=name)
            )
    seen: set[tuple[str, str, int]] = set()
    fed = feeding(study)
    for mark in study.marks(Kind.VRRP_STATE, Kind.SERVER_DOWN, Kind.NO_SERVER, Kind.DB_SWITCHOVER, Kind.DB_FAILOVER, Kind.NODE_STATE):
        words = _words(study, mark)
        key = (words, mark.object, int((mark.at or 0.0) // 3))
        if mark.at is not None and words and key not in seen:
            seen.add(key)
            doubt = study.width(mark.source)
            routes = fed.get(mark.object.lstrip("/"), fed.get(mark.object.rpartition("/")[2], ())) if mark.kind in _DATABASES else ()
            found.append(Happening(mark.at - doubt, mark.at + doubt, words, mark.kind == Kind.VRRP_STATE, routes=routes))
    return found


def _words(study: Study, mark: Mark) -> str:
    match mark.kind:
        case Kind.VRRP_STATE:
            return f"VIP {mark.object} to {mark.node or study.node_of(mark.source)}" if mark.data.get("state") == "MASTER" else ""
        case Kind.SERVER_DOWN:
            return f"server {mark.object} down"
        case Kind.NO_SERVER:
            return f"no server left for {mark.object}"
        case Kind.DB_SWITCHOVER | Kind.DB_FAILOVER:
            return f"{'switchover' if mark.kind == Kind.DB_SWITCHOVER else 'failover'} of {mark.object.rpartition('/')[2]}"
        case Kind.NODE_STATE:
            return f"{mark.object} {mark.data.get('state')}" if mark.data.get("state") in {"NotReady", "Rebooted"} else ""
        case _:
            return ""
